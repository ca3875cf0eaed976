"""Settings shared by all tests: hypothesis without chance or clocks, so that a failure is always the same failure.

`make soak` takes the other profile, whose chance is new each time and whose failures print how to repeat them.
Files that take long come first, so that no worker is alone with one at the end. Those that compile the same learners
are apart, so that the later one finds them compiled.
"""

from pathlib import Path

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]
settings.register_profile("statepool", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW)
settings.register_profile("soak", derandomize=False, deadline=None, print_blob=True, suppress_health_check=SLOW)
settings.load_profile("statepool")

LONGEST = (
    "golden/test_published.py",
    "contract/test_learners_on_families.py",
    "live/service/test_serving.py",
    "audit/test_table.py",
    "audit/test_one_advice.py",
    "live/test_simulation.py",
    "commands/test_reproduce_command.py",
    "studies/test_figures.py",
    "live/service/test_examples.py",
    "live/test_machine.py",
    "contract/test_kit.py",
    "test_engine.py",
    "studies/test_report.py",
    "live/service/test_schemathesis.py",
    "test_docs.py",
    "test_compiling.py",
    "test_self_tuned.py",
    "test_startup.py",
)
"""From a minute down to ten seconds."""


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    ranks = {here / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(LONGEST)))
