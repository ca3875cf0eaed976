"""Compaction: what is old leaves the database for sealed segments, and stays a part of the journal.

A segment is written, read back and compared before the store is told of it; then its rows are deleted, a few thousand
at a time, so that others have their turn. Stopping at any moment loses nothing: a file that was not sealed is no part
of anything, and is removed by whoever comes next; rows that a segment holds are not read any more, deleted or not. The
chain of hashes goes on across the seam, and so does everything else: replay, and late outcomes, which find their
decision in the segment.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from statepool.live.errors import Conflict, StoreUnavailable
from statepool.live.loose_files import discard, remove_left_behind, write_segment
from statepool.live.pool import Pool
from statepool.live.stores.folders import Folder, check_place
from statepool.live.stores.segments import seal
from statepool.live.stores.store import Sealed, Store, View

MOST_EVENTS = 1_000_000
"""Of a segment."""
LEAST_EVENTS = 10_000
"""Fewer are not worth a file, and every file is one more place to look a ticket up."""
DELETED_AT_ONCE = 5_000
TRIES = 5
PROBES = 1_000


@dataclass(frozen=True)
class Compacted:
    """What has been done to a pool."""

    pool: str
    events: int
    segments: int
    size: int
    left: int
    """Events that are old enough, and too few to be sealed."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compact(store: Store, name: str, older_than: float, place: str, least: int = LEAST_EVENTS) -> Compacted:
    """Seal the events of a pool that are older than so many seconds; at least so many, or none."""
    if not 0 <= older_than < 1e12:
        raise ValueError(f"older-than: is {older_than!r} seconds, expected a span of time")
    if least < 1:
        raise ValueError(f"least: is {least!r}, expected at least 1 event")
    folder = check_place(place)
    Pool(store, name).snapshot()  # whoever opens the pool next reads no segment but for the catalogue
    done: list[Sealed] = []
    remove_left_behind(store, name)
    _drop_rows(store, name)  # of one that was stopped before
    with store.view(name) as view:
        cutoff = view.clock() - round(older_than * 1e6)
    while isinstance(found := _seal_next(store, name, cutoff, folder, least), Sealed):
        done.append(found)
        _drop_rows(store, name)
    events = sum(each.last - each.first + 1 for each in done)
    return Compacted(name, events, len(done), sum(each.size for each in done), found)


def _last_old(view: View, cutoff: int) -> int:
    """The last event that is old enough, of those that a segment could hold; what is before it is older still, whatever
    a clock that was ahead has stamped on it. Some events tell where to look, so that not all have to be read."""
    first, end = view.n_sealed(), min(view.n_sealed() + MOST_EVENTS, view.head().seq)
    step = max(1, (end - first) // PROBES)
    known = next((seq for seq in range(end, first, -step) if view.linked(seq)[1].at < cutoff), first)
    after = takewhile(lambda entry: entry.seq <= known + step, view.entries(known))
    return max((entry.seq for entry in after if entry.at < cutoff), default=known)


def _seal_next(store: Store, name: str, cutoff: int, place: str, least: int) -> Sealed | int:
    """A segment; or how many events are old, if those are fewer than `least`."""
    for _ in range(TRIES):
        with suppress(Conflict):  # something was forgotten meanwhile, which this segment would bring back
            return _try_to_seal(store, name, cutoff, place, least)
    raise StoreUnavailable(f"tickets of {name!r} were forgotten each time that a segment was written: try again")


def _try_to_seal(store: Store, name: str, cutoff: int, place: str, least: int) -> Sealed | int:
    with store.view(name) as view:
        first, seen, last = view.n_sealed() + 1, view.head().seq, _last_old(view, cutoff)
        if last - first + 1 < least:
            return last - first + 1
        before = view.linked(first)[0]
        header, data = seal(name, before, takewhile(lambda entry: entry.seq <= last, view.entries(first - 1)))
    segment = write_segment(store, Folder(place), header, data)
    try:
        with store.batch(name) as batch:
            if batch.n_sealed() + 1 != first:
                raise ValueError(f"pool: {name!r} is being compacted by another process, expected one at a time")
            if batch.has_erased_since(seen):
                raise Conflict(f"tickets of {name!r} were forgotten meanwhile: try again")
            batch.seal(segment)
    except ValueError:
        discard(store, name, [segment])
        raise
    return segment


def _drop_rows(store: Store, name: str) -> None:
    """Each piece is a batch of its own."""
    count = 1
    while count:
        with store.batch(name) as batch:
            count = batch.drop_sealed(DELETED_AT_ONCE)
