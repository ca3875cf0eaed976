"""Who is held to the contract: every registered learner, and settings that reach the other branches."""

import inspect
from functools import cache

import numpy as np

import statepool as sp
from statepool.learners import find

HORIZON = 60
LEARNERS = {name: cls() for name, cls in sp.learners.REGISTRY.items()} | {
    "state-exp3 interleaved": sp.StateEXP3(copies="d+1", rate=0.3),
    "state-exp3 mixed": sp.StateEXP3(rate=0.3, mixing=0.1),
    "action-exp3 copies": sp.ActionEXP3(copies=3, mixing=0.1, rate=0.2),
    "counted-denominator short": find("counted-denominator")(block=14, rate=0.3),
    "counted-denominator predicted": find("counted-denominator")(denominator="predicted", block=14, rate=0.3),
    "safe-pool bold": find("safe-pool")(certified=False, rate=60.0, mixing=0.5),
    "pooled-greedy exploring": sp.PooledGreedy(forgetting=0.9, exploration=0.2),
    "pooled-thompson forgetting": sp.PooledThompson(forgetting=0.9),
    "zimmert-seldin shifted": find("zimmert-seldin")(scale=8.0, shift=True),
    "zimmert-seldin anytime": find("zimmert-seldin")(tuning="anytime"),
    "self-tuned learning": sp.SelfTuned(learn_map=True),
    "anytime skipping": find("anytime")(skip=True),
    "anytime by action": find("anytime")(pooled=False),
    "nsd-ucrl2 window": find("nsd-ucrl2")(window=1, radius=0.1),
    "delay-adapted alone": find("delay-adapted")(pooled=False, rate=0.3),
    "surrogate-index short": find("surrogate-index")(history=5),
}
LOOPED = (sp.PerContext, *map(find, (
    "anytime", "certified", "coin-graph", "evolving", "meta-bio", "nsd-ucrl2", "surrogate-index", "impatient-thompson",
)))  # fmt: skip
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
    """Whether the learner may play it: with contexts only those that know of them, where they get them at all."""
    if instance.contexts is None:
        return True
    if instance.given_map is None and getattr(learner, "copies", 1) != 1:
        return False  # refused where there are contexts
    return not learner.reads_losses and (learner.knows_contexts or instance.given_map is not None)


def map_of(instance: sp.Instance) -> np.ndarray:
    """The map, or maps, that learners get."""
    return instance.P if instance.given_map is None else instance.given_map


def rows_in(instance: sp.Instance, t: int) -> np.ndarray:
    """The rows of round t's request."""
    return instance.P if instance.contexts is None else instance.P[instance.contexts[t]]
