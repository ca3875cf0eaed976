"""Live equals simulation: a pool that learns after every report plays the actions of `simulate`, to the bit."""

import inspect

import numpy as np
import pytest

import statepool as sp
from live.places import Clock
from statepool.kernels import draw_outcome, draw_row
from statepool.stream import Stream

FAMILIES = {
    "funnel": (lambda n: sp.families.funnel(seed=0, n_actions=20, n_states=4, horizon=n), 20),
    "switching": (lambda n: sp.families.switching(seed=1, n_actions=12, horizon=n), 7),
    "resonance": (lambda n: sp.families.REGISTRY["resonance"](2, horizon=n), 40),
    "band": (lambda n: sp.families.REGISTRY["band"](3, horizon=n), 0),
}


def runs_live():
    for kind in sp.learners.REGISTRY.values():
        learner = kind(rate=0.1) if "rate" in inspect.signature(kind).parameters else kind()
        if learner.runs_live:
            yield learner


def drive(place, instance, learner, delay):
    """The actions of a pool by the random numbers of a simulation whose seed is the pool's key."""
    K, S = instance.P.shape
    clock = Clock()
    given = {"P": instance.P, "actions": range(K), "states": range(S), "learner": learner, "clock": clock}
    pool = place.open(**given, update_every=10**9)
    uniforms = iter(Stream.from_seed(pool.definition.key).uniforms(3 * instance.horizon))
    outcomes, actions = [], []
    for t in range(instance.horizon):
        clock.now = t
        if t:
            pool.learn()
        made = pool.decide(f"{t}", uniform=next(uniforms))
        state = draw_row(instance.P[made.action], next(uniforms))
        pool.observe(f"{t}", state)
        mean = instance.theta[t, state]
        outcomes.append(draw_outcome(mean, next(uniforms)) if mean > 0 else 0.0)
        if t >= delay:
            pool.resolve(f"{t - delay}", outcomes[t - delay])
        actions.append(made.action)
    return pool, np.array(actions)


OFTEN = ("funnel", "band")
"""The families for every learner; the default learner is run on the others, too."""
EACH = [
    pytest.param(
        learner, family, id=f"{type(learner).__name__}-{family}",
        marks=[] if family in OFTEN or isinstance(learner, sp.SelfTuned) else pytest.mark.soak,
    )
    for learner in runs_live() for family in FAMILIES
]  # fmt: skip


@pytest.mark.parametrize(("learner", "family"), EACH)
def test_a_pool_plays_as_simulate(sqlite, learner, family):
    make, delay = FAMILIES[family]
    instance = make(80)
    pool, actions = drive(sqlite, instance, learner, delay)
    run = sp.simulate(instance, learner, delay=delay, seed=pool.definition.key)
    np.testing.assert_array_equal(actions, run.actions)
    assert pool.replay().fault is None
