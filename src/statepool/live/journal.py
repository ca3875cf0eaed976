"""A pool's journal at work: the pool's state kept level with the store, and batches of requests written together.

A batch takes the pool's lock, catches up with what others wrote, answers its requests, appends their events and
commits; only then does anyone get an answer. Callers that wait for the same lock share one batch, and one fsync. Where
the store has lanes, decisions are drawn and written without that lock (`lanes`).

The pool's state stands on one event of the chain, named by its number and its hash. Where the store has another event
there (a backup was restored, a replica took over), it starts anew, and so does the process's epoch.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice, takewhile
from typing import Any, NamedTuple, TypeVar

from statepool.live.errors import Damaged, InTurn, StoreUnavailable, Taken
from statepool.live.events import AnyEvent, Opened, Refreshed, columns_of, encode
from statepool.live.forks import forks
from statepool.live.format import RULE
from statepool.live.group_commit import GroupCommit
from statepool.live.handed_on import Seal, hand_on, take_up
from statepool.live.hash_chain import chain, read_entry, read_linked
from statepool.live.lanes import Playing, Published
from statepool.live.lock_free import TRIES, LockFree
from statepool.live.pool_state import PoolState, Records
from statepool.live.snapshots import UnusableSnapshot, seal, unseal
from statepool.live.stores.store import Batch, Entry, Head, LaneBatch, Store, View
from statepool.live.writer import A_ROW, PlayedVersions, Request, Writer, answer, tickets_of

T = TypeVar("T")


class Timed(NamedTuple):
    """The seconds of a batch: until it had the lock, until it was written, until it was on disk; and its events."""

    waited: float
    worked: float
    committed: float
    events: int


log = logging.getLogger("statepool.live")

PIECE = 1_000
SNAPSHOT_EVERY = 10_000
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, in seconds: what a date can be


class _Publish:
    """A request for a version to draw from, which the lanes wait for."""

    ticket = None

    def answer(self, writer: Writer) -> None:
        writer.playing()


class Settle:
    """A request for nothing: its batch takes over what is in lanes."""

    ticket = None

    def answer(self, writer: Writer) -> None:
        pass


class Journal:
    """One process's side of a pool's journal; safe to share between threads. Without a `clock` it is the store's."""

    def __init__(self, store: Store, name: str, clock: Callable[[], float] | None) -> None:
        self.name = name
        self.store = store
        self.pool_state: PoolState | None = None
        self.played = PlayedVersions()
        self.on_batch: Callable[[Timed], None] | None = None
        """Told of every batch that was kept, by whoever wrote it."""
        self.refused_snapshots = 0
        """How often a stored snapshot was of no use, and the journal was folded anew."""
        self._hash = b""
        """Of the event that the pool's state stands on."""
        self._clock = clock
        self._turns = GroupCommit(self._write)
        self._lock = threading.Lock()
        """Of the pool's state; whoever has the pool's lock takes it after that one."""
        self.published: Published | None = None
        """What lanes draw from."""
        self._seal = Seal()
        self._lock_free = LockFree(self)
        self._closed = False
        self._find_event: Callable[[int], AnyEvent]
        self._snapshot_at = 0
        self._connections = store.connections
        forks.follow(self)

    @property
    def playing(self) -> Playing | None:
        """The version this process plays from."""
        return self.played.playing

    def now(self, view: View | None = None) -> int:
        """Microseconds, by the clock that was given, or else by the store's."""
        if self._clock is None and view is not None:
            return view.clock()
        seconds = (self._clock or time.time)()
        if not EARLIEST <= seconds <= LATEST:
            raise ValueError(f"clock: says {seconds!r} seconds since 1970, expected a time before the year 10000")
        return round(seconds * 1e6)

    def exists(self) -> bool:
        """Whether there is a first event; who made room for one may have been killed before writing it."""
        if not self.store.has(self.name):
            return False
        with self.store.view(self.name) as view:
            return view.head().seq > 0

    def create(self, opened: Opened, others: Sequence[AnyEvent] = ()) -> bool:
        """Write the first event, and others that belong to it, unless there is one."""
        self.store.ensure(self.name)
        with self._turns.lock, self.store.batch(self.name) as batch:
            if batch.head().seq:
                return False
            entries, digest = [], b""
            for seq, event in enumerate([opened, *others], start=1):
                body = encode(event)
                digest = chain(digest, body)
                entries.append(Entry(seq, *columns_of(event), body, digest))
            batch.append(entries, Head(len(entries), digest, 0))
            return True

    def run(self, requests: Sequence[Request]) -> list[Any]:
        """Answer requests durably; an answer may be the exception that its request earned."""
        apart = _apart(requests, self.played.rows_recur) if self.store.has_lanes else []
        if not apart:
            return self.run_in_turn(requests)
        told = zip(apart, self._lock_free.run([requests[n] for n in apart]), strict=True)
        answers = {n: each for n, each in told if not isinstance(each, InTurn)}
        others = [n for n in range(len(requests)) if n not in answers]
        if others:
            answers |= zip(others, self.run_in_turn([requests[n] for n in others]), strict=True)
        return [answers[n] for n in range(len(requests))]

    def run_in_turn(self, requests: Sequence[Request]) -> list[Any]:
        """The same under the pool's lock."""
        return self._turns.run(requests)

    def settle(self) -> None:
        """Take over what is in lanes, which a store that has none itself may have from another, by a restoration."""
        self._all([Settle()])

    def _all(self, requests: Sequence[Request]) -> None:
        for answered in self._turns.run(requests):
            if isinstance(answered, BaseException):
                raise answered

    def _start_again(self) -> None:
        """What was folded may not have been kept, or only by half: read it from the store, next time."""
        self.pool_state = self.published = None
        self.played.start_again()
        self._lock_free.start_again()

    @contextmanager
    def _batch(self) -> Iterator[Batch]:
        """The pool's lock first, for which others may be waited for, then its state, until all of it is kept or not."""
        with ExitStack() as last:
            with self.store.batch(self.name) as batch:
                last.enter_context(self._lock)
                last.enter_context(self._or_start_again())
                yield batch
            self._publish()

    def _write(self, requests: list[Request]) -> list[Any]:
        for _ in range(TRIES):
            with suppress(Taken):
                return self._try(requests)
        raise StoreUnavailable("others decided for the same tickets every time: try again")

    def _try(self, requests: list[Request]) -> list[Any]:
        self._check_open()
        tickets = [ticket for request in requests for ticket in tickets_of(request)]
        began = time.perf_counter()
        with self._batch() as batch:
            entered = time.perf_counter()
            head = self._catch_up(batch)
            assert self.pool_state is not None
            writer = Writer(self.played, self.pool_state, batch, head, self.now(batch))
            self._find_event = writer.event
            writer.take_over()
            writer.look_up(tickets)
            answers = [answer(request, writer) for request in requests]
            if self.store.has_lanes:
                writer.refresh()
            writer.write()
            self._hash = writer.head().hash
            self._hand_on(batch, writer.n_written)
            self._save_snapshot(batch, SNAPSHOT_EVERY)
            written = time.perf_counter()
        self.tell(began, entered, written, writer.n_written)
        return answers

    def tell(self, began: float, entered: float, written: float, events: int) -> None:
        if self.on_batch is not None:
            self.on_batch(Timed(entered - began, written - entered, time.perf_counter() - written, events))

    def adopt(self, view: View, now: int) -> Published | None:
        """Publish the latest version as of this reading, or later; None: it takes another reading, or a new one."""
        self._check_open()
        with self._lock, self._or_start_again():
            if not self._is_level_with(view) or self.pool_state is None or self.played.are_stale(self.pool_state, now):
                return None
            self._publish()
            return self.published

    def _is_level_with(self, view: View) -> bool:
        """Whether the pool's state could follow a reading beside writers, which costs least.

        It may be ahead, if a batch of this process came between (or the store was set back, which writing will tell);
        or events may have left for a segment meanwhile.
        """
        pool_state = self.pool_state
        if pool_state is None or self._connections != self.store.connections:
            return False
        if pool_state.seq > view.head().seq:
            return True
        self._find_event = lambda seq: read_linked(view, seq)
        try:
            self._follow(pool_state, view)
        except Damaged:
            self._start_again()
            return False
        return True

    def publish(self, now: int) -> None:
        """Publish the latest version of the journal, or a new one if enough was learnt since: that takes the lock."""
        self._check_open()
        with self._lock, self._or_start_again(), self.store.view(self.name) as view:
            self._catch_up(view)
            assert self.pool_state is not None
            stale = self.played.are_stale(self.pool_state, now)
            if not stale:
                self._publish()
        if stale:
            self._all([_Publish()])

    def _publish(self) -> None:
        """What lanes draw from, now that all of it is kept."""
        self.published = self._drawn_from() or self.published

    def _drawn_from(self) -> Published | None:
        pool_state, playing = self.pool_state, self.played.playing
        if pool_state is None or playing is None:
            return None
        unplayed = pool_state.lessons - playing.lessons
        return Published(
            playing, pool_state.seq, self._hash, unplayed, pool_state.settings.refresh_seconds, pool_state.brought
        )

    def _hand_on(self, batch: Batch, n_written: int) -> None:
        """Leave the journal's latest version for processes that only decide."""
        published = self._drawn_from() if self.store.has_lanes and n_written else None
        if published is None or self.pool_state is None:
            return
        if (published.playing.seq, published.playing.changes) == (self.pool_state.version, self.pool_state.changes):
            row = hand_on(published, self._seal)
            if row is not None:
                batch.hand_on(row)

    def take_up(self, lane: LaneBatch, before: Published) -> Published | None:
        """What the latest batch has handed on, where that fits what this process knows; nothing is followed for it."""
        row = lane.handed_on()
        if row is None or self._connections != self.store.connections:
            return None
        newer = take_up(row, before, self._seal)
        if newer is not None and self.published is before:  # else somebody else has just published, or started again
            self.published = newer
        return newer

    def _catch_up(self, view: View) -> Head:
        """The pool's state, level with the head."""
        self._find_event = lambda seq: read_linked(view, seq)
        if self._connections != self.store.connections:
            self._start_again()
            self._connections = self.store.connections
        if self.pool_state is not None:
            try:
                return self._follow(self.pool_state, view)
            except Damaged:
                log.warning("pool %s: the store holds another journal than before; it is read anew", self.name)
                self._start_again()
        self.pool_state = self._load(view)
        return self._follow(self.pool_state, view)

    def _follow(self, pool_state: PoolState, view: View) -> Head:
        """Every event since, each checked against the one before it, up to the head."""
        head = view.head()
        # A reading beside writers may find more than there was when it began.
        entries = takewhile(
            lambda entry: entry.seq <= head.seq, view.entries(pool_state.seq) if pool_state.seq < head.seq else ()
        )
        while piece := list(islice(entries, PIECE)):
            self._follow_piece(pool_state, piece)
        if (pool_state.seq, self._hash, pool_state.decisions, pool_state.epoch) != head:
            raise Damaged("the head of the journal is not its last event: run `statepool replay` on this store")
        return head

    def _follow_piece(self, pool_state: PoolState, piece: list[Entry]) -> None:
        """Some events; the version that is the latest of them is made here as well, where lanes may draw from it."""
        versions = [entry.seq for entry in piece if entry.kind == "refresh"] if self.store.has_lanes else []
        for entry in piece:
            event = read_entry(self._hash, entry)
            made = (
                pool_state.make_version() if entry.seq == max(versions, default=0) and pool_state.rule == RULE else None
            )
            pool_state.apply(event, entry.seq)
            self._hash = entry.hash
            # Another processor may round another way: then this process plays from a version of its own.
            if made is not None and isinstance(event, Refreshed) and made[1] == event.record:
                self.played.playing = Playing(made[0], entry.seq, pool_state, event.at, len(entry.body) + A_ROW)

    def _load(self, view: View) -> PoolState:
        """From the snapshot, and the catalogue's events up to it; from the first event if that will not do."""
        self._snapshot_at = 0
        saved = view.snapshot()
        if saved is not None:
            try:
                return self._load_snapshot(view, *saved)
            except UnusableSnapshot as reason:
                self.refused_snapshots += 1
                self._snapshot_at = -SNAPSHOT_EVERY  # the next batch writes a good one
                log.warning("pool %s: %s; the journal is folded anew", self.name, reason)
        return self._begin(view)

    def _begin(self, view: View) -> PoolState:
        """After the first event."""
        before, entry = view.linked(1)
        opened = read_entry(before, entry)
        assert isinstance(opened, Opened)
        pool_state = PoolState(opened, Records(lambda seq: self._find_event(seq)))
        pool_state.seq, self._hash = 1, entry.hash
        return pool_state

    def _load_snapshot(self, view: View, seq: int, blob: bytes) -> PoolState:
        saved = unseal(seq, blob)
        if saved.seq > view.head().seq or view.linked(saved.seq)[1].hash != saved.hash:
            raise UnusableSnapshot(f"the snapshot after event {saved.seq} is of another journal")
        pool_state = self._begin(view)
        for before, entry in view.linked_catalogue(1, saved.seq):
            pool_state.apply(read_entry(before, entry), entry.seq)
        pool_state.load(saved.state)
        self._hash = saved.hash
        self._snapshot_at = saved.seq
        return pool_state

    def _save_snapshot(self, batch: Batch, every: int) -> None:
        assert self.pool_state is not None
        if self.pool_state.seq - self._snapshot_at >= every:
            batch.save_snapshot(self.pool_state.seq, seal(self.pool_state.seq, self._hash, self.pool_state.dump()))
            self._snapshot_at = self.pool_state.seq

    def read(self) -> PoolState:
        """The pool's state as of now; look at it, do not change it."""
        return self.look(lambda pool_state: pool_state)

    def look(self, work: Callable[[PoolState], T]) -> T:
        """What `work` makes of the pool's state, which does not move meanwhile."""
        with self._lock, self._or_start_again(), self.store.view(self.name) as view:
            self._check_open()
            self._catch_up(view)
            assert self.pool_state is not None
            return work(self.pool_state)

    def save(self) -> None:
        """Write a snapshot now."""
        with self._turns.lock, self._batch() as batch:
            self._catch_up(batch)
            self._save_snapshot(batch, 1)

    def rest(self) -> None:
        """Save a snapshot, and hold nothing until the next request."""
        try:
            if self.pool_state is not None:
                self.save()
        finally:
            with self._lock:
                self._start_again()

    def close(self) -> None:
        """Save a snapshot, and be asked no more."""
        try:
            if self.pool_state is not None:
                self.save()
        finally:
            with self._lock:
                self._closed = True
                self._start_again()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"pool {self.name!r} is closed")

    def before_fork(self) -> None:
        """What is being written stays with the parent."""

    def after_fork_in_parent(self) -> None:
        """Nothing has changed."""

    def after_fork_in_child(self) -> None:
        """The thread that held the lock may be gone, in the middle of an event; those who wait are the parent's."""
        self._lock = threading.Lock()
        self._turns.forget()
        self._lock_free.forget()
        self._start_again()

    @contextmanager
    def _or_start_again(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._start_again()
            raise


def _apart(requests: Sequence[Request], rows_recur: bool) -> list[int]:
    """The places of those that may be answered without the pool's lock, before the others, and nobody can tell.

    Whatever is not about a ticket may change what is played, unless it is a decision; what is about the same ticket
    keeps its order. Candidates that will hardly be known wait for their turn at once.
    """
    others = [request for request in requests if not getattr(request, "is_apart", False)]
    if any(request.ticket is None for request in others):
        return []
    if not rows_recur:
        others += [request for request in requests if getattr(request, "may_wait", False)]
    waiting = {id(request) for request in others}
    tickets = {ticket for request in others for ticket in tickets_of(request)}
    apart = []
    for n, each in enumerate(requests):
        named = tickets_of(each)
        if id(each) not in waiting and tickets.isdisjoint(named):
            apart.append(n)
        else:  # what is about any of its tickets and comes later waits as well
            tickets.update(named)
    return apart
