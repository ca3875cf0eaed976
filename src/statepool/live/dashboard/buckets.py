"""Sums over short spans of time, which grow wider as the time they cover grows: a bounded number, however long.

All that a bucket holds is added up, so two neighbours make a wider one by adding theirs.
"""

from collections.abc import Iterator

import numpy as np

MOST = 120
WIDEST = 4096
"""Seconds: 120 of these are five to six days; what is older is dropped."""

TALLIES = (
    "decisions", "states", "outcomes", "expiries", "corrections", "learner", "learner_loss", "holdout", "holdout_loss",
)  # fmt: skip
"""The last four are the outcomes of each arm, and the sums of their losses."""

REACHED, SQUARES, SEEN, EXPECTED = range(4)
"""By state: sums of P(s|A) and P(s|A)² over decisions; states seen, and the sum of P(s|A) over those decisions."""

N_DELAYS = 48
"""Delays by powers of two, from a millisecond."""


class Bucket:
    def __init__(self, number: int, n_states: int) -> None:
        self.number = number
        self.tallies = dict.fromkeys(TALLIES, 0.0)
        self.by_state = np.zeros((4, n_states))
        self.delays = np.zeros(N_DELAYS)

    def add(self, other: "Bucket") -> None:
        for name, value in other.tallies.items():
            self.tallies[name] += value
        self.by_state += other.by_state
        self.delays += other.delays


class Buckets:
    """Buckets in order of time, `width` seconds each. Spans in which nothing happened have none."""

    def __init__(self, n_states: int) -> None:
        self.width = 1
        self._n_states = n_states
        self._kept: dict[int, Bucket] = {}

    def __iter__(self) -> Iterator[Bucket]:
        return iter(self._kept.values())

    def at(self, microseconds: int) -> Bucket:
        """The bucket of an event; one that comes from a clock that is behind goes with the latest."""
        number = microseconds // (self.width * 1_000_000)
        latest = next(reversed(self._kept), number)
        if number < latest:
            return self._kept.get(number) or self._kept[latest]
        if number not in self._kept:
            self._kept[number] = Bucket(number, self._n_states)
            self._make_room(number)
            return self.at(microseconds)
        return self._kept[number]

    def _make_room(self, newest: int) -> None:
        while newest - next(iter(self._kept)) >= MOST and self.width < WIDEST:
            self._widen()
            newest //= 2
        for number in [number for number in self._kept if newest - number >= MOST]:
            del self._kept[number]

    def _widen(self) -> None:
        self.width *= 2
        narrow, self._kept = self._kept, {}
        for bucket in narrow.values():
            number = bucket.number // 2
            if number in self._kept:
                self._kept[number].add(bucket)
            else:
                bucket.number = number
                self._kept[number] = bucket

    def total(self) -> Bucket:
        """All buckets added up."""
        whole = Bucket(0, self._n_states)
        for bucket in self:
            whole.add(bucket)
        return whole
