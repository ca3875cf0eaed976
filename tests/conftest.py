"""Settings shared by all tests: hypothesis without chance or clocks, so that a failure is always the same failure.

`make soak` takes the other profile, whose chance is new each time and whose failures print how to repeat them.
"""

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]
settings.register_profile("statepool", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW)
settings.register_profile("soak", derandomize=False, deadline=None, print_blob=True, suppress_health_check=SLOW)
settings.load_profile("statepool")
