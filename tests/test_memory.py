"""Peak memory beyond inputs, stream and records: O(K·|S| + (K or 1)·in-flight), at 200 000 actions."""

import tracemalloc

import numpy as np
import pytest

import statepool as sp

K, S = 200_000, 4
COLUMN = 8 * K
ROUND = 3 * 8 + 4 + 4 + 8  # uniforms, action, state, outcome
SLACK = 1 << 20


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(S), size=K)
    return lambda horizon: sp.Instance(P, np.full((horizon, S), 0.5))


def peak(instance, learner, delay):
    sp.simulate(instance, learner, delay)  # compiled before the count starts
    tracemalloc.start()
    try:
        run = sp.simulate(instance, learner, delay)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.actions.size * 16 <= held < run.actions.size * 16 + SLACK  # nothing outlives a run but its records
    return most - ROUND * instance.horizon


NARROW = [
    sp.StateEXP3(), sp.ActionEXP3(), sp.learners.NaiveSharing(), sp.PooledGreedy(), sp.learners.BestState(),
    sp.learners.ZimmertSeldin(),
]  # fmt: skip
WIDE = [sp.learners.PlugIn(), sp.learners.CountedDenominator(block=10)]


@pytest.mark.parametrize("learner", NARROW, ids=lambda learner: type(learner).__name__)
def test_one_number_for_each_decision(learner, catalogue):
    sizes = [peak(catalogue(horizon), learner, delay) for horizon, delay in ((30, 3), (30, 20), (240, 20))]
    assert max(sizes) < COLUMN * (S + 7)
    assert max(sizes) - min(sizes) < SLACK  # neither the delay nor the horizon counts


@pytest.mark.parametrize(
    "learner",
    [*WIDE, pytest.param(sp.learners.SafePool(), marks=pytest.mark.soak)],
    ids=lambda learner: type(learner).__name__,
)
def test_one_number_for_each_action_and_decision(learner, catalogue):
    short, long, later = (peak(catalogue(horizon), learner, delay) for horizon, delay in ((40, 3), (40, 13), (80, 13)))
    assert short < COLUMN * (3 * S + 8 + 4)
    assert abs(long - short - 10 * COLUMN) < SLACK  # ten more in flight
    assert abs(later - long) < SLACK  # the horizon does not count


def test_ragged_delays_follow_what_is_in_flight(catalogue):
    delays = np.full(60, 10**9)
    delays[10:15] = 20
    assert peak(catalogue(60), sp.learners.PlugIn(), delays) < COLUMN * (2 * S + 5 + 1 + 5)


def test_model_holds_nothing_of_size_rounds_by_actions(catalogue):
    instance = catalogue(300)
    tracemalloc.start()
    try:
        instance.e2(5), instance.total_losses, instance.regret(np.zeros(300, int))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 40 * COLUMN < 8 * 300 * K
