"""The latest outcomes whose state is known, as columns: what means, residuals and drift are computed from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, Ints

KEPT = 50_000
RIPE = 0.99
"""A decision is ripe when it is older than this part of the outcomes were when they came."""


class Means(NamedTuple):
    """Of each state or action: how many outcomes, their mean loss (NaN: none came)."""

    counts: Floats
    means: Floats


class LatestDecisions:
    """A value for each of the latest decisions, by its number."""

    def __init__(self, kept: int = 1 << 17) -> None:
        self._numbers = np.full(kept, -1, np.int64)
        self._values = np.zeros(kept, np.int64)

    def keep(self, number: int, value: int) -> None:
        self._numbers[number % self._numbers.size], self._values[number % self._values.size] = number, value

    def find(self, number: int) -> int | None:
        place = number % self._numbers.size
        return int(self._values[place]) if self._numbers[place] == number else None


class Lessons:
    """A ring, in which the oldest make room."""

    def __init__(self, kept: int = KEPT) -> None:
        self._columns = {name: np.zeros(kept, np.int64) for name in ("number", "age", "action", "state")}
        self._losses = np.zeros(kept)
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._losses.size)

    def add(self, number: int, age: int, action: int, state: int, loss: float) -> None:
        place = self._added % self._losses.size
        for column, value in zip(self._columns.values(), (number, age, action, state), strict=True):
            column[place] = value
        self._losses[place] = loss
        self._added += 1

    def correct(self, number: int, loss: float) -> None:
        """Replace the loss of a decision, which was a default and is known now."""
        self._losses[: len(self)][self.column("number") == number] = loss

    def column(self, name: str) -> Ints:
        return self._columns[name][: len(self)]

    @property
    def losses(self) -> Floats:
        return self._losses[: len(self)]

    def ripe(self) -> NDArray[np.bool_]:
        """Which are of decisions so old that nearly all outcomes of their time have come.

        Among younger ones only those with fast outcomes are here, and fast ones may be better or worse than slow ones.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        numbers = self.column("number")
        return np.asarray(numbers <= numbers.max() - np.quantile(self.column("age"), RIPE))

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
