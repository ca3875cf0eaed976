"""Sealed segments: stretches of a journal that have left the database, each in one file that is never changed.

    magic · length of the header · header · blocks

The header says which stretch of which pool this is, the hash before its first event and that of its last, and where
each block lies with the SHA-256 of its bytes; the file's name is the SHA-256 of the header. So a name vouches for every
byte, and one block can be read and checked without the others. A block holds a thousand bodies, compressed. Kinds,
times and hashes are not stored: they follow from the bodies and from the hash before the block. Two more sorts of
blocks help to find things: all events of the catalogue, and a sorted index of events, by the number of the decision
that each is of, and of decisions by their tickets.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from hashlib import blake2b, sha256
from secrets import token_bytes
from typing import NamedTuple

import msgspec
import numpy as np
import zstandard

from statepool.live.errors import Damaged
from statepool.live.events import Decided, Lesson, columns_of, decode, erased_of
from statepool.live.luck import HEX_LENGTH, number_of
from statepool.live.stores.folders import Folder
from statepool.live.stores.store import Entry

MAGIC = b"statepool segment 1\n"
EVENTS_A_BLOCK = 1_000
KEYS_A_CHUNK = 2_048
LEVEL = 9
LENGTH = 4
MARK = 8


class Piece(NamedTuple):
    """Where a block lies after the header, and the hash of its bytes."""

    offset: int
    size: int
    digest: bytes


class Stretch(NamedTuple):
    """A block of events: the first of them, how many, and the hash of the one before."""

    first: int
    events: int
    before: bytes
    piece: Piece


class Chunk(NamedTuple):
    """A part of the sorted index: its smallest key."""

    key: int
    piece: Piece


class Header(msgspec.Struct, frozen=True):
    """`before`: the hash of the event before `first`; `after`: that of `last`."""

    pool: str
    first: int
    last: int
    decisions: int = msgspec.field(name="plays")
    before: bytes
    after: bytes
    from_time: int
    to_time: int
    stretches: list[Stretch]
    catalogue: Piece
    index: list[Chunk]
    erased: dict[int, bytes] = {}
    """The hashes of events that were erased: they do not follow from what is left."""
    by_number: bool = msgspec.field(default=False, name="by_play")
    """Whether the index is by the numbers of decisions; the first segments have one by tickets alone."""
    mark: bytes = b""
    """Random: no two files have one name, whatever they hold."""


def digest_of(header: Header) -> str:
    """What a segment is called."""
    return sha256(msgspec.msgpack.encode(header)).hexdigest()


def key_of(ticket: str) -> int:
    """What a ticket is sorted by among the numbers of decisions, which are small."""
    return int.from_bytes(blake2b(ticket.encode(), digest_size=8).digest(), "big")


def old_key_of(ticket: str) -> int:
    """The same in a segment whose index is by tickets: one that was minted is sorted by its number."""
    if len(ticket) == HEX_LENGTH:
        try:
            return int(ticket[:16], 16)
        except ValueError:
            pass
    return key_of(ticket)


def keys_of(entry: Entry) -> list[int]:
    """What an event is found by."""
    keys = [] if entry.number is None else [entry.number]
    return keys if entry.ticket is None else [*keys, key_of(entry.ticket)]


def old_keys_of(entry: Entry) -> list[int]:
    """The same in a segment whose index is by tickets."""
    event = decode(entry.body)
    if isinstance(event, Decided | Lesson):
        return [old_key_of(event.ticket)]
    return [] if entry.ticket is None else [old_key_of(entry.ticket)]


def entry_of(seq: int, body: bytes, digest: bytes) -> Entry:
    """An event as the table had it: its columns are those of its bytes."""
    return Entry(seq, *columns_of(decode(body)), body, digest)


def seal(pool: str, before: bytes, entries: Iterable[Entry]) -> tuple[Header, bytes]:
    """The header and the bytes of a segment; the entries follow each other, and the hash `before`."""
    return _Sealing(pool, before).run(entries)


class _Sealing:
    def __init__(self, pool: str, before: bytes) -> None:
        self._pool, self._before = pool, before
        self._compress = zstandard.ZstdCompressor(level=LEVEL).compress
        self._payload = bytearray()
        self._keys, self._seqs = array("Q"), array("q")
        self._catalogue: list[tuple[int, bytes, bytes]] = []
        self._stretches: list[Stretch] = []
        self._bodies: list[bytes] = []
        self._erased: dict[int, bytes] = {}
        self._decisions = 0

    def run(self, entries: Iterable[Entry]) -> tuple[Header, bytes]:
        first = last = 0
        start = digest = self._before
        times = array("q")
        for entry in entries:
            first, last = first or entry.seq, entry.seq
            self._note(entry, digest)
            digest = entry.hash
            times.append(entry.at)
            if len(self._bodies) == EVENTS_A_BLOCK:
                start = self._end_block(last, start, digest)
        if self._bodies:
            self._end_block(last, start, digest)
        if not first:
            raise ValueError("a segment without events")
        header = Header(
            self._pool, first, last, self._decisions, self._before, digest, min(times), max(times), self._stretches,
            self._put(msgspec.msgpack.encode(self._catalogue)), self._index(first), self._erased, True,
            token_bytes(MARK),
        )  # fmt: skip
        head = msgspec.msgpack.encode(header)
        return header, MAGIC + len(head).to_bytes(LENGTH, "big") + head + bytes(self._payload)

    def _note(self, entry: Entry, before: bytes) -> None:
        self._bodies.append(entry.body)
        if erased_of(entry.body) is not None:
            self._erased[entry.seq] = entry.hash
        self._decisions += entry.kind == "decision"
        if entry.kind == "catalogue":
            self._catalogue.append((entry.seq, before, entry.body))
        for key in keys_of(entry):
            self._keys.append(key)
            self._seqs.append(entry.seq)

    def _end_block(self, last: int, before: bytes, after: bytes) -> bytes:
        bodies, self._bodies = self._bodies, []
        piece = self._put(msgspec.msgpack.encode(bodies))
        self._stretches.append(Stretch(last - len(bodies) + 1, len(bodies), before, piece))
        return after

    def _put(self, data: bytes) -> Piece:
        packed = self._compress(data)
        piece = Piece(len(self._payload), len(packed), sha256(packed).digest())
        self._payload += packed
        return piece

    def _index(self, first: int) -> list[Chunk]:
        keys, seqs = _sorted(self._keys, self._seqs)
        places = seqs - first
        return [self._chunk(keys[at : at + KEYS_A_CHUNK], places[at : at + KEYS_A_CHUNK])
                for at in range(0, len(keys), KEYS_A_CHUNK)]  # fmt: skip

    def _chunk(self, keys: np.ndarray, places: np.ndarray) -> Chunk:
        """Differences of sorted keys are small, and what is small is short when compressed."""
        steps = np.diff(keys, prepend=keys[:1])
        return Chunk(int(keys[0]), self._put(steps.astype(">u8").tobytes() + places.astype(">u4").tobytes()))


class Segment:
    """A segment in its folder; every block that is read is checked."""

    def __init__(self, folder: Folder, digest: str) -> None:
        self._folder, self.digest = folder, digest
        self.name = f"{digest}.segment"
        size = len(MAGIC) + LENGTH
        start = self._read(0, size)
        length = int.from_bytes(start[len(MAGIC) :], "big")
        head = self._read(size, length) if start.startswith(MAGIC) else b""
        if sha256(head).hexdigest() != digest:
            raise self._damaged("its header is not the one that its name is the hash of")
        self.header = msgspec.msgpack.decode(head, type=Header)
        self._begin = size + length
        self._firsts = [stretch.first for stretch in self.header.stretches]
        self._chunk_keys = [chunk.key for chunk in self.header.index]

    def _read(self, offset: int, size: int) -> bytes:
        data = self._folder.read(self.name, offset, size)
        if len(data) != size:
            raise self._damaged("it is shorter than it says")
        return data

    def _damaged(self, why: str) -> Damaged:
        return Damaged(f"segment {self.name} in {self._folder} is damaged: {why}; put a sound copy in its place")

    def block(self, piece: Piece) -> bytes:
        packed = self._read(self._begin + piece.offset, piece.size)
        if sha256(packed).digest() != piece.digest:
            raise self._damaged("the bytes of a block are not those that were sealed")
        return zstandard.ZstdDecompressor().decompress(packed)

    def stretch_of(self, seq: int) -> int:
        """The number of the block that holds an event."""
        return bisect_right(self._firsts, seq) - 1

    def entries(self, number: int) -> list[tuple[bytes, Entry]]:
        """The events of a block, each with the hash before it."""
        stretch = self.header.stretches[number]
        bodies = msgspec.msgpack.decode(self.block(stretch.piece), type=list[bytes])
        found, before, erased = [], stretch.before, self.header.erased
        for seq, body in enumerate(bodies, stretch.first):
            after = erased.get(seq) or sha256(before + body).digest()
            found.append((before, entry_of(seq, body, after)))
            before = after
        last = number + 1 == len(self.header.stretches)
        if before != (self.header.after if last else self.header.stretches[number + 1].before):
            raise self._damaged("its chain of hashes does not lead from one block to the next")
        return found

    def catalogue(self) -> Iterator[tuple[bytes, Entry]]:
        """The events of the catalogue, each with the hash before it."""
        kept = msgspec.msgpack.decode(self.block(self.header.catalogue), type=list[tuple[int, bytes, bytes]])
        for seq, before, body in kept:
            yield before, entry_of(seq, body, sha256(before + body).digest())

    def find(self, ticket: str) -> list[int]:
        """Events that a ticket may lead to, its decision among them."""
        if not self.header.by_number:
            return self._find(old_key_of(ticket))
        number = number_of(ticket)
        return self._find(key_of(ticket)) + ([] if number is None else self._find(number))

    def find_number(self, number: int, ticket: str | None) -> list[int]:
        """Events that may be of a decision; its ticket, if that is known, spares a search where the index is of
        tickets."""
        if self.header.by_number:
            return self._find(number)
        ticket = ticket or self._search(number)
        return [] if ticket is None else self._find(old_key_of(ticket))

    def _search(self, number: int) -> str | None:
        """The ticket of a decision: decisions are in order."""
        block = bisect_right(range(len(self._firsts)), number, key=self._first_number) - 1
        events = (decode(entry.body) for _, entry in (self.entries(block) if block >= 0 else ()))
        return next((each.ticket for each in events if isinstance(each, Decided) and each.number == number), None)

    def _first_number(self, start: int) -> int:
        """Of the decisions from a block on, the first."""
        blocks = range(start, len(self._firsts))
        numbers = (entry.number for block in blocks for _, entry in self.entries(block) if entry.kind == "decision")
        return next((number for number in numbers if number is not None), sys.maxsize)

    def _find(self, key: int) -> list[int]:
        found: list[int] = []
        at = max(bisect_left(self._chunk_keys, key) - 1, 0)
        for chunk in self.header.index[at:]:
            if chunk.key > key:
                break
            keys, places = self._unpack(self.block(chunk.piece), chunk.key)
            low, high = np.searchsorted(keys, np.uint64(key), "left"), np.searchsorted(keys, np.uint64(key), "right")
            found += [self.header.first + int(place) for place in places[low:high]]
        return found

    def _unpack(self, data: bytes, first: int) -> tuple[np.ndarray, np.ndarray]:
        count = len(data) // 12
        steps = np.frombuffer(data, ">u8", count).astype(np.uint64)
        places = np.frombuffer(data, ">u4", count, 8 * count)
        return np.cumsum(steps, dtype=np.uint64) + np.uint64(first), places

    def checked(self, faults: list[str]) -> Iterator[Entry]:
        """Its events; after the last of them, what is wrong with its index and its catalogue is among the faults."""
        keys, seqs, catalogue = array("Q"), array("q"), []
        keys_of_entry = keys_of if self.header.by_number else old_keys_of
        for number in range(len(self.header.stretches)):
            for before, entry in self.entries(number):
                if entry.kind == "catalogue":
                    catalogue.append((before, entry))
                for key in keys_of_entry(entry):
                    keys.append(key)
                    seqs.append(entry.seq)
                yield entry
        try:
            self._compare(catalogue, *_sorted(keys, seqs))
        except Damaged as damage:
            faults.append(str(damage))

    def _compare(self, catalogue: list[tuple[bytes, Entry]], keys: np.ndarray, seqs: np.ndarray) -> None:
        if list(self.catalogue()) != catalogue:
            raise self._damaged("its catalogue is not that of its events")
        chunks = [self._unpack(self.block(chunk.piece), chunk.key) for chunk in self.header.index]
        found = [np.concatenate([chunk[part] for chunk in chunks] or [np.empty(0)]) for part in (0, 1)]
        if not all(map(np.array_equal, found, (keys, seqs - self.header.first))):
            raise self._damaged("its index is not that of its events")


def _sorted(keys: "array[int]", seqs: "array[int]") -> tuple[np.ndarray, np.ndarray]:
    sorted_keys, sorted_seqs = np.array(keys, np.uint64), np.array(seqs, np.int64)
    order = np.lexsort((sorted_seqs, sorted_keys))
    return sorted_keys[order], sorted_seqs[order]
