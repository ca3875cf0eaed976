"""Rebuild a pool from its journal and check every link: the chain of hashes, all that is stored beside it, each draw.

Nothing that was computed live is trusted: the state is rebuilt from the first event, and what the store keeps beside
the journal (columns, indexes, head, pending tickets, snapshot) is compared with it. What no store can tell by itself is
whether events are missing at the end: the last event's time and hash are reported, to be compared with a note of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import numpy as np

from statepool.live.anchors import Anchor, Noted
from statepool.live.answers import Answers
from statepool.live.errors import StoreUnavailable
from statepool.live.events import (
    AnyEvent,
    Brought,
    Decided,
    Forgotten,
    Opened,
    Refreshed,
    decode,
    erased_of,
    rows_name,
)  # fmt: skip
from statepool.live.format import RULE
from statepool.live.hash_chain import follows, read_linked
from statepool.live.integrity import Beside
from statepool.live.lanes import MOST_BEHIND, decisions_in, placed
from statepool.live.luck import is_minted_for
from statepool.live.pool_state import MOST_LANES, PoolState, Records
from statepool.live.snapshots import Outdated, Snapshot, UnusableSnapshot, unseal
from statepool.live.stores.store import Entry, Store, View, were_replaced
from statepool.live.versions import Version

REPLACED = "segments were written anew while they were read, as `forget` does: replay again"
PIECE = 5_000
"""Events whose decisions are looked up together: the more, the more of one decision's are."""
EPOCHS = 64
"""How many processes' latest versions are kept to draw from."""
VERSIONS = 4 * MOST_BEHIND
BYTES = 256 << 20
"""How many versions are kept for the lanes, which may be a few events behind, and how large they may be together."""


@dataclass
class Replay:
    """What was found; `faults` is empty when the journal and all that is stored beside it agree."""

    pool: str
    events: int = 0
    decisions: int = 0
    redrawn: int = 0
    not_redrawn: int = 0
    """Decisions by the rule of an earlier release, or whose request brought rows that were not kept."""
    without_rows: int = 0
    """Those of the second kind."""
    rule_since: int = 1
    """From this event on the pool plays by the rule of this release."""
    in_lanes: int = 0
    """Decisions that are on disk and that the journal has not taken over yet; they are checked and drawn again, too."""
    snapshot_at: int | None = None
    broken_at: int | None = None
    """The first event that does not follow from the one before: nothing is rebuilt past it."""
    sure_until: int = 0
    """The last event up to which everything follows, with its hash and its time (`last_at`; in microseconds here)."""
    last_hash: str = ""
    last_clock: int | None = None
    forgotten: int = 0
    """Events that were erased, each with a note of that in the journal."""
    erased_since_noted: int = 0
    """Those of them that were erased after the latest note that is kept elsewhere, if there is one: nobody but who
    erased them vouches for what is left of them."""
    anchors: int = 0
    """How many notes of the chain, kept elsewhere, say the same."""
    faults: list[str] = field(default_factory=list)

    @property
    def last_at(self) -> str:
        return "" if self.last_clock is None else _time(self.last_clock)

    @property
    def agrees(self) -> bool | None:
        """None: it cannot be told."""
        if self.faults:
            return False
        return None if self.erased_since_noted else True

    def as_json(self) -> dict[str, Any]:
        told = asdict(self) | {"last_at": self.last_at, "agrees": self.agrees}
        del told["last_clock"]
        return told


def replay(
    store: Store,
    name: str,
    redraw: bool = False,
    on_event: Callable[[int], None] | None = None,
    expect: bytes | None = None,
    anchors: Sequence[Anchor] = (),
) -> tuple[Replay, PoolState]:
    """Read the whole journal of a pool. With `redraw`, every version is made again, and every action drawn again.

    `expect` is a hash that was noted before: a journal without an event of that hash was cut short, or is another one.
    `anchors` are such notes with the number of their event.
    """
    if not store.has(name):
        raise ValueError(f"pool: {name!r} is not in this store, expected one of {', '.join(store.pools()) or 'none'}")
    found = Replay(name)
    noted = Noted(name, anchors)
    with store.view(name) as view:
        pool_state = _begin(view, name)
        try:
            found.faults += view.damage()
            check = _Checking(view, pool_state, found, redraw, noted.latest)
            for entry in _linked(view.checked(found.faults), found):
                expect = None if entry.hash == expect else expect
                if anchors:
                    found.faults += noted.compare(entry.seq, entry.hash)
                check.take(entry)
                if on_event:
                    on_event(entry.seq)
            check.finish()
        except StoreUnavailable as error:
            if were_replaced(store, name, view):
                raise StoreUnavailable(REPLACED) from None
            found.faults.append(f"after event {found.sure_until} the store cannot be read: {error}")
    if expect is not None:
        found.faults.append("no event has the hash that was expected: the journal was cut short, or is another one")
    found.faults += noted.left()
    found.anchors = noted.met
    found.rule_since = pool_state.rule_since
    return found, pool_state


def _begin(view: View, name: str) -> PoolState:
    try:
        opened = read_linked(view, 1) if view.head().seq else None
    except (StoreUnavailable, msgspec.MsgspecError) as error:
        raise ValueError(f"pool: the first event of {name!r} cannot be read ({error})") from None
    if not isinstance(opened, Opened):
        raise ValueError(f"pool: {name!r} does not begin with a catalogue")
    return PoolState(opened, Records(lambda seq: read_linked(view, seq)))


def _linked(entries: Iterable[Entry], found: Replay) -> Iterator[Entry]:
    """The entries up to the first that does not follow from the one before; the others are only counted."""
    before = b""
    for entry in entries:
        found.events += 1
        if entry.seq != found.events:
            found.faults.append(f"event {found.events} is missing, the next is {entry.seq}")
            found.events = entry.seq
            found.broken_at = found.broken_at or entry.seq
        sound, before = follows(before, entry.body, entry.hash), entry.hash
        if not sound:
            found.faults.append(f"event {entry.seq}: its hash is not that of its bytes and of the event before")
            found.broken_at = found.broken_at or entry.seq
        if not found.broken_at:
            yield entry


class _Checking:
    """Takes the events one by one, in order."""

    def __init__(self, view: View, pool_state: PoolState, found: Replay, redraw: bool, noted: int | None) -> None:
        self._view, self._fold, self._found, self._noted = view, pool_state, found, noted
        self._beside = Beside(view)
        self._again = _Redrawing(view, pool_state, found) if redraw else None
        self._snapshot = self._unseal()
        self._piece: list[tuple[Entry, AnyEvent]] = []
        self._erased: dict[int, tuple[bytes, bytes]] = {}
        """Events in whose place something else stands, until the journal says so: their hash, and that of the rest."""

    def _unseal(self) -> Snapshot | None:
        saved = self._view.snapshot()
        if saved is None:
            return None
        self._found.snapshot_at = saved[0]
        try:
            return unseal(*saved)
        except Outdated:
            return None
        except UnusableSnapshot as reason:
            if self._fold.format > 1:  # the first release wrote none with a checksum, and they are not read any more
                self._found.faults.append(str(reason))
            return None

    def take(self, entry: Entry) -> None:
        event = self._decode(entry)
        if event is None:
            return
        self._follow_erasure(entry, event)
        self._piece.append((entry, event))
        if len(self._piece) == PIECE:
            self._check_piece()
        self._apply(entry, event)

    def _follow_erasure(self, entry: Entry, event: AnyEvent) -> None:
        erased = erased_of(entry.body)
        if erased is not None:
            self._erased[entry.seq] = entry.hash, sha256(erased.left).digest()
        if isinstance(event, Forgotten):
            for seq, digest, left in event.erased:
                if self._erased.pop(seq, None) != (digest, left):
                    self._found.faults.append(f"event {entry.seq}: what it says was erased of event {seq} is not so")
                self._found.forgotten += 1
                self._found.erased_since_noted += self._noted is not None and entry.seq > self._noted

    def _decode(self, entry: Entry) -> AnyEvent | None:
        """The event, if it can be read, and nothing after it either if not."""
        if self._found.broken_at:
            return None
        try:
            return decode(entry.body)
        except msgspec.MsgspecError as error:
            self._break(entry, f"its bytes cannot be read ({error})")
            return None

    def _break(self, entry: Entry, reason: str) -> None:
        self._found.faults.append(f"event {entry.seq}: {reason}")
        self._found.broken_at = entry.seq

    def _apply(self, entry: Entry, event: AnyEvent) -> None:
        found, pool_state = self._found, self._fold
        try:
            if self._again:
                self._again.check(event, entry.seq)
            pool_state.apply(event, entry.seq)
        except Exception as error:  # whatever forged bytes lead to
            self._break(entry, f"it cannot have happened after the events before ({type(error).__name__}: {error})")
            return
        if isinstance(event, Decided):
            found.decisions += 1
            if not 0 < event.probability <= 1:
                found.faults.append(f"event {entry.seq}: its probability is {event.probability}")
        found.sure_until, found.last_hash, found.last_clock = entry.seq, entry.hash.hex(), event.at
        self._compare_snapshot(entry)

    def _compare_snapshot(self, entry: Entry) -> None:
        saved = self._snapshot
        if saved and saved.seq == entry.seq and (saved.state, saved.hash) != (self._fold.dump(), entry.hash):
            self._found.faults.append(f"the stored state after event {entry.seq} is not what the journal adds up to")

    def _check_piece(self) -> None:
        piece, self._piece = self._piece, []
        self._found.faults += self._beside.check(piece)

    def finish(self) -> None:
        self._check_piece()
        found, pool_state = self._found, self._fold
        if found.broken_at:
            return
        found.faults += [f"event {seq}: it was erased, and the journal does not say so" for seq in self._erased]
        found.faults += self._beside.finish()
        self._compare_head(pool_state)
        self._check_lanes(pool_state)
        if self._snapshot and self._snapshot.seq > pool_state.seq:
            found.faults.append(
                f"the stored state is of event {self._snapshot.seq}, the journal ends at {pool_state.seq}"
            )

    def _check_lanes(self, pool_state: PoolState) -> None:
        """What the next batch of the journal would take over."""
        try:
            waiting = decisions_in(self._view.lane_rows(), pool_state.lanes)
            for _, event in waiting:
                if self._again:
                    self._again.check(placed(event, pool_state.decisions), pool_state.seq)
                pool_state.apply(placed(event, pool_state.decisions), pool_state.seq)
            self._found.in_lanes = len(waiting)
            self._found.decisions += len(waiting)
        except Exception as error:  # whatever forged bytes lead to
            self._found.faults.append(f"decisions in lanes cannot be taken over ({error})")

    def _compare_head(self, pool_state: PoolState) -> None:
        head, found = self._view.head(), self._found
        if (head.seq, head.decisions) != (pool_state.seq, pool_state.decisions):
            found.faults.append(
                f"the store says {head.seq} events and {head.decisions} decisions, "
                f"not {pool_state.seq} and {pool_state.decisions}"
            )
        if head.hash.hex() != found.last_hash or head.epoch != pool_state.epoch:
            found.faults.append("the hash or the epoch of the head is not that of the last event")


def _time(at: int) -> str:
    """A clock may have said anything."""
    try:
        return datetime.fromtimestamp(at / 1e6, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{at} microseconds"


class _Made(NamedTuple):
    """A version: by which process, after how many decisions."""

    epoch: bytes
    decisions: int
    version: Version
    answers: Answers
    """To requests, as of when it was made: decisions of lanes may come after another change."""


class _Redrawing:
    """Makes each version again and draws every decision from the version that it names."""

    def __init__(self, view: View, pool_state: PoolState, found: Replay) -> None:
        self._view, self._fold, self._found = view, pool_state, found
        self._versions: OrderedDict[int, _Made] = OrderedDict()
        """By the event that made them."""
        self._latest: OrderedDict[bytes, int] = OrderedDict()
        """Of each process: a decision that it did not make in a lane is drawn from its own latest version."""
        self._rounds: dict[bytes, tuple[int, int]] = {}
        """Of each lane: the version it last drew from, and how often."""
        self._most_rounds = 2 * MOST_LANES

    def check(self, event: AnyEvent, seq: int) -> None:
        if self._fold.rule < RULE:
            self._found.not_redrawn += isinstance(event, Decided)
        elif isinstance(event, Refreshed):
            self._make(event, seq)
        elif isinstance(event, Decided):
            self._draw(event, seq)

    def _make(self, event: Refreshed, seq: int) -> None:
        version, record = self._fold.make_version()
        if record != event.record:
            self._found.faults.append(f"event {seq}: another version of the play comes out of the events before")
        self._versions[seq] = _Made(event.epoch, event.decisions, version, self._fold.answers)
        self._latest.pop(event.epoch, None)
        self._latest[event.epoch] = seq
        if len(self._latest) > EPOCHS:
            self._latest.popitem(last=False)
        most = max(2, min(VERSIONS, BYTES // max(version.distribution.nbytes, 1)))
        while len(self._versions) > most:
            oldest = next((each for each in self._versions if each not in self._latest.values()), None)
            if oldest is None:
                break
            del self._versions[oldest]

    def _draw(self, event: Decided, seq: int) -> None:
        made = self._versions.get(event.version)
        if made is None or not (event.lane or self._latest.get(made.epoch) == event.version):
            self._found.faults.append(f"event {seq}: its version is not one that its process plays from")
            return
        if event.lane and event.round != made.decisions + self._count(event):
            self._found.faults.append(f"event {seq}: it is counted as another round than its lane's")
        drawn = self._drawn(made, event)
        if drawn is None:
            self._found.without_rows += 1
            self._found.not_redrawn += 1
            return
        self._found.redrawn += 1
        if drawn != (event.action, event.probability, event.is_holdout, event.carry):
            self._found.faults.append(f"event {seq}: the ticket draws another action or probability")
        if event.minted and not self._is_minted_here(event):
            self._found.faults.append(f"event {seq}: its ticket is not the one that is minted here")

    def _count(self, event: Decided) -> int:
        """How often its lane drew from its version before."""
        before, count = self._rounds.get(event.lane, (0, 0))
        count = count if before == event.version else 0
        self._rounds[event.lane] = event.version, count + 1
        if len(self._rounds) > self._most_rounds:  # who drew from a version that is not kept cannot do so again
            self._rounds = {lane: last for lane, last in self._rounds.items() if last[0] in self._versions}
            self._most_rounds = 2 * max(len(self._rounds), MOST_LANES)
        return count

    def _is_minted_here(self, event: Decided) -> bool:
        number = event.place if event.lane else event.number
        return is_minted_for(self._fold.secret, event.ticket, event.lane, number)

    def _drawn(self, made: _Made, event: Decided) -> tuple[Any, ...] | None:
        """What the version answers; None: the rows that the request brought were not kept."""
        if not event.is_request:
            return made.version.draw(self._fold.uniform_of(event))[:4]
        offers = made.answers.offers
        if event.context is not None:
            offer = offers.of_context(event.context)
        else:
            kept = self._view.bodies([rows_name(event.digest)]).get(rows_name(event.digest), {}).get("rows")
            brought = None if kept is None else decode(kept)
            if not isinstance(brought, Brought):
                return None
            rows = np.frombuffer(brought.rows).reshape(len(brought.labels), -1)
            offer = offers.of_brought(brought.labels, rows)
            if offer.digest != event.digest:
                raise ValueError("the rows that were kept of its request are others")
        return made.answers.answer(made.version, offer, self._fold.uniform_of(event))[:4]
