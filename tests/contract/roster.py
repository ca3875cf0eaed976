"""Who is held to the contract: every registered learner, and settings that reach the other branches."""

import inspect
from functools import cache

import statepool as sp

HORIZON = 60
LEARNERS = {name: cls() for name, cls in sp.learners.REGISTRY.items()} | {
    "state-exp3 interleaved": sp.StateEXP3(copies="d+1", rate=0.3),
    "state-exp3 mixed": sp.StateEXP3(rate=0.3, mixing=0.1),
    "action-exp3 copies": sp.ActionEXP3(copies=3, mixing=0.1, rate=0.2),
    "counted-denominator short": sp.CountedDenominator(block=14, rate=0.3),
    "counted-denominator predicted": sp.CountedDenominator(denominator="predicted", block=14, rate=0.3),
    "safe-pool bold": sp.SafePool(certified=False, rate=60.0, smoothing=0.1, mixing=0.5),
    "pooled-greedy exploring": sp.PooledGreedy(forgetting=0.9, exploration=0.2),
    "pooled-thompson forgetting": sp.PooledThompson(forgetting=0.9),
    "zimmert-seldin shifted": sp.ZimmertSeldin(scale=8.0, shift=True, mixing=0.1),
}
ORACLES = ("greedy-stale", "optimistic-stale")
SIZES = {"n_actions": 9, "horizon": HORIZON}


@cache
def instance_of(family: str, seed: int = 0) -> sp.Instance:
    """A small member of a family."""
    make = sp.families.REGISTRY[family]
    known = inspect.signature(make).parameters
    return make(seed, **{name: size for name, size in SIZES.items() if name in known})
