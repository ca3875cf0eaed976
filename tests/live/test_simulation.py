"""Live equals simulation: a pool driven by an instance, outcomes a fixed number of rounds late, plays as `simulate`."""

import inspect
from contextlib import suppress

import numpy as np
import pytest

import statepool as sp
from statepool.exact_run import play_exactly
from statepool.kernels import draw_outcome, draw_row
from statepool.live.live_learner import check_live
from statepool.live.luck import seed_bytes
from statepool.live.requests import Decide, Resolve
from statepool.stream import Stream

ROUNDS = 120
"""Three times the longest delay: every round compares all bits of a play, and `make soak` goes on for 20 000."""
LEARNERS = [
    sp.StateEXP3(rate=0.05),
    sp.StateEXP3(rate=0.05, groups=[0, 0, 1, 1], mixing=0.1),
    sp.SelfTuned(),
    sp.SelfTuned(learn_map=True),
    sp.CorrectedPool(),
    sp.PooledGreedy(forgetting=0.98, exploration=0.1),
    sp.PooledGreedy(exploration=0.1),
    sp.BestState(),
    sp.NaiveSharing(rate=0.05),
    sp.PooledThompson(mixing=0.1, samples=4),
    sp.Uniform(),
]
FAMILIES = {
    "funnel": lambda: sp.families.funnel(seed=0, n_actions=20, n_states=4, horizon=ROUNDS),
    "switching": lambda: sp.families.switching(seed=1, n_actions=12, horizon=ROUNDS),
    "hostile": lambda: sp.families.REGISTRY["resonance"](2, horizon=ROUNDS),
}


SEED = int.from_bytes(seed_bytes(1), "big")
"""Of a run whose learner draws by the same key as in a pool of seed 1."""


def drive(place, instance, learner, delay, seed):
    """The actions and plays of a pool that refreshes after every outcome, by the stream that a simulation draws on."""
    K, S = instance.P.shape
    P = None if getattr(learner, "learn_map", False) else instance.P
    pool = place.open(P=P, actions=range(K), states=range(S), learner=learner, refresh=1, seed=1)
    uniforms = iter(Stream.from_seed(seed).uniforms(3 * instance.horizon))
    outcomes, actions, plays = [], [], []
    for t in range(instance.horizon):
        late = [Resolve(f"{t - delay - 1}", outcomes[t - delay - 1])] if t > delay else []
        made = pool.run([*late, Decide(f"{t}", next(uniforms))])[-1]
        plays.append(pool._journal.playing.version.distribution.copy())
        state = draw_row(instance.P[made.action], next(uniforms))
        pool.observe(f"{t}", state)
        mean = instance.theta[t, state]
        outcomes.append(draw_outcome(mean, next(uniforms)) if mean > 0 else 0.0)
        actions.append(made.action)
    return np.array(actions), np.array(plays)


def fits(learner, instance):
    groups = getattr(learner, "groups", None)
    return groups is None or len(groups) == instance.P.shape[1]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize(("family", "delay"), [("funnel", 20), ("funnel", 0), ("switching", 7), ("hostile", 40)])
def test_a_pool_plays_as_the_exact_simulation_to_the_bit_and_as_the_other_up_to_rounding(
    sqlite, learner, family, delay
):
    instance = FAMILIES[family]()
    if not fits(learner, instance):
        learner = sp.StateEXP3(rate=0.2, groups=np.arange(instance.P.shape[1]) // 2, mixing=0.1)
    actions, plays = drive(sqlite, instance, learner, delay, SEED)
    exact = play_exactly(instance, learner, delay, Stream.from_seed(SEED))
    np.testing.assert_array_equal(actions, exact.actions)
    np.testing.assert_array_equal(plays, exact.plays)
    assert isinstance(learner, sp.Uniform) or len(np.unique(plays, axis=0)) > 1, "the play never changed"
    if not isinstance(learner, sp.PooledThompson):  # which draws anew in every round of a simulation
        run = sp.simulate(instance, learner, delay=delay, seed=SEED)
        np.testing.assert_array_equal(actions, run.actions)
        np.testing.assert_allclose(plays, run.plays(), rtol=0, atol=1e-12)


@pytest.mark.soak
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize(("family", "delay"), [("funnel", 20), ("switching", 7), ("spread", 50), ("band", 0)])
def test_twenty_thousand_rounds_to_the_bit(sqlite, learner, family, delay):
    instance = sp.families.REGISTRY[family](3, horizon=20_000)
    if not fits(learner, instance):
        learner = sp.StateEXP3(rate=0.2, groups=np.arange(instance.P.shape[1]) // 2, mixing=0.1)
    actions, plays = drive(sqlite, instance, learner, delay, SEED)
    exact = play_exactly(instance, learner, delay, Stream.from_seed(SEED))
    np.testing.assert_array_equal(actions, exact.actions)
    np.testing.assert_array_equal(plays, exact.plays)


def test_every_learner_that_can_run_live_is_here():
    can = set()
    for kind in sp.learners.REGISTRY.values():
        with suppress(ValueError):
            check_live(kind(rate=0.1) if "rate" in inspect.signature(kind).parameters else kind())
            can.add(kind)
    assert {type(learner) for learner in LEARNERS} == can
