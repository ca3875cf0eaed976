"""What a store is: a table of events that only grows, written in batches, one writer at a time.

A batch is a transaction that starts by taking the pool's lock, so the order of `seq` is the order of commits and
nobody reads past a gap. When `batch` returns, all that was appended is on disk; if it raises, none of it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import NoneType
from typing import Any, NamedTuple

from statepool.live.errors import Conflict, Damaged, StoreUnavailable
from statepool.live.events import Kind, time_of
from statepool.live.stores.contents import Contents

PROBE_BYTES = 1 << 16
"""What a probe writes: more than the pages of a small batch, so that room for the one is room for the other."""

SILENT = 30 * 86_400 * 1_000_000
"""Microseconds after which a lane that nobody writes to is forgotten."""

MOST_CALLS = 100_000
"""Calls of administrators that are kept."""


class Head(NamedTuple):
    """Where a pool's journal ends: the last event, its hash, how many decisions there were, the epoch of the latest
    version."""

    seq: int
    hash: bytes
    decisions: int
    epoch: bytes = b""


class Entry(NamedTuple):
    """One event as stored, with the columns that it is found by (`events.columns_of`).

    `number`: of the decision that it is of, if any. `ticket`: of a decision, unless it follows from `number`; or the
    name of rows that a request brought.
    """

    seq: int
    kind: Kind
    ticket: str | None
    number: int | None
    body: bytes
    hash: bytes

    @property
    def at(self) -> int:
        """When it happened, as its body says."""
        return time_of(self.body)


KINDS: tuple[Kind, ...] = (
    "decision", "state", "outcome", "expiry", "correction", "refresh", "rows", "catalogue", "erasure",
)  # fmt: skip
"""By their numbers in the tables."""
NUMBERS: dict[Kind, int] = {kind: number for number, kind in enumerate(KINDS)}


def kind_of(number: int) -> Kind:
    if type(number) is not int or not 0 <= number < len(KINDS):
        raise Damaged(f"the store holds an event of kind {number!r:.40}: run `statepool replay` on this store")
    return KINDS[number]


class Key(NamedTuple):
    """An API key: its hash and role, the second it ends at (None: never), the pools it is for (none named: all)."""

    name: str
    hash: str
    role: str
    until: int | None = None
    pools: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, digest: str, role: str, until: int | None, pools: str) -> "Key":
        return cls(name, digest, role, until, tuple(pools.split()))


class Call(NamedTuple):
    """Something that took an administrator: when (microseconds), by whose key, from where, what, and the answer."""

    at: int
    who: str
    address: str
    did: str
    status: int
    said: str = ""


class Sealed(NamedTuple):
    """A segment that holds the events from `first` to `last`, whose hash is `hash`; its digest, and where it lies."""

    first: int
    last: int
    hash: bytes
    digest: str
    place: str
    size: int


class Loose(NamedTuple):
    """A file of a segment that is no part of the journal, and where it lies; `at`: since when it is being written, or,
    negative, since when it is to be removed."""

    digest: str
    place: str
    at: int


class LaneRow(NamedTuple):
    """A decision on disk that is not in the journal yet, the `place`-th of its lane; its hash follows from that of the
    one before. Without a ticket: the last one that the journal took over, kept for its hash."""

    lane: bytes
    place: int
    ticket: str | None
    at: int
    body: bytes
    hash: bytes


class Standing(NamedTuple):
    """Where a pool's journal ends, how many decisions wait for an outcome, when the oldest of them was made, and how
    many of them are in lanes and not in the journal yet."""

    head: Head
    pending: int
    oldest: int | None
    in_lanes: int = 0


class Standings(NamedTuple):
    """By the pools' names, and the store's clock, which `oldest` is of."""

    clock: int
    pools: dict[str, Standing]


class Overdue(NamedTuple):
    """A decision without an outcome."""

    number: int
    ticket: str
    at: int


class View(ABC):
    """Reading one pool, consistently."""

    @abstractmethod
    def head(self) -> Head:
        """Where the journal ends; (0, b"", 0, b"") for a pool without events."""

    @abstractmethod
    def clock(self) -> int:
        """The time of the store in microseconds, one for all its users: the machine's, or the server's."""

    @abstractmethod
    def entries(self, after: int = 0, without: Kind | None = None) -> Iterator[Entry]:
        """Events with seq > after, in order, read in pieces (never all in memory)."""

    @abstractmethod
    def catalogue(self) -> list[int]:
        """The places of the events of kind "catalogue", in order."""

    @abstractmethod
    def linked(self, seq: int) -> tuple[bytes, Entry]:
        """One event, and the hash of the one before it (empty for the first)."""

    @abstractmethod
    def linked_catalogue(self, after: int, last: int) -> Iterator[tuple[bytes, Entry]]:
        """`linked` of each event of kind "catalogue" with after < seq <= last, read in pieces; `after` is not 0."""

    @abstractmethod
    def bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        """What is known of each ticket: the bodies of its events by kind (tickets that are not known are absent)."""

    @abstractmethod
    def bodies_of(self, numbers: Sequence[int]) -> dict[int, dict[Kind, bytes]]:
        """The same of decisions by their numbers."""

    @abstractmethod
    def entries_of(self, ticket: str) -> list[Entry]:
        """The events of a ticket, in order."""

    @abstractmethod
    def pending(self, before: int | None = None, limit: int | None = None) -> list[Overdue]:
        """Decisions without outcome or expiry, oldest first, decided before a time (microseconds) if one is given."""

    @abstractmethod
    def n_pending(self) -> int:
        """How many there are."""

    @abstractmethod
    def n_in_lanes(self) -> int:
        """How many decisions are in lanes, and not in the journal yet."""

    @abstractmethod
    def lane_rows(self) -> list[LaneRow]:
        """Decisions in lanes, lane by lane and in order, each lane after the last one that the journal took over."""

    @abstractmethod
    def snapshot(self) -> tuple[int, bytes] | None:
        """The latest snapshot: after which event, and its bytes."""

    @abstractmethod
    def n_sealed(self) -> int:
        """The last event that a segment holds; 0: there are no segments."""

    @abstractmethod
    def sealed(self) -> list[Sealed]:
        """The segments that hold the first events of the journal, in order."""

    @abstractmethod
    def loose(self) -> list[Loose]:
        """Files of segments that are no part of the journal."""

    @abstractmethod
    def has_erased_since(self, seq: int) -> bool:
        """Whether something was erased after that event."""

    @abstractmethod
    def checked(self, faults: list[str]) -> Iterator[Entry]:
        """All events; what is wrong with what segments keep beside theirs is added to the faults, a sentence each."""

    @abstractmethod
    def damage(self) -> list[str]:
        """What the database itself finds wrong with its files, a sentence each; after it, reading goes by indexes."""


class Batch(View):
    """Writing one pool, alone."""

    @abstractmethod
    def append(self, entries: Sequence[Entry], head: Head, opened: Sequence[Overdue] = ()) -> None:
        """Add events, whose seq go on from the present head without a gap, and move the head.

        The decisions among them (`opened`) become pending; an outcome or an expiry of its `number` ends that. The same
        kind twice of one, or the same ticket, is refused by the table itself.
        """

    @abstractmethod
    def save_snapshot(self, seq: int, blob: bytes) -> None:
        """Replace the snapshot."""

    def hand_on(self, row: bytes) -> None:
        """Replace the row that lanes find beside the head (`LaneBatch.handed_on`)."""
        raise NotImplementedError

    @abstractmethod
    def seal(self, segment: Sealed) -> None:
        """From here on a segment holds the next events; it follows the one before, and was announced."""

    @abstractmethod
    def announce(self, digest: str, place: str) -> None:
        """A file of a segment is about to be written."""

    @abstractmethod
    def condemn(self, digests: Sequence[str]) -> None:
        """Loose files are to be removed: whoever is writing one cannot have it sealed any more."""

    @abstractmethod
    def drop_loose(self, digests: Sequence[str]) -> None:
        """Loose files are gone."""

    @abstractmethod
    def erase(self, changed: Sequence[Entry]) -> None:
        """Other tickets and bodies for events, where there are rows of them, and other tickets for decisions that wait;
        hashes stay."""

    @abstractmethod
    def replace_segment(self, old: Sealed, new: Sealed) -> None:
        """Another segment for the same events, which was announced (the old one is to be removed), or the same one in
        another place."""

    @abstractmethod
    def drop_sealed(self, limit: int) -> int:
        """Delete rows of events that segments hold, at most so many; how many there were."""

    @abstractmethod
    def take_over(self, last: Sequence[LaneRow]) -> None:
        """The journal has the decisions of these lanes up to these: of each the hash is kept, and nothing else.

        What is kept of lanes that are `SILENT` by the store's clock is dropped: whoever comes back begins another lane.
        """


class LaneBatch(View):
    """Writing decisions to a lane of one's own, beside everybody else."""

    @abstractmethod
    def add(self, rows: Sequence[LaneRow], before: bytes, between: tuple[int, int]) -> None:
        """Decisions that go on from the hash `before`, to be kept if the journal ends between these events now."""

    @abstractmethod
    def handed_on(self) -> bytes | None:
        """The row that the latest batch left for lanes; None: there is none, or the head is the known one."""

    kept = False
    """After the end: whether they were kept. If not, the lane is not as it was, or the journal has gone on too far."""


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last of each run of numbers without a gap: what is asked for together is often of one run."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def check_gapless(before: Head, entries: Sequence[Entry], after: Head, opened: Sequence[Overdue]) -> None:
    """Events and decisions go on from one head to the next, and each of those is opened."""
    if [entry.seq for entry in entries] != list(range(before.seq + 1, after.seq + 1)):
        raise ValueError(f"events must go on from {before.seq} to {after.seq} without a gap")
    expected = list(range(before.decisions, after.decisions))
    if [entry.number for entry in entries if entry.kind == "decision"] != expected:
        raise ValueError(f"decisions must go on from {before.decisions} to {after.decisions} without a gap")
    if [each.number for each in opened] != expected:
        raise ValueError(f"decisions {before.decisions} to {after.decisions} are written, expected them to be opened")


def check_replaced(old: Sealed, count: int) -> None:
    """A segment that somebody else has replaced meanwhile is not replaced."""
    if count != 1:
        raise StoreUnavailable(f"segment {old.digest} was replaced by another process: try again")


def check_announced(digest: str, count: int) -> None:
    if count != 1:
        raise Conflict(f"segment {digest} was cleared away by another process before it was sealed: try again")


def missing_event(seq: int) -> Damaged:
    return Damaged(f"the journal has no event {seq}, or none before it: run `statepool replay` on this store")


def entry_of_row(seq: int, kind: int, ticket: str | None, number: int | None, body: bytes, digest: bytes) -> Entry:
    """A bit that is flipped in a SQLite file may make something else of a number, whatever the table promises."""
    if (
        type(seq) is not int or type(ticket) not in (str, NoneType) or type(number) not in (int, NoneType)
        or type(body) is not bytes or type(digest) is not bytes
    ):  # fmt: skip
        raise Damaged(f"event {seq!r:.40} has a column of another type than events have: run `statepool replay`")
    return Entry(seq, kind_of(kind), ticket, number, body, digest)


def check_linked(seq: int, rows: Sequence[Sequence[Any]]) -> tuple[bytes, Entry]:
    """The last of at most two rows, and the hash of the one before it."""
    entries = [entry_of_row(*row) for row in rows]
    if [entry.seq for entry in entries] != list(range(max(seq - 1, 1), seq + 1)):
        raise missing_event(seq)
    return (entries[0].hash if len(entries) == 2 else b""), entries[-1]


class Store(ABC):
    """A place that holds pools, and who may use them."""

    connections = 0
    """Grows whenever the store was lost and found again: what was read or written but not acknowledged may be gone."""

    @abstractmethod
    def pools(self) -> list[str]:
        """The names, sorted."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether there is a pool of that name, with events or without."""

    @abstractmethod
    def standings(self) -> "Standings":
        """Where every pool stands, at a price that does not grow with what it holds."""

    @abstractmethod
    def ensure(self, name: str) -> None:
        """Make an empty pool of that name unless it is there; racing callers all succeed."""

    @abstractmethod
    def batch(self, name: str) -> AbstractContextManager[Batch]:
        """Take the pool's lock; commit at the end, roll back on any exception. Raises StoreUnavailable."""

    has_lanes = False
    """Whether decisions may be written without the pool's lock; a SQLite file has one writer whatever one does."""

    def lane(self, name: str, known: bytes = b"") -> AbstractContextManager[LaneBatch]:
        """Write to a lane: nobody is waited for. `known`: the hash of the head that the writer is level with.

        Raises Taken, or StoreUnavailable.
        """
        raise NotImplementedError

    @abstractmethod
    def view(self, name: str) -> AbstractContextManager[View]:
        """One consistent reading, beside writers."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """The API keys, by name."""

    @abstractmethod
    def add_key(self, name: str, digest: str, role: str, until: int | None = None, pools: tuple[str, ...] = ()) -> None:
        """Keep a key; a name that is taken is refused with a ValueError."""

    @abstractmethod
    def renew_key(self, name: str, digest: str, old_name: str, old_until: int, until: int | None) -> bool:
        """Another key of the same name, role and pools; the one before goes by its old name, and ends soon.

        False if there is no key of that name.
        """

    @abstractmethod
    def drop_key(self, name: str) -> bool:
        """Forget a key and its sessions; False if there was none."""

    @abstractmethod
    def add_session(self, digest: str, key: str, until: int) -> None:
        """Keep a session of the key with this hash until a time (seconds), and forget those that have ended."""

    @abstractmethod
    def session(self, digest: str) -> tuple[str, int] | None:
        """The hash of a session's key and when it ends; None if there is no such session."""

    @abstractmethod
    def add_call(self, call: Call) -> None:
        """Keep what an administrator did; the oldest make room."""

    @abstractmethod
    def calls(self, limit: int) -> list[Call]:
        """The latest ones, oldest first."""

    @abstractmethod
    def probe(self) -> None:
        """Write something of no meaning, as large as a batch; raises StoreUnavailable where that cannot be kept."""

    @abstractmethod
    def copy_to(self, path: str) -> None:
        """Everything of one moment, beside writers, into an empty SQLite file."""

    @abstractmethod
    def contents(self) -> AbstractContextManager[Contents]:
        """Everything of one moment, to be read."""

    @abstractmethod
    def fill(self, contents: Contents) -> None:
        """Take in everything of another store, all or nothing; refused with a ValueError unless this one is empty."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back; closing twice is harmless."""


def were_replaced(store: Store, name: str, view: View) -> bool:
    """Whether segments were written anew since a reading began, as `forget` does: it may not find the old ones."""
    with store.view(name) as now:
        return now.sealed() != view.sealed()
