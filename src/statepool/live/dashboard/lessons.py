"""The latest outcomes whose state is known, as columns: what means, residuals and drift are computed from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, Ints

KEPT = 50_000
RIPE = 0.99
"""A play is ripe when it is older than this part of the outcomes were when they came."""


class Means(NamedTuple):
    """Of each state or action: how many outcomes, their mean loss (NaN: none came)."""

    counts: Floats
    means: Floats


class LatestPlays:
    """A number for each of the latest decisions, by play."""

    def __init__(self, kept: int = 1 << 17) -> None:
        self._plays = np.full(kept, -1, np.int64)
        self._numbers = np.zeros(kept, np.int64)

    def keep(self, play: int, number: int) -> None:
        self._plays[play % self._plays.size], self._numbers[play % self._plays.size] = play, number

    def find(self, play: int) -> int | None:
        place = play % self._plays.size
        return int(self._numbers[place]) if self._plays[place] == play else None


class Lessons:
    """A ring, in which the oldest make room."""

    def __init__(self, kept: int = KEPT) -> None:
        self._columns = {name: np.zeros(kept, np.int64) for name in ("play", "age", "action", "state")}
        self._losses = np.zeros(kept)
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._losses.size)

    def add(self, play: int, age: int, action: int, state: int, loss: float) -> None:
        place = self._added % self._losses.size
        for column, value in zip(self._columns.values(), (play, age, action, state), strict=True):
            column[place] = value
        self._losses[place] = loss
        self._added += 1

    def correct(self, play: int, loss: float) -> None:
        """Replace the loss of a play, which was a default and is known now."""
        self._losses[: len(self)][self.column("play") == play] = loss

    def column(self, name: str) -> Ints:
        return self._columns[name][: len(self)]

    @property
    def losses(self) -> Floats:
        return self._losses[: len(self)]

    def ripe(self) -> NDArray[np.bool_]:
        """Which are of plays so old that nearly all outcomes of their time have come.

        Among younger plays only those with fast outcomes are here, and fast ones may be better or worse than slow ones.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        plays = self.column("play")
        return np.asarray(plays <= plays.max() - np.quantile(self.column("age"), RIPE))

    def of_states(self, n_states: int) -> Means:
        states = self.column("state")
        counts = np.bincount(states, minlength=n_states).astype(float)
        sums = np.bincount(states, self.losses, minlength=n_states)
        return Means(counts, np.divide(sums, counts, out=np.full(n_states, np.nan), where=counts > 0))

    def of_actions(self, numbers: list[int]) -> Means:
        """Outcomes and mean losses of a few actions."""
        counts, means = np.zeros(len(numbers)), np.full(len(numbers), np.nan)
        actions = self.column("action")
        for place, number in enumerate(numbers):
            mine = self.losses[actions == number]
            counts[place] = mine.size
            if mine.size:
                means[place] = mine.mean()
        return Means(counts, means)
