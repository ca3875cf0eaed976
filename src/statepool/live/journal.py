"""A pool's journal at work: the fold kept level with the store, and batches of requests written together.

A batch takes the pool's lock, catches up with what others wrote, answers its requests, appends their events and
commits; only then does anyone get an answer. Callers that wait for the same lock share one batch, and one fsync. Where
the store has lanes, plain decisions are drawn and written without that lock (`lanes`).

The fold stands on one event of the chain, named by its number and its hash. Where the store has another event there (a
backup was restored, a replica took over), the fold starts anew, and so does the process's epoch.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from statepool.live.errors import Damaged, StoreUnavailable, Taken
from statepool.live.events import (
    AnyEvent,
    Brought,
    Decided,
    Kind,
    Lesson,
    Opened,
    Refreshed,
    Upgraded,
    decode,
    encode,
    follows,
)  # fmt: skip
from statepool.live.fold import Fold, Records
from statepool.live.forks import forks
from statepool.live.format import FORMAT, RULE
from statepool.live.lanes import Lane, LaneWriter, Playing, Published, check_probability, decisions_in, placed
from statepool.live.luck import mint, new_epoch, new_key, uniform_of
from statepool.live.snapshots import Refused, seal, unseal
from statepool.live.stores.store import Batch, Entry, Head, LaneRow, Store, View
from statepool.live.group_commit import GroupCommit

T = TypeVar("T")


class Timed(NamedTuple):
    """The seconds of a batch: until it had the lock, until it was written, until it was on disk; and its events."""

    waited: float
    worked: float
    committed: float
    events: int


log = logging.getLogger("statepool.live")

PIECE = 1_000
TRIES = 5
SETTLE_AT = 1_000
"""Decisions of this process's lane after which it sees to it that the journal takes them over."""
SILENT = 30 * 86_400 * 1_000_000
"""Microseconds after which a lane that nobody writes to is forgotten."""
SNAPSHOT_EVERY = 10_000
LONGEST_TICKET = 200
A_ROW = 150
"""Bytes that a store needs for an event besides its body, roughly."""
ALLOWANCE = 256 << 10
FOR_VERSIONS = 0.25
"""Versions cost a quarter of the bytes that decisions and what comes back for them cost, after a start that is free."""
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, in seconds: what a date can be


def chain(before: bytes, body: bytes) -> bytes:
    """The hash of an event: of the one before it, and of its own bytes."""
    return sha256(before + body).digest()


def read_linked(view: View, seq: int) -> AnyEvent:
    """One event out of the middle of a journal, checked against the one before it."""
    before, entry = view.linked(seq)
    return read_entry(before, entry)


def read_entry(before: bytes, entry: Entry) -> AnyEvent:
    """The event of an entry that follows a hash; a `Damaged` error if it does not."""
    if not follows(before, entry.body, entry.hash):
        raise Damaged(f"event {entry.seq} of the journal is damaged: run `statepool replay` on this store")
    return decode(entry.body)


class Request(Protocol):
    """Something to answer inside a batch; `ticket` names the ticket it is about, if any."""

    @property
    def ticket(self) -> str | None: ...

    def answer(self, writer: Any) -> Any: ...


class Writer:
    """One batch being written."""

    def __init__(self, journal: "Journal", batch: Batch, head: Head, now: int) -> None:
        assert journal.fold is not None
        self.fold, self.batch, self.now = journal.fold, batch, now
        self.entries: list[Entry] = []
        """What the store has not been handed yet."""
        self.n_written = 0
        self._journal = journal
        self._seq, self._hash = head.seq, head.hash
        self._events: dict[str, dict[Kind, AnyEvent]] = {}
        if (self.fold.format, self.fold.rule) < (FORMAT, RULE):
            self.add(Upgraded(now, FORMAT, RULE, new_key()))

    def add(self, event: AnyEvent) -> int:
        """Append an event; from here on it has happened, for this batch."""
        body = encode(event)
        self._seq += 1
        self._hash = chain(self._hash, body)
        ticket = play = None
        if isinstance(event, Decided):
            check_probability(event)
        if isinstance(event, Decided | Lesson):
            ticket, play = event.ticket, event.play
            self._events.setdefault(ticket, {})[event.kind] = event
            self._journal.budget = min(ALLOWANCE, self._journal.budget + FOR_VERSIONS * (len(body) + A_ROW))
        if isinstance(event, Brought):
            ticket = event.name
            self._events[ticket] = {event.kind: event}
        self.entries.append(Entry(self._seq, event.kind, ticket, play, event.at, body, self._hash))
        self.fold.apply(event, self._seq)
        return self._seq

    def events_of(self, ticket: str) -> dict[Kind, AnyEvent]:
        """All that happened to a ticket."""
        return self._events.get(ticket, {})

    def look_up(self, tickets: list[str]) -> None:
        """Read what the store knows of tickets that this batch has not asked about yet."""
        unread = [ticket for ticket in tickets if ticket not in self._events]
        for ticket, bodies in (self.batch.bodies(unread) if unread else {}).items():
            self._events[ticket] = {kind: decode(body) for kind, body in bodies.items()}

    def event(self, seq: int) -> AnyEvent:
        """An event, of this batch or of an earlier one."""
        if self.entries and seq >= self.entries[0].seq:
            return decode(self.entries[seq - self.entries[0].seq].body)
        return read_linked(self.batch, seq)

    def playing(self) -> Playing:
        """The version to draw from, made anew when enough was learnt."""
        journal = self._journal
        if journal.playing is None or journal.playing.is_stale(self.fold, self.now, journal.budget):
            version, record = self.fold.make_version()
            seq = self.add(Refreshed(self.now, self.fold.plays, record, journal.epoch))
            cost = len(self.entries[-1].body) + A_ROW
            journal.budget -= cost
            journal.playing = Playing(version, seq, self.fold, self.now, cost)
            journal.versions_made += 1
        return journal.playing

    def refresh(self) -> None:
        """Make a version for the lanes, if this batch has taught enough; the first one is made when they ask for it."""
        playing = self._journal.playing
        if (
            self.fold.version
            and self.entries
            and (playing is None or playing.is_stale(self.fold, self.now, self._journal.budget))
        ):
            self.playing()

    def take_over(self) -> None:
        """The decisions that are in lanes, into the journal, where all that follows in this batch finds them."""
        last: dict[bytes, LaneRow] = {}
        for row, event in decisions_in(self.batch.lane_rows(), self.fold.lanes):
            self.add(placed(event, self.fold.plays))
            last[row.lane] = row
        if last:
            self.write()
            self.batch.take_over(list(last.values()), self.now - SILENT)

    def write(self) -> None:
        """Hand what was added to the store."""
        if self.entries:
            self.batch.append(self.entries, self.head())
            self.n_written += len(self.entries)
            self.entries = []

    def draw(self, ticket: str | None, given: float | None) -> Decided:
        """A decision from the version, for a ticket or for one that is minted."""
        fold, playing, minted = self.fold, self.playing(), ticket is None
        name = ticket or mint(fold.secret, self._journal.epoch, fold.plays)
        uniform = given
        if uniform is None:
            uniform = uniform_of(fold.seed, fold.seeded, name, minted, b"", 0, fold.plays)
        drawn = playing.version.draw(uniform)
        event = Decided(self.now, name, fold.plays, playing.seq, *drawn[:3], given, minted, drawn.carry)
        self.add(event)
        return event

    @property
    def actions(self) -> Sequence[Any]:
        return self.fold.catalogue.actions

    @property
    def has_contexts(self) -> bool:
        return bool(self.fold.catalogue.contexts)

    @property
    def secret(self) -> bytes:
        return self.fold.secret

    @property
    def epoch(self) -> bytes:
        """Of this process, for the tickets that it mints."""
        return self._journal.epoch

    def head(self) -> Head:
        return Head(self._seq, self._hash, self.fold.plays, self.fold.epoch)


class _Publish:
    """A request for a version to draw from, which the lanes wait for."""

    ticket = None

    def answer(self, writer: Writer) -> None:
        writer.playing()


class _Settle:
    """A request for nothing: its batch takes over what is in lanes."""

    ticket = None

    def answer(self, writer: Writer) -> None:
        pass


class Journal:
    """One process's side of a pool's journal; safe to share between threads. Without a `clock` it is the store's."""

    def __init__(self, store: Store, name: str, clock: Callable[[], float] | None) -> None:
        self.name = name
        self.store = store
        self.fold: Fold | None = None
        self.playing: Playing | None = None
        self.epoch = new_epoch()
        self.on_batch: Callable[[Timed], None] | None = None
        """Told of every batch that was kept, by whoever wrote it."""
        self.versions_made = 0
        self.budget = float(ALLOWANCE)
        """Bytes that versions may cost."""
        self.refused_snapshots = 0
        """How often a stored snapshot was of no use, and the journal was folded anew."""
        self._hash = b""
        """Of the event that the fold stands on."""
        self._clock = clock
        self._turns = GroupCommit(self._write)
        self._lock = threading.Lock()
        """Of the fold; whoever has the pool's lock takes it after that one."""
        self._lane_turns = GroupCommit(self._decide)
        self._lane = Lane()
        self._published: Published | None = None
        self._unsettled, self._settling = 0, False
        self._closed = False
        self._find_event: Callable[[int], AnyEvent]
        self._snapshot_at = 0
        self._connections = store.connections
        forks.follow(self)

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
                entries.append(Entry(seq, event.kind, None, None, event.at, body, digest))
            batch.append(entries, Head(len(entries), digest, 0))
            return True

    def run(self, requests: Sequence[Request]) -> list[Any]:
        """Answer requests durably; an answer may be the exception that its request earned."""
        apart = _apart(requests) if self.store.has_lanes else []
        if not apart:
            return self._turns.run(requests)
        answers = dict(zip(apart, self._lane_turns.run([requests[n] for n in apart]), strict=True))
        others = [n for n in range(len(requests)) if n not in answers]
        if others:
            answers |= zip(others, self._turns.run([requests[n] for n in others]), strict=True)
        return [answers[n] for n in range(len(requests))]

    def settle(self) -> None:
        """Take over what is in lanes, if anything is."""
        if self.store.has_lanes:
            self._all([_Settle()])

    def _all(self, requests: Sequence[Request]) -> None:
        for answer in self._turns.run(requests):
            if isinstance(answer, BaseException):
                raise answer

    def _start_again(self) -> None:
        """What was folded may not have been kept, or only by half: read it from the store, next time."""
        self.fold = self.playing = self._published = None
        self.epoch = new_epoch()
        self._lane = Lane()

    @contextmanager
    def _batch(self) -> Iterator[Batch]:
        """The pool's lock first, for which others may be waited for, then the fold, until all of it is kept or not."""
        with ExitStack() as last:
            with self.store.batch(self.name) as batch:
                last.enter_context(self._lock)
                last.enter_context(self._or_start_again())
                yield batch
            self._publish()

    def _write(self, requests: list[Request]) -> list[Any]:
        self._check_open()
        tickets = [str(request.ticket) for request in requests if is_ticket(request.ticket)]
        began = time.perf_counter()
        with self._batch() as batch:
            entered = time.perf_counter()
            head = self._catch_up(batch)
            writer = Writer(self, batch, head, self.now(batch))
            self._find_event = writer.event
            writer.take_over()
            writer.look_up(tickets)
            answers = [_answer(request, writer) for request in requests]
            if self.store.has_lanes:
                writer.refresh()
            writer.write()
            self._hash = writer.head().hash
            self._save_snapshot(batch, SNAPSHOT_EVERY)
            written = time.perf_counter()
        self._tell(began, entered, written, writer.n_written)
        return answers

    def _tell(self, began: float, entered: float, written: float, events: int) -> None:
        if self.on_batch is not None:
            self.on_batch(Timed(entered - began, written - entered, time.perf_counter() - written, events))

    def _decide(self, requests: list[Request]) -> list[Any]:
        """Decisions, written to this process's lane; nobody else is waited for."""
        self._check_open()
        just_read = False
        for _ in range(TRIES):
            with suppress(Taken), self._or_another_lane():
                answers = self._try_to_decide(requests, just_read)
                if answers is not None:
                    return answers
                just_read = self._published is not None
        raise StoreUnavailable("decisions could not be written: others were faster every time, try again")

    def _try_to_decide(self, requests: list[Request], just_read: bool) -> list[Any] | None:
        """None: the journal had to be read first, or has gone on too far, or this lane is not in the store any more."""
        tickets = [str(request.ticket) for request in requests if is_ticket(request.ticket)]
        began = time.perf_counter()
        with self.store.lane(self.name) as batch:
            entered, now, head, published = time.perf_counter(), self.now(batch), batch.head(), self._published
            level = published is not None and published.is_level(head, now, self.budget)
            if published is not None and (level or (just_read and published.is_near(head))):
                writer = LaneWriter(self._lane, published, batch, now)
                writer.look_up(tickets)
                answers = [_answer(request, writer) for request in requests]
                writer.write()
                written = time.perf_counter()
            else:
                written = 0.0
        if not written:
            self._read_latest(now)
            return None
        if writer.entries and not batch.kept:
            self._lane, self._published = Lane(), None
            return None
        writer.move_on()
        self._note_written(writer.entries)
        self._tell(began, entered, written, len(writer.entries))
        return answers

    @contextmanager
    def _or_another_lane(self) -> Iterator[None]:
        """Whether rows were kept is not known after an error: what comes next goes elsewhere."""
        try:
            yield
        except ValueError:
            raise  # nothing was written
        except BaseException:
            self._lane = Lane()
            raise

    def _read_latest(self, now: int) -> None:
        """The latest version of the journal, or a new one if enough was learnt since: only that takes the lock."""
        with self._lock, self._or_start_again(), self.store.view(self.name) as view:
            self._catch_up(view)
            assert self.fold is not None
            stale = self.playing is None or self.playing.is_stale(self.fold, now, self.budget)
            if not stale:
                self._publish()
        if stale:
            self._all([_Publish()])

    def _publish(self) -> None:
        """What lanes draw from, now that all of it is kept."""
        fold, playing = self.fold, self.playing
        if fold is not None and playing is not None:
            unplayed = fold.lessons - playing.lessons
            self._published = Published(playing, fold.seq, self._hash, unplayed, fold.settings.refresh_seconds)

    def _note_written(self, rows: Sequence[LaneRow]) -> None:
        self.budget = min(ALLOWANCE, self.budget + FOR_VERSIONS * sum(len(row.body) + A_ROW for row in rows))
        self._unsettled += len(rows)
        if self._unsettled >= SETTLE_AT and not self._settling:
            self._settling, self._unsettled = True, 0
            threading.Thread(target=self._settle_quietly, name=f"lanes of {self.name}", daemon=True).start()

    def _settle_quietly(self) -> None:
        """Nobody waits for this; where it fails, the next batch of the journal does the same."""
        try:
            self._turns.run([_Settle()])
        finally:
            self._settling = False

    def _catch_up(self, view: View) -> Head:
        """The fold, level with the head."""
        self._find_event = lambda seq: read_linked(view, seq)
        if self._connections != self.store.connections:
            self._start_again()
            self._connections = self.store.connections
        if self.fold is not None:
            try:
                return self._follow(self.fold, view)
            except Damaged:
                log.warning("pool %s: the store holds another journal than before; it is read anew", self.name)
                self._start_again()
        self.fold = self._load(view)
        return self._follow(self.fold, view)

    def _follow(self, fold: Fold, view: View) -> Head:
        """Every event since, each checked against the one before it, up to the head."""
        head = view.head()
        entries = view.entries(fold.seq) if fold.seq < head.seq else iter(())
        while piece := list(islice(entries, PIECE)):
            self._follow_piece(fold, piece)
        if (fold.seq, self._hash, fold.plays, fold.epoch) != head:
            raise Damaged("the head of the journal is not its last event: run `statepool replay` on this store")
        return head

    def _follow_piece(self, fold: Fold, piece: list[Entry]) -> None:
        """Some events; the version that is the latest of them is made here as well, where lanes may draw from it."""
        versions = [entry.seq for entry in piece if entry.kind == "refresh"] if self.store.has_lanes else []
        for entry in piece:
            event = read_entry(self._hash, entry)
            made = fold.make_version() if entry.seq == max(versions, default=0) and fold.rule == RULE else None
            fold.apply(event, entry.seq)
            self._hash = entry.hash
            # Another processor may round another way: then this process plays from a version of its own.
            if made is not None and isinstance(event, Refreshed) and made[1] == event.record:
                self.playing = Playing(made[0], entry.seq, fold, event.at, len(entry.body) + A_ROW)

    def _load(self, view: View) -> Fold:
        """From the snapshot, and the catalogue's events up to it; from the first event if that will not do."""
        self._snapshot_at = 0
        saved = view.snapshot()
        if saved is not None:
            try:
                return self._load_snapshot(view, *saved)
            except Refused as reason:
                self.refused_snapshots += 1
                self._snapshot_at = -SNAPSHOT_EVERY  # the next batch writes a good one
                log.warning("pool %s: %s; the journal is folded anew", self.name, reason)
        return self._begin(view)

    def _begin(self, view: View) -> Fold:
        """After the first event."""
        before, entry = view.linked(1)
        opened = read_entry(before, entry)
        assert isinstance(opened, Opened)
        fold = Fold(opened, Records(lambda seq: self._find_event(seq)))
        fold.seq, self._hash = 1, entry.hash
        return fold

    def _load_snapshot(self, view: View, seq: int, blob: bytes) -> Fold:
        saved = unseal(seq, blob)
        if saved.seq > view.head().seq or view.linked(saved.seq)[1].hash != saved.hash:
            raise Refused(f"the snapshot after event {saved.seq} is of another journal")
        fold = self._begin(view)
        for before, entry in view.linked_catalogue(1, saved.seq):
            fold.apply(read_entry(before, entry), entry.seq)
        fold.load(saved.state)
        self._hash = saved.hash
        self._snapshot_at = saved.seq
        return fold

    def _save_snapshot(self, batch: Batch, every: int) -> None:
        assert self.fold is not None
        if self.fold.seq - self._snapshot_at >= every:
            batch.save_snapshot(self.fold.seq, seal(self.fold.seq, self._hash, self.fold.dump()))
            self._snapshot_at = self.fold.seq

    def read(self) -> Fold:
        """The fold as of now; look at it, do not change it."""
        return self.look(lambda fold: fold)

    def look(self, work: Callable[[Fold], T]) -> T:
        """What `work` makes of the fold, which does not move meanwhile."""
        with self._lock, self._or_start_again(), self.store.view(self.name) as view:
            self._check_open()
            self._catch_up(view)
            assert self.fold is not None
            return work(self.fold)

    def save(self) -> None:
        """Write a snapshot now."""
        with self._turns.lock, self._batch() as batch:
            self._catch_up(batch)
            self._save_snapshot(batch, 1)

    def rest(self) -> None:
        """Save a snapshot, and hold nothing until the next request."""
        try:
            if self.fold is not None:
                self.save()
        finally:
            with self._lock:
                self._start_again()

    def close(self) -> None:
        """Save a snapshot, and be asked no more."""
        try:
            if self.fold is not None:
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
        """The thread that held the lock may be gone, in the middle of a fold; those who wait are the parent's."""
        self._lock = threading.Lock()
        self._turns.forget()
        self._lane_turns.forget()
        self._settling = False
        self._start_again()

    @contextmanager
    def _or_start_again(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._start_again()
            raise


def is_ticket(ticket: Any) -> bool:
    """Text that every store can hold."""
    return isinstance(ticket, str) and 0 < len(ticket) <= LONGEST_TICKET and ticket.isprintable()


def _apart(requests: Sequence[Request]) -> list[int]:
    """The places of those that may be answered without the pool's lock, before the others, and nobody can tell.

    Whatever is not about a ticket may change what is played; what is about the same ticket keeps its order.
    """
    others = [request.ticket for request in requests if not getattr(request, "is_apart", False)]
    if None in others:
        return []
    return [
        n for n, request in enumerate(requests) if getattr(request, "is_apart", False) and request.ticket not in others
    ]


def _answer(request: Request, writer: Writer | LaneWriter) -> Any:
    written = len(writer.entries)
    try:
        return request.answer(writer)
    except StoreUnavailable:
        raise  # nothing of the batch can be kept
    except Exception as error:  # a request that fails changes nothing and spoils nothing for the others
        if len(writer.entries) > written:
            raise RuntimeError("a request failed after it had been written: nothing of its batch is kept") from error
        return error
