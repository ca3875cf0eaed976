"""Who is held to the contract: every registered learner, and settings that reach the other branches."""

import inspect
from functools import cache

import numpy as np

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
    "zimmert-seldin advanced": sp.ZimmertSeldin(tuning="advanced", shift=True, mixing=0.1),
    "state-exp3 idle": sp.StateEXP3(copies="idle", rate=0.3),
    "state-exp3 cautious": sp.StateEXP3(rate=0.3, caution="rate/2"),
    "self-tuned learning": sp.SelfTuned(learn_map=True),
    "anytime skipping": sp.Anytime(skip=True),
    "anytime epochs": sp.Anytime(pooled=False, rule="epochs"),
    "anytime patient": sp.Anytime(pooled=False, rule="constant", patience=3),
    "meta-bio adaptive": sp.MetaBIO(adaptive=True),
    "nsd-ucrl2 window": sp.NSDUCRL2(window=1, radius=0.1),
    "delay-adapted alone": sp.DelayAdapted(pooled=False, rate=0.3),
    "surrogate-index short": sp.SurrogateIndex(history=5, pooled=False, rate=0.3),
}
LOOPED = (
    sp.Anytime, sp.Apart, sp.Certified, sp.CoinGraph, sp.Evolving, sp.MetaBIO, sp.NSDUCRL2, sp.SurrogateIndex,
    sp.ImpatientThompson,
)  # fmt: skip
"""Held to the contract in the loop alone: stepping and probing would compile each of them twice more. Some are stepped
through in `test_neighbours`."""
ORACLES = ("greedy-stale", "optimistic-stale")
SIZES = {"n_actions": 9, "horizon": HORIZON}


@cache
def instance_of(family: str, seed: int = 0) -> sp.Instance:
    """A small member of a family."""
    make = sp.families.REGISTRY[family]
    known = inspect.signature(make).parameters
    return make(seed, **{name: size for name, size in SIZES.items() if name in known})


def understands(learner: sp.learners.Learner, instance: sp.Instance) -> bool:
    """Whether the learner may play it: with contexts only those that know of them, where they are told at all."""
    if instance.contexts is None:
        return True
    if instance.told is None and getattr(learner, "copies", 1) != 1:
        return False  # refused where there are contexts
    return not learner.reads_losses and (learner.knows_contexts or instance.told is not None)


def told(instance: sp.Instance) -> np.ndarray:
    """The map, or maps, that learners are told."""
    return instance.P if instance.told is None else instance.told


def rows_in(instance: sp.Instance, t: int) -> np.ndarray:
    """The rows of round t's request."""
    return instance.P if instance.contexts is None else instance.P[instance.contexts[t]]
