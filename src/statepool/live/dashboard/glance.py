"""A pool as it stands now: the version being played, and the totals since it began.

The fold belongs to the threads that write. What can change under one's eyes is copied while they are held up, which is
short; what is made anew with each version is only pointed at, and its sums are done after.
"""

import time
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.kernels import effective_dimension
from statepool.live.fold import Fold
from statepool.live.journal import Journal
from statepool.live.lift import Tally
from statepool.live.pool import Pool

OLD = 10.0
"""Seconds after which a process that makes no decisions looks what it would play by now."""

LARGE = 2_000_000
RARELY = 30.0
"""Maps of more than LARGE entries: their dimension is computed once in so many seconds."""


@dataclass(frozen=True)
class Arm:
    count: int
    mean: float


class Glance(NamedTuple):
    fold: Fold
    """For its catalogue and settings; its sums belong to the writers."""
    key: tuple[int, ...]
    """Which version: another key, another play."""
    play: Floats
    ids: Ints
    arms: dict[str, Arm]
    counts: dict[str, int]
    plays: int
    lessons: int
    version: int
    """The event of the latest refresh, by whichever process; 0: none yet."""


def glance(pool: Pool, before: Glance | None) -> Glance:
    """Look, making a version only where the process has none to show."""
    journal = pool._journal

    def take(fold: Fold) -> Glance:
        key, play, ids = _playing(journal, fold, before)
        arms = {name: _arm(tally) for name, tally in fold.tallies.items()}
        return Glance(fold, key, play, ids, arms, dict(fold.counts), fold.plays, fold.lessons, fold.version)

    return journal.look(take)


def _arm(tally: Tally) -> Arm:
    return Arm(tally.count, tally.mean)


def _playing(journal: Journal, fold: Fold, before: Glance | None) -> tuple[tuple[int, ...], Floats, Ints]:
    playing, now = journal.playing, journal.now()
    old = playing is not None and now - playing.at > OLD * 1e6 and playing.is_stale(fold, now, inf)
    if playing is not None and journal.fold is fold and not old:
        return (playing.seq,), playing.version.play, playing.version.ids
    key = (0, fold.lessons, fold.changes)
    if before is not None and before.key == key and before.fold is fold:
        return key, before.play, before.ids
    version, _ = fold.make_version()
    return key, version.play, version.ids


class Rows:
    """Rows of the map: the catalogue's, or the learnt ones."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._ids: Any = None
        self._places: dict[int, int] = {}

    def __call__(self, number: int) -> Floats:
        ledger = self._fold.ledger
        if not ledger.learns_map:
            return self._fold.catalogue.row(number)
        if self._ids is not ledger.ids:
            self._ids = ledger.ids
            self._places = {each: place for place, each in enumerate(self._ids.tolist())}
        place = self._places.get(number)
        return self._fold.catalogue.row(number) if place is None else np.asarray(ledger.columns()[:, place])


class Dimension:
    """v of the version being played, kept until there is another; rarely, where the map is large."""

    def __init__(self) -> None:
        self._key: Any = None
        self._value = 1.0
        self._at = 0.0

    def of(self, seen: Glance) -> float:
        ledger, now = seen.fold.ledger, time.monotonic()
        large = seen.play.size * ledger.n_states > LARGE
        if self._key is None or (seen.key != self._key and not (large and now - self._at < RARELY)):
            if seen.play.size == len(ledger.ids):  # else the catalogue has changed since
                self._value = float(effective_dimension(ledger.columns(), seen.play))
            self._key, self._at = seen.key, now
        return self._value


def top(play: Floats, n: int) -> list[int]:
    """The places of the n largest, in order; of equals, the first."""
    if play.size > n:
        largest = np.argpartition(-play, n)[:n]
        return sorted(largest.tolist(), key=lambda place: (-play[place], place))
    return sorted(range(play.size), key=lambda place: (-play[place], place))
