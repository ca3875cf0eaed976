"""Settings shared by all tests: hypothesis without chance or clocks, so that a failure is always the same failure."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "statepool", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("statepool")
