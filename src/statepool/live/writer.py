"""One batch of a journal being written: events that follow from one another, and what requests need to make them."""

from collections.abc import Sequence
from math import sqrt
from typing import Any, Protocol

from statepool.live.answers import Answers
from statepool.live.errors import StoreUnavailable
from statepool.live.events import (
    AnyEvent,
    Brought,
    Decided,
    Kind,
    Refreshed,
    Upgraded,
    columns_of,
    decode,
    encode,
    encode_decision,
    rows_name,
)  # fmt: skip
from statepool.live.format import FORMAT, RULE
from statepool.live.hash_chain import chain, read_linked
from statepool.live.lanes import LaneWriter, Playing, check_probability, decided, decisions_in, placed
from statepool.live.luck import mint, new_epoch, new_key, uniform_of
from statepool.live.offers import Offer
from statepool.live.pool_state import PoolState
from statepool.live.stores.store import Batch, Entry, Head, LaneRow, Overdue

LONGEST_TICKET = 200
A_ROW = 70
"""Bytes that a store needs for an event besides its body, roughly."""
FOR_VERSIONS, A_SMALL_VERSION = 0.2, 1_000
"""Small versions cost a fifth of the bytes that decisions and what comes back for them cost; larger ones, which are
made less often, up to as much (`share_of`)."""
FREE_BYTES, FREE_VERSIONS = 64 << 10, 4
"""What a process may spend before that, whichever is more: it learns most at the start."""


def is_ticket(ticket: Any) -> bool:
    """Text that every store can hold."""
    return isinstance(ticket, str) and 0 < len(ticket) <= LONGEST_TICKET and ticket.isprintable()


def tickets_of(request: Any) -> Sequence[str]:
    """The tickets that a request is about, as far as a store can hold them."""
    ticket = request.ticket
    if ticket is not None:
        return (ticket,) if is_ticket(ticket) else ()
    return [each for each in getattr(request, "all_tickets", ()) if is_ticket(each)]


def share_of(cost: int) -> float:
    """What versions of so many bytes may cost, of what decisions cost: it grows as their root does, to a whole."""
    return min(1.0, FOR_VERSIONS * max(1.0, sqrt(cost / A_SMALL_VERSION)))


class PlayedVersions:
    """The version that a process plays from, its epoch, and the bytes that it may spend on versions."""

    def __init__(self) -> None:
        self.playing: Playing | None = None
        self.epoch = new_epoch()
        self._earned = 0.0
        self.versions_made = 0
        self.rows_recur = False
        """Whether the latest request with candidates brought rows that there was nothing to keep of: if not, the next
        one will hardly do so, and is not tried in a lane."""

    def start_again(self) -> None:
        """What was made may not have been kept."""
        self.playing = None
        self.epoch = new_epoch()

    @property
    def _cost(self) -> int:
        return 0 if self.playing is None else self.playing.cost

    @property
    def budget(self) -> float:
        """Bytes that may be spent now."""
        return self._earned + max(FREE_BYTES, FREE_VERSIONS * self._cost)

    def are_stale(self, pool_state: PoolState, now: int) -> bool:
        playing = self.playing
        if playing is not None and playing.is_level_with(pool_state):  # as for most decisions
            return False
        return playing is None or playing.is_stale(pool_state, now, self.budget)

    def earn(self, size: int) -> None:
        """An event of a ticket was written."""
        if self._earned < 0:
            self._earned = min(0.0, self._earned + share_of(self._cost) * (size + A_ROW))

    def spend(self, cost: int) -> None:
        """A version was made."""
        self._earned -= cost
        self.versions_made += 1


class Request(Protocol):
    """Something to answer inside a batch; `ticket` names the ticket it is about, if any."""

    @property
    def ticket(self) -> str | None: ...

    def answer(self, writer: Any) -> Any: ...


class Writer:
    """One batch being written."""

    def __init__(self, played: "PlayedVersions", pool_state: PoolState, batch: Batch, head: Head, now: int) -> None:
        self.pool_state, self.batch, self.now = pool_state, batch, now
        self.entries: list[Entry] = []
        self._opened: list[Overdue] = []
        """What the store has not been handed yet, and the decisions among that."""
        self.n_written = 0
        self._played = played
        self._seq, self._hash = head.seq, head.hash
        self._events: dict[str, dict[Kind, AnyEvent]] = {}
        self._tickets: dict[int, str] = {}
        """Of the decisions that this batch knows, by their numbers."""
        if (self.pool_state.format, self.pool_state.rule) < (FORMAT, RULE):
            self.add(Upgraded(now, FORMAT, RULE, new_key()))

    def add(self, event: AnyEvent) -> int:
        """Append an event; from here on it has happened, for this batch."""
        body, (kind, column, number) = encode(event), columns_of(event)
        if isinstance(event, Decided):
            return self._add_decision(event, body, column)
        name = column if number is None else self._tickets[number]
        if name is not None:
            self._events.setdefault(name, {})[kind] = event
        return self._append(event, body, column, number)

    def _add_decision(self, event: Decided, body: bytes, column: str | None) -> int:
        check_probability(event)
        self._tickets[event.number] = event.ticket
        self._events.setdefault(event.ticket, {})[event.kind] = event
        self._opened.append(Overdue(event.number, event.ticket, event.at))
        return self._append(event, body, column, event.number)

    def _append(self, event: AnyEvent, body: bytes, column: str | None, number: int | None) -> int:
        self._seq += 1
        self._hash = chain(self._hash, body)
        self.entries.append(Entry(self._seq, event.kind, column, number, body, self._hash))
        if number is not None:
            self._played.earn(len(body))
        self.pool_state.apply(event, self._seq)
        return self._seq

    def events_of(self, ticket: str) -> dict[Kind, AnyEvent]:
        """All that happened to a ticket."""
        return self._events.get(ticket, {})

    def look_up(self, tickets: list[str]) -> None:
        """Read what the store knows of tickets that this batch has not asked about yet."""
        unread = [ticket for ticket in tickets if ticket not in self._events]
        for ticket, bodies in (self.batch.bodies(unread) if unread else {}).items():
            self._events[ticket] = known = {kind: decode(body) for kind, body in bodies.items()}
            made = known.get("decision")
            if isinstance(made, Decided):
                self._tickets[made.number] = ticket

    def event(self, seq: int) -> AnyEvent:
        """An event, of this batch or of an earlier one."""
        if self.entries and seq >= self.entries[0].seq:
            return decode(self.entries[seq - self.entries[0].seq].body)
        return read_linked(self.batch, seq)

    def playing(self) -> Playing:
        """The version to draw from, made anew when enough was learnt."""
        played = self._played
        if played.playing is None or played.are_stale(self.pool_state, self.now):
            version, record = self.pool_state.make_version()
            seq = self.add(Refreshed(self.now, self.pool_state.decisions, record, played.epoch))
            cost = len(self.entries[-1].body) + A_ROW
            played.spend(cost)
            played.playing = Playing(version, seq, self.pool_state, self.now, cost)
        return played.playing

    def refresh(self) -> None:
        """Make a version for the lanes, if this batch has taught enough; the first one is made when they ask for it."""
        if self.pool_state.version and self.entries:
            self.playing()

    def take_over(self) -> None:
        """The decisions that are in lanes, into the journal, where all that follows in this batch finds them."""
        last: dict[bytes, LaneRow] = {}
        for row, event in decisions_in(self.batch.lane_rows(), self.pool_state.lanes):
            self.add(placed(event, self.pool_state.decisions))
            last[row.lane] = row
        if last:
            self.write()
            self.batch.take_over(list(last.values()))

    def write(self) -> None:
        """Hand what was added to the store."""
        if self.entries:
            self.batch.append(self.entries, self.head(), self._opened)
            self.n_written += len(self.entries)
            self.entries, self._opened = [], []

    def draw(self, ticket: str | None, given: float | None, offer: Offer | None) -> Decided:
        """A decision from the version, for a ticket or for one that is minted; of an offer, if a request has one."""
        pool_state, playing, minted = self.pool_state, self.playing(), ticket is None
        number = pool_state.decisions
        name, tail = (ticket, None) if ticket else mint(pool_state.secret, self._played.epoch, number)
        uniform = given
        if uniform is None:
            uniform = uniform_of(pool_state.seed, pool_state.seeded, name, minted, b"", 0, number)
        drawn = playing.draw(offer, uniform)
        if offer is not None and offer.digest:
            self._keep_rows(offer)
        event = decided(drawn, (self.now, name, number, playing.seq), given, minted)
        self._add_decision(event, encode_decision(event, tail), ticket)
        return event

    def offer(self, context: Any, candidates: Any) -> Offer:
        """What a request may be answered with, checked."""
        return self.answers.offer(context, candidates)

    def _keep_rows(self, offer: Offer) -> None:
        """What a request brought is kept once, as long as there is room for it."""
        has_room, name = self.answers.has_room(offer, self.pool_state.brought), rows_name(offer.digest)
        if has_room:
            self.look_up([name])
        is_new = has_room and "rows" not in self.events_of(name)
        if is_new:
            self.add(Brought(self.now, offer.digest, offer.labels, offer.P.tobytes()))
        self._played.rows_recur = not is_new

    @property
    def answers(self) -> Answers:
        return self.pool_state.answers

    @property
    def actions(self) -> Sequence[Any]:
        return self.pool_state.catalogue.actions

    @property
    def has_contexts(self) -> bool:
        return bool(self.pool_state.catalogue.contexts)

    @property
    def secret(self) -> bytes:
        return self.pool_state.secret

    def head(self) -> Head:
        return Head(self._seq, self._hash, self.pool_state.decisions, self.pool_state.epoch)


def answer(request: Request, writer: Writer | LaneWriter) -> Any:
    """What a request earns, which may be an exception."""
    written = len(writer.entries)
    try:
        return request.answer(writer)
    except StoreUnavailable:
        raise  # nothing of the batch can be kept
    except Exception as error:  # a request that fails changes nothing and spoils nothing for the others
        if len(writer.entries) > written:
            raise RuntimeError("a request failed after it had been written: nothing of its batch is kept") from error
        return error
