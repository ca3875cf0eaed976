"""Theorem F as functions: one bound for overlap and drift, of Hinted State-EXP3.

    at a rate <= 1/(12 d)   log K/rate + rate (7 V + 2 d E) + 7 rate² d² V1 + d/12
    tuned, closed form      2 sqrt((8V + 2dE) log K) + min(12 d² log K, 4 (d² V1)^⅓ log^⅔ K + 12 d log K) + d/12
    parameter-free          9 max(12 d λ, 6.5 sqrt(λ (9.6 V + 3dE)), min(24 d² λ, 8.4 (d² V1)^⅓ λ^⅔))

λ is max(1, log K). V bounds sum_t (v_t - 1) and V1 = min(V, T) bounds sum_t min(1, v_t - 1). E is the drift between
actions, the largest over lags below 3d (`drift_between_actions`). The parameter-free bound holds for budgets that hold
on every path. The map is known, losses are fixed in advance, delays are at most d. Proofs: docs/theory.md,
docs/paper/theorem_f.tex.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from statepool.checks import check_number
from statepool.guarantees.arguments import LARGEST, checked
from statepool.guarantees.paper import Guarantee
from statepool.model import Instance

LARGEST_SHARE = 12
"""Theorem F holds for rates up to 1/(12 d)."""
CHUNK = 1 << 20


@checked
def drift_between_actions(instance: Instance, delay: int) -> float:
    """E: how far losses move apart within 3d rounds, the largest over lags l < 3d of sum_t |c_t - c_{t-l}|*².

    |f|* is half the range of f over actions, so movement that all actions share does not count. Takes 3d sweeps over
    the rounds.

    >>> import statepool as sp
    >>> shop = sp.families.funnel(seed=0, n_actions=20, horizon=2_000)
    >>> round(sp.guarantees.drift_between_actions(shop, delay=50), 3)
    0.111
    """
    if instance.contexts is not None:
        raise ValueError(f"instance: has {instance.n_contexts} contexts, expected one without: Theorem F knows none")
    rows = np.unique(instance.P, axis=0)
    theta = instance.theta
    most = 0.0
    for lag in range(1, min(3 * max(delay, 1), instance.horizon)):
        moved = theta[lag:] - theta[:-lag]
        step = max(1, CHUNK // len(rows))
        drift = 0.0
        for first in range(0, len(moved), step):
            change = moved[first : first + step] @ rows.T
            drift += float(((change.max(axis=1) - change.min(axis=1)) ** 2).sum()) / 4
        most = max(most, drift)
    return most


@checked
def theorem_f(
    n_actions: int, horizon: int, delay: int, budget: float, drift: float, rate: float | None = None
) -> Guarantee:
    """`HintedStateEXP3(rate)`, or at the best rate that is covered; `budget` bounds E sum_t (v_t - 1).

    >>> import statepool as sp
    >>> bound = sp.guarantees.theorem_f(n_actions=2, horizon=200_000, delay=20, budget=200_000.0, drift=50.0)
    >>> round(bound.value), round(1 / bound.rate)
    (2198, 1721)
    """
    d, size = max(delay, 1), log(n_actions)
    first, second = 7 * budget + 2 * d * drift, 7 * d**2 * min(budget, float(horizon))
    cap = 1 / (LARGEST_SHARE * d)
    if rate is None:
        rate = _best_rate(size, first, second, cap)
    check_number(rate, "rate", 0, LARGEST, open_low=n_actions > 1)
    if n_actions == 1:
        return Guarantee(0.0, rate, True)
    return Guarantee(size / rate + rate * first + rate**2 * second + d / 12, rate, rate <= cap * (1 + 1e-12))


def _best_rate(size: float, first: float, second: float, cap: float) -> float:
    """Where size/r + first r + second r² is least, r <= cap, by bisection of its derivative."""
    low, high = 0.0, cap
    if first * cap**2 + 2 * second * cap**3 <= size:
        return cap
    for _ in range(200):
        middle = (low + high) / 2
        if first * middle**2 + 2 * second * middle**3 < size:
            low = middle
        else:
            high = middle
    return high


@checked
def theorem_f_tuned(n_actions: int, horizon: int, delay: int, budget: float, drift: float) -> float:
    """The closed form of `theorem_f` at its best rate, never below it.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_f_tuned(n_actions=2, horizon=200_000, delay=20, budget=200_000.0, drift=50.0))
    3625
    """
    d, size = max(delay, 1), log(n_actions)
    narrow = min(budget, float(horizon))
    extra = min(12 * d**2 * size, 4 * (d**2 * narrow) ** (1 / 3) * size ** (2 / 3) + 12 * d * size)
    return 2 * sqrt((8 * budget + 2 * d * drift) * size) + extra + d / 12 if n_actions > 1 else 0.0


@checked
def theorem_f_free(n_actions: int, horizon: int, delay: int, budget: float, drift: float) -> float:
    """`HintedStateEXP3()`, which knows the map and the delay alone; `budget` bounds sum_t (v_t - 1) on every path.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_f_free(n_actions=2, horizon=10**7, delay=20, budget=1e7, drift=50.0))
    573190
    """
    d, size = max(delay, 1), max(1.0, log(n_actions))
    narrow = min(budget, float(horizon))
    extra = min(24 * d**2 * size, 8.4 * (d**2 * narrow) ** (1 / 3) * size ** (2 / 3))
    root = 6.5 * sqrt(size * (9.6 * budget + 3 * d * drift))
    return 9 * max(12 * d * size, root, extra) if n_actions > 1 else 0.0
