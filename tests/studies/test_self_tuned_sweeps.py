"""Study C runs what it says: every simple rule throughout, and regret over time that ends at the regret."""

import pytest

from statepool.studies.beyond.self_tuned_sweeps import (
    CHECKPOINTS,
    GREEDY,
    SELF,
    SWEEPS,
    THOMPSON,
    at,
    checkpoints,
    over_time,
)
from statepool.studies.tasks import paired


@pytest.mark.parametrize("sweep", [s for s in SWEEPS if s.name != "growth" and not s.name.startswith("unknown")],
                         ids=lambda sweep: sweep.name)  # fmt: skip
def test_greedy_and_thompson_are_arms_throughout(sweep):
    for cell in sweep.cells:
        assert {*GREEDY, *THOMPSON, *SELF} <= set(cell.arms)


def test_growth_is_that_of_some_rules_too():
    (growth,) = (sweep for sweep in SWEEPS if sweep.name == "growth")
    assert all({"greedy 1", "Thompson 1", "self-tuned"} <= set(cell.arms) for cell in growth.cells)


def test_regret_over_time_ends_at_the_regret():
    given = {"family": "spread", "settings": {"horizon": 500}, "seed": 1, "stream": 2, "delay": 10, "arms": SELF}
    path = over_time(**given)
    assert len(path) == CHECKPOINTS
    assert list(checkpoints(500))[-1] == 500
    assert path[at("self-tuned", 500)] == pytest.approx(paired(**given)["self-tuned"])
