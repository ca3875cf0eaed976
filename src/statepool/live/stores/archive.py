"""A journal read as a whole: its first events out of sealed segments, the others out of the database.

What is in segments is never changed, so a segment that was opened stays open, and blocks that were read are kept, up to
a number of bytes.
"""

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from statepool.live.errors import Damaged
from statepool.live.events import Decided, Kind, decode
from statepool.live.luck import number_of
from statepool.live.stores.folders import Folder
from statepool.live.stores.segments import Segment
from statepool.live.stores.store import Entry, Sealed, View, check_linked, entry_of_row, missing_event

MOST_BYTES = 32 << 20
AN_EVENT = 500
"""Bytes of an event in memory, roughly."""
MOST_OPEN = 1_000

Linked = tuple[bytes, Entry]


class Archive:
    """The segments that a store has read from; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._segments: OrderedDict[str, Segment] = OrderedDict()
        self._blocks: OrderedDict[tuple[str, int], list[Linked]] = OrderedDict()
        self._bytes = 0

    def open(self, sealed: Sealed) -> Segment:
        with self._lock:
            found = self._segments.get(sealed.digest)
        if found is None:
            found = Segment(Folder(sealed.place), sealed.digest)
        if (found.header.first, found.header.last, found.header.after) != (sealed.first, sealed.last, sealed.hash):
            raise Damaged(f"segment {found.name} is not the one that the store knows by that name")
        with self._lock:
            self._segments[sealed.digest] = found
            self._segments.move_to_end(sealed.digest)
            if len(self._segments) > MOST_OPEN:
                self._segments.popitem(last=False)
        return found

    def block(self, sealed: Sealed, seq: int) -> list[Linked]:
        """The block that holds an event."""
        segment = self.open(sealed)
        key = sealed.digest, segment.stretch_of(seq)
        with self._lock:
            found = self._blocks.get(key)
            if found is not None:
                self._blocks.move_to_end(key)
                return found
        found = segment.entries(key[1])
        with self._lock:
            if key not in self._blocks:
                self._blocks[key] = found
                self._bytes += _size(found)
            while self._bytes > MOST_BYTES and len(self._blocks) > 1:
                self._bytes -= _size(self._blocks.popitem(last=False)[1])
        return found


def _size(block: list[Linked]) -> int:
    return sum(len(entry.body) + AN_EVENT for _, entry in block)


def _ticket_of(body: bytes) -> str | None:
    event = decode(body)
    return event.ticket if isinstance(event, Decided) else None


def is_of(ticket: str, found: dict[Kind, bytes]) -> bool:
    """Whether the events that a ticket led to are its own; one that was looked up by its number may be another's."""
    if "decision" not in found:
        return "rows" in found
    return number_of(ticket) is None or _ticket_of(found["decision"]) == ticket


def _next(after: int, seq: int) -> int:
    """The number of the event read after another: an index that is damaged may lead back, and be read for ever."""
    if seq <= after:
        raise Damaged(f"the events of the store are out of order: {seq} stands after {after}")
    return seq


class WholeView(View):
    """What a store has to say of its own rows (`_tail…`) and of its segments (`sealed`) becomes the whole journal."""

    _archive: Archive
    _n_sealed: int
    """The last event that a segment holds; rows up to there may still be there, and are not read."""

    @abstractmethod
    def _tail(self, after: int, without: Kind | None) -> Iterator[Entry]: ...

    @abstractmethod
    def _tail_catalogue(self) -> list[int]: ...

    @abstractmethod
    def _tail_rows(self, first: int, last: int) -> list[Any]: ...

    @abstractmethod
    def _tail_linked_catalogue(self, after: int, last: int) -> list[Any]:
        """At most so many rows as are read at once: the hash before, and the columns of an entry."""

    @abstractmethod
    def _tail_bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        """By the column of tickets, or else of the decision whose number a ticket begins with."""

    @abstractmethod
    def _tail_bodies_of(self, numbers: Sequence[int]) -> dict[int, dict[Kind, bytes]]: ...

    @abstractmethod
    def _tail_entries_of(self, number: int) -> list[Entry]: ...

    def n_sealed(self) -> int:
        return self._n_sealed

    def entries(self, after: int = 0, without: Kind | None = None) -> Iterator[Entry]:
        if after < self._n_sealed:
            yield from self._sealed_entries(after, without)
        after = max(after, self._n_sealed)
        for entry in self._tail(after, without):
            after = _next(after, entry.seq)
            yield entry

    def _sealed_entries(self, after: int, without: Kind | None) -> Iterator[Entry]:
        for sealed in self.sealed():
            while after < sealed.last:
                seq = max(after + 1, sealed.first)
                for _, entry in self._archive.block(sealed, seq):
                    if entry.seq > after:
                        after = entry.seq
                        if entry.kind != without:
                            yield entry

    def catalogue(self) -> list[int]:
        of_segments = [entry.seq for _, entry in self._sealed_catalogue()] if self._n_sealed else []
        return of_segments + self._tail_catalogue()

    def _sealed_catalogue(self) -> Iterator[Linked]:
        for sealed in self.sealed():
            yield from self._archive.open(sealed).catalogue()

    def linked(self, seq: int) -> Linked:
        if 0 < seq <= self._n_sealed:
            return self._sealed_linked(seq)
        rows = self._tail_rows(seq - 1 if seq != self._n_sealed + 1 else seq, seq)
        if seq == self._n_sealed + 1 > 1:
            if len(rows) != 1:
                raise missing_event(seq)
            return self._seam(), entry_of_row(*rows[0])
        return check_linked(seq, rows)

    def _sealed_linked(self, seq: int) -> Linked:
        for sealed in self.sealed():
            if sealed.first <= seq <= sealed.last:
                block = self._archive.block(sealed, seq)
                return block[seq - block[0][1].seq]
        raise missing_event(seq)

    def _seam(self) -> bytes:
        """The hash of the last event that is sealed."""
        return self.sealed()[-1].hash

    def linked_catalogue(self, after: int, last: int) -> Iterator[Linked]:
        if after < self._n_sealed:
            yield from (pair for pair in self._sealed_catalogue() if after < pair[1].seq <= last)
        after = max(after, self._n_sealed)
        while rows := self._tail_linked_catalogue(after, last):
            for before, *row in rows:
                after = _next(after, row[0])
                if row[0] == self._n_sealed + 1:
                    before = self._seam()
                if before is None:
                    raise missing_event(row[0])
                yield before, entry_of_row(*row)

    def bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        known = {ticket: found for ticket, found in self._tail_bodies(tickets).items() if is_of(ticket, found)}
        if self._n_sealed:
            # What happens to a ticket comes after its decision: one that is decided in the tail has nothing sealed.
            for ticket in [each for each in dict.fromkeys(tickets) if each not in known]:
                found = self._sealed_bodies(ticket)
                if found:
                    known[ticket] = found
        return known

    def _sealed_bodies(self, ticket: str) -> dict[Kind, bytes]:
        for sealed in self.sealed():
            for seq in self._archive.open(sealed).find(ticket):
                entry = self._at(sealed, seq)
                if entry.kind == "rows" and entry.ticket == ticket:
                    return {"rows": entry.body}
                if entry.kind == "decision" and entry.number is not None and is_of(ticket, {"decision": entry.body}):
                    return {each.kind: each.body for each in self._entries_of_decision(entry.number, ticket)}
        return {}

    def bodies_of(self, numbers: Sequence[int]) -> dict[int, dict[Kind, bytes]]:
        known = self._tail_bodies_of(numbers)
        if self._n_sealed:
            for number in [each for each in dict.fromkeys(numbers) if "decision" not in known.get(each, {})]:
                found = {entry.kind: entry.body for entry in self._entries_of_decision(number)}
                if found:
                    known[number] = found
        return known

    def _entries_of_decision(self, number: int, ticket: str | None = None) -> list[Entry]:
        """The events of a decision, in order; old segments are faster to search if its ticket is known."""
        found = {entry.seq: entry for entry in self._tail_entries_of(number)}
        if not any(entry.kind == "decision" for entry in found.values()):
            for sealed in self.sealed():
                events = [self._at(sealed, seq) for seq in self._archive.open(sealed).find_number(number, ticket)]
                found |= {entry.seq: entry for entry in events if entry.number == number}
                ticket = ticket or next((_ticket_of(each.body) for each in events if each.kind == "decision"), None)
        return [found[seq] for seq in sorted(found)]

    def entries_of(self, ticket: str) -> list[Entry]:
        known = self.bodies([ticket]).get(ticket, {})
        made = decode(known["decision"]) if "decision" in known else None
        return self._entries_of_decision(made.number, ticket) if isinstance(made, Decided) else []

    def _at(self, sealed: Sealed, seq: int) -> Entry:
        block = self._archive.block(sealed, seq)
        return block[seq - block[0][1].seq][1]

    def checked(self, faults: list[str]) -> Iterator[Entry]:
        for sealed in self.sealed():
            yield from self._archive.open(sealed).checked(faults)
        yield from self.entries(self._n_sealed)

    def _check_next(self, segment: Sealed) -> None:
        """A segment goes on where the last one ended, and ends at an event of the journal."""
        if segment.first != self._n_sealed + 1 or self.linked(segment.last)[1].hash != segment.hash:
            raise ValueError(f"events {segment.first} to {segment.last} are not the next to be sealed")
