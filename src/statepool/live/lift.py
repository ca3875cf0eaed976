"""Lift: how much less the learner loses than the holdout, with an interval that may be watched all the time.

The interval holds what is not refuted by a bet of finitely many tilts (t, u), with weights w that sum to at most 1,

    E(m, k) = Σ w · exp(t A - a log(1 + m (eᵗ - 1)) + u B - b log(1 + k (eᵘ - 1)))

where a outcomes of the learner lost A in all, and b of the holdout lost B. Whatever the losses in [0, 1], in whatever
order they come, E at the true means grows above 20 at any time with probability 1/20 at most, since every term is a
supermartingale (eᵗˣ ≤ 1 + x (eᵗ - 1)). The means may drift: m and k are then the averages, over the outcomes so far, of
what each was expected to lose given those before it, because log(1 + m (eᵗ - 1)) is concave in m. The pairs with
E < 20 are a convex set, and the interval is what that set says about k - m.

Most tilts go apart, learner against holdout in proportion to their shares, which is what the difference asks for; the
others go together and bound the level, and with it the variance. E needs counts and sums alone: a loss that is
taken back leaves no trace, and arms without variance need no exception.

Source: sub-Bernoulli mixtures, Howard, Ramdas, McAuliffe and Sekhon (Annals of Statistics 2021).
Differs from the source: two arms in one bet, and a finite mixture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, log
from typing import NamedTuple

import numpy as np

from statepool.checks import Floats

LEVEL = log(20.0)
"""Of 95 %."""

LARGEST_TILT, N_TILTS = 0.5, 24
"""A half suits thirty wins, each halving four times as many; the last suits 1e15."""
TOGETHER = 1 / 8
"""The weight of the tilts that bound the level."""
PRECISION = 1e-12


@dataclass(frozen=True)
class Tally:
    """The losses of one arm, each in [0, 1]: how many, and their sum."""

    count: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else float("nan")


class Lift(NamedTuple):
    """How much less the learner loses than the holdout, with its interval of 95 % at all times together."""

    value: float
    low: float
    high: float


def lift(learner: Tally, holdout: Tally, share: float) -> Lift | None:
    """None while either arm has no outcome; `share`: the holdout's part of the decisions, as it was set."""
    value = holdout.mean - learner.mean
    if not isfinite(value):
        return None
    bet = Bet(learner, holdout, share)
    return Lift(value, value - _reach(bet, value, -1), value + _reach(bet, value, 1))


class Bet:
    """log E, for the counts and sums of two arms: convex in the two means."""

    def __init__(self, learner: Tally, holdout: Tally, share: float) -> None:
        tilts, weights = make_tilts(share)
        self._counts = np.array([[learner.count], [holdout.count]])
        self._gains = np.log(weights) + np.array([learner.count * learner.mean, holdout.count * holdout.mean]) @ tilts
        self._growth = np.expm1(tilts)

    def against(self, mean: float, difference: float) -> tuple[float, float]:
        """log E against the learner's mean and that of the holdout, and its slope as both grow alike."""
        expected = 1 + np.array([[mean], [mean + difference]]) * self._growth
        terms = self._gains - (self._counts * np.log(expected)).sum(axis=0)
        parts = np.exp(terms - terms.max())
        slopes = -(self._counts * self._growth / expected).sum(axis=0)
        return float(terms.max() + np.log(parts.sum())), float(slopes @ parts)

    def against_difference(self, difference: float) -> float:
        """The least log E of all means with that difference."""
        low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
        return self.against(find_root(lambda mean: self.against(mean, difference)[1], low, high), difference)[0]


def make_tilts(share: float) -> tuple[Floats, Floats]:
    """(learner, holdout) tilts, one column each, and their weights."""
    steps = np.arange(N_TILTS)
    sizes, weights = LARGEST_TILT / 2.0**steps, 1 / ((steps + 2) * (steps + 3))  # the weights sum to less than a half
    apart, together = np.array([share, share - 1]) / max(share, 1 - share), np.ones(2)
    tilts = np.hstack([np.outer(direction, sizes) for direction in (apart, -apart, together, -together)])
    parts = (1 - TOGETHER, 1 - TOGETHER, TOGETHER, TOGETHER)
    return tilts, np.concatenate([part * weights for part in parts])


def _reach(bet: Bet, value: float, side: int) -> float:
    """How far from the difference seen the first one lies that is refuted, on one side."""
    return find_root(lambda distance: bet.against_difference(value + side * distance) - LEVEL, 0.0, 1 - side * value)


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing function is 0, or the end nearest to it."""
    from scipy.optimize import brentq  # slow to import

    if function(low) >= 0:
        return low
    return high if function(high) <= 0 else float(brentq(function, low, high, xtol=PRECISION, maxiter=1_000))
