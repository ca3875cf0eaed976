"""Theorem D as a function: many contexts cost at most what a map of |S| states costs, however many there are.

    mean_k log K_k / rate + rate (k1 V + D)       constant rate, however large; k1 = (e^r - 1 - r)/r²

K_k is the number of actions that context k may be answered with, V >= sum_t (v_t - 1) with v of the joint map of
contexts and actions (at most the number of states), D every outstanding outcome in every round. The number of contexts
does not occur. Contexts are drawn independently of each other and of the losses, their shares and the maps are known,
losses and delays are fixed in advance, and the rate does not depend on the contexts of rounds in flight. The
comparator is any policy that is fixed in advance: `Instance.best_policy` is one.
Proof: docs/theory.md.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import ArrayLike

from statepool.guarantees.arguments import checked
from statepool.guarantees.paper import Guarantee
from statepool.guarantees.theorem_a import at_constant_rate, total_wait
from statepool.model import Instance


@checked
def theorem_d(
    log_actions: float, horizon: int, delay: int | ArrayLike, budget: float, rate: float | None = None
) -> Guarantee:
    """State-EXP3 on requests, told their shares, at a constant rate or the best one.

    `log_actions` is the mean over contexts of log K_k (`choices_of`), `budget` bounds sum_t (v_t - 1).

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_d(log_actions=5.3, horizon=20_000, delay=50, budget=30_000.0).value)
    4636
    """
    return at_constant_rate(log_actions, budget, total_wait(delay, horizon), rate)


@checked
def choices_of(instance: Instance) -> float:
    """The mean over requests of the logarithm of how many actions there were to choose from.

    >>> import statepool as sp
    >>> round(sp.guarantees.choices_of(sp.families.funnel(seed=0, horizon=10)), 3)  # log 200
    5.298
    """
    if instance.available is None:
        return log(instance.n_actions)
    return float(instance.shares @ np.log(instance.available.sum(axis=1)))
