"""A pool as it stands now, as the page reads it: its status, and the rows of the map that go with it."""

import time
from functools import cached_property
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.kernels import columns_of, effective_dimension
from statepool.live.dashboard import formatting
from statepool.live.pool import Pool
from statepool.live.status import Listing, Status

LARGE = 2_000_000
RARELY = 30.0
"""Maps of more than LARGE entries: their dimension is computed once in so many seconds."""


class Reading:
    """A status and the listing of its actions: values, which nobody moves."""

    def __init__(self, status: Status, listing: Listing) -> None:
        self.status, self.listing = status, listing
        _, self.numbers, self.distribution, self._learnt = status.playing
        self.states = [formatting.label(state) for state in status.states]

    def row(self, number: int) -> Floats:
        """An action's row of the map: the catalogue's, or the learnt one."""
        place = None if self._learnt is None else self._places.get(number)
        if self._learnt is None or place is None:
            return self.listing.rows[number]
        return self._learnt[:, place]

    def label(self, number: int) -> str:
        """An action as text; candidates that the catalogue does not have are all numbered below 0."""
        return formatting.label(self.listing.actions[number]) if number >= 0 else "a candidate of its own"

    @cached_property
    def columns(self) -> Floats:
        """The map that is played by: a row a state, a column an active action."""
        return columns_of(self.listing.rows[self.numbers]) if self._learnt is None else self._learnt

    @cached_property
    def _places(self) -> dict[int, int]:
        return {number: place for place, number in enumerate(self.numbers.tolist())}


def read(pool: Pool) -> Reading:
    """The pool now; where its catalogue changes between the two, numbers still name the same actions."""
    return Reading(pool.status(), pool.listing())


class Dimension:
    """v of the version being played, kept until there is another; rarely computed, where the map is large."""

    def __init__(self) -> None:
        self._key: Any = None
        self._value = 1.0
        self._at = 0.0

    def of(self, reading: Reading) -> float:
        key, now = reading.status.playing.key, time.monotonic()
        large = reading.distribution.size * len(reading.states) > LARGE
        if self._key is None or (key != self._key and not (large and now - self._at < RARELY)):
            self._value = float(effective_dimension(reading.columns, reading.distribution))
            self._key, self._at = key, now
        return self._value


def top(distribution: Floats, n: int) -> list[int]:
    """The places of the n largest, in order; of equals, the first."""
    if distribution.size > n:
        largest = np.argpartition(-distribution, n)[:n]
        return sorted(largest.tolist(), key=lambda place: (-distribution[place], place))
    return sorted(range(distribution.size), key=lambda place: (-distribution[place], place))
