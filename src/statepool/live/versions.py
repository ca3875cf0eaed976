"""A version of the play, ready to draw from: the learner's, within the shares, with the holdout laid over it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import dot

TINY = 1e-12
LARGEST = 2.0 / TINY


class Drawn(NamedTuple):
    """A position among the active actions, its probability, and whether it was kept from the learner."""

    place: int
    probability: float
    held: bool


class Version:
    """`pick` draws from `play`; both are of the learner, or, with shares, of the nearest play inside them."""

    def __init__(self, play: Floats, pick: Callable[[float], int], holdout: float, base: Floats | None) -> None:
        self.holdout = holdout
        self._pick = pick
        self._base = base
        self._base_sums = None if base is None else np.cumsum(base)
        self.play = play if base is None else (1 - holdout) * play + holdout * base

    def draw(self, uniform: float) -> Drawn:
        """The action of a uniform number; what is recorded is its probability over learner and holdout together."""
        held = uniform < self.holdout
        if held and self._base_sums is not None:
            place = draw_from(self._base_sums, uniform / self.holdout)
        else:
            place = self._pick((uniform - self.holdout) / (1 - self.holdout) if self.holdout else uniform)
        return Drawn(place, self.play.item(place), held)

    def reach(self, columns: Floats) -> Floats:
        """q, the probability of each state."""
        return np.array([dot(self.play, column) for column in columns])


def draw_from(sums: Floats, uniform: float) -> int:
    """The first place whose cumulative probability passes the number: never one of probability 0."""
    return min(int(np.searchsorted(sums, uniform * sums[-1], side="right")), sums.size - 1)


def within(play: Floats, low: Floats, high: Floats) -> Floats:
    """The play clip(c x, low, high) whose sum is 1: proportions are kept wherever no bound is in the way."""
    if high.sum() < 1:  # actions retired since: a decision is worth more than a bound
        high = high / high.sum()
    if low.sum() > 1:
        low = low / low.sum()
    spread = np.maximum(play, TINY)
    bottom, top = 0.0, 1.0
    while np.clip(top * spread, low, high).sum() < 1 and top < LARGEST:  # bounds may sum to a hair less than 1
        bottom, top = top, 2 * top
    for _ in range(100):  # halving a bracket of doubles a hundred times leaves neighbours
        middle = (bottom + top) / 2
        if np.clip(middle * spread, low, high).sum() < 1:
            bottom = middle
        else:
            top = middle
    fitted = np.clip(top * spread, low, high)
    return np.asarray(fitted / fitted.sum())
