"""Compaction: what is old leaves the database for sealed segments, and stays a part of the journal.

A segment is written, read back and compared before the store is told of it; then its rows are deleted, a few thousand
at a time, so that others have their turn. Stopping at any moment loses nothing: a file that no store knows of is no
part of anything, and rows that a segment holds are not read any more, deleted or not. The chain of hashes goes on
across the seam, and so does everything else: replay, and late outcomes, which find their decision in the segment.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice, takewhile
from typing import Any

import msgspec

from statepool.live.errors import Damaged
from statepool.live.pool import Pool
from statepool.live.stores.folders import Folder, check_place
from statepool.live.stores.segments import Header, Segment, seal
from statepool.live.stores.store import Entry, Sealed, Store, View

MOST_EVENTS = 1_000_000
"""Of a segment."""
LEAST_EVENTS = 10_000
"""Fewer are not worth a file, and every file is one more place to look a ticket up."""
DELETED_AT_ONCE = 5_000


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
    _drop_rows(store, name)  # of one that was stopped before
    with store.view(name) as view:
        cutoff = view.clock() - round(older_than * 1e6)
    while (segment := _seal_next(store, name, cutoff, folder, least)) is not None:
        done.append(segment)
        _drop_rows(store, name)
    events = sum(each.last - each.first + 1 for each in done)
    return Compacted(name, events, len(done), sum(each.size for each in done), _count_left(store, name, cutoff))


def _count_left(store: Store, name: str, cutoff: int) -> int:
    with store.view(name) as view:
        return sum(1 for _ in _old_entries(view, cutoff))


def _old_entries(view: View, cutoff: int) -> Iterator[Entry]:
    return takewhile(lambda entry: entry.at < cutoff, view.entries(view.n_sealed()))


def _seal_next(store: Store, name: str, cutoff: int, place: str, least: int) -> Sealed | None:
    with store.view(name) as view:
        first = view.n_sealed() + 1
        if not _is_old(view, first + least - 1, cutoff):
            return None
        before = view.linked(first)[0]
        header, data = seal(name, before, islice(_old_entries(view, cutoff), MOST_EVENTS))
    if header.last - header.first + 1 < least:
        return None
    segment = write_segment(Folder(place), header, data)
    with store.batch(name) as batch:
        if batch.n_sealed() + 1 != first:
            raise ValueError(f"pool: {name!r} is being compacted by another process, expected one at a time")
        batch.seal(segment)
    return segment


def _is_old(view: View, seq: int, cutoff: int) -> bool:
    return seq <= view.head().seq and view.linked(seq)[1].at < cutoff


def write_segment(folder: Folder, header: Header, data: bytes) -> Sealed:
    """On disk, read back and compared, before anything is deleted."""
    digest = sha256(msgspec.msgpack.encode(header)).hexdigest()
    folder.write(f"{digest}.segment", data)
    written = Segment(folder, digest)
    faults: list[str] = []
    for _ in written.checked(faults):
        pass
    if faults or written.header != header:
        raise Damaged(faults[0] if faults else f"what was written to {folder} is not what is read there")
    return Sealed(header.first, header.last, header.after, digest, str(folder), len(data))


def _drop_rows(store: Store, name: str) -> None:
    """Each piece is a batch of its own."""
    count = 1
    while count:
        with store.batch(name) as batch:
            count = batch.drop_sealed(DELETED_AT_ONCE)
