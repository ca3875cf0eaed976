"""Decisions without the pool's lock: each process writes them to a lane of its own, drawn from the latest version.

A decision changes nothing that a learner knows but counts, so decisions need no common order. Each is a row of the
store, hash-chained to the one before it in its lane; the next batch of the journal takes the rows of all lanes over, as
the first thing it does, so that whoever is told a state or an outcome finds its decision in the journal. A ticket is
decided once: that is the store's own rule. The version is the latest that the journal has when the decision is drawn,
and at most `MOST_BEHIND` events behind when it is written.

The learner counts a decision as the round that follows from its version and its lane alone, wherever it comes to stand
in the journal: what is learnt from the same events does not depend on how they interleave.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from hashlib import sha256
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from statepool.live.answers import Answers
from statepool.live.errors import Damaged, InTurn
from statepool.live.events import UNPLACED, AnyEvent, Decided, Kind, decode, encode_decision, rows_name
from statepool.live.luck import mint_in_lane, new_epoch, uniform_of
from statepool.live.offers import Offer
from statepool.live.pool_state import MOST_LANES, PoolState
from statepool.live.stores.store import SILENT, Head, LaneBatch, LaneRow
from statepool.live.versions import Drawn, Version

MOST_BEHIND = 100
"""Events that the journal may have gained since the version was read."""

RESTED = SILENT // 30
"""A lane that was not written to for so long is not gone on with: long before the store forgets where it ended."""


def decided(
    drawn: Drawn, of_ticket: tuple[int, str, int, int], given: float | None, minted: bool,
    lane: bytes = b"", place: int = 0, round_played: int | None = None,
) -> Decided:  # fmt: skip
    """The event of what was drawn, at a time, for a ticket, its number and its version."""
    return Decided(*of_ticket, *drawn[:3], given, minted, *drawn[3:], lane, place, round_played)


class Playing:
    """The version this process plays from, all that drawing takes, and how much was known when it was made."""

    def __init__(self, version: Version, seq: int, pool_state: PoolState, at: int, cost: int) -> None:
        self.version, self.seq, self.at, self.cost = version, seq, at, cost
        self.lessons, self.changes, self.decisions = pool_state.lessons, pool_state.changes, pool_state.decisions
        self.actions: Sequence[Any] = pool_state.catalogue.actions  # which only grows
        self.has_contexts = bool(pool_state.catalogue.contexts)
        self.answers = pool_state.answers
        self.secret, self.seed, self.seeded = pool_state.secret, pool_state.seed, pool_state.seeded

    def followed_by(self, version: Version, seq: int, at: int, cost: int, lessons: int, decisions: int) -> "Playing":
        """A later version of the same catalogue, made elsewhere."""
        other = copy(self)
        other.version, other.seq, other.at, other.cost = version, seq, at, cost
        other.lessons, other.decisions = lessons, decisions
        return other

    def draw(self, offer: Offer | None, uniform: float) -> Drawn:
        """What is played, of all active actions or of an offer."""
        if offer is None:
            return self.version.draw(uniform)
        drawn = self.answers.answer(self.version, offer, uniform)
        label = drawn.label if offer.digest else None
        return Drawn(*drawn[:4], offer.context, label, offer.digest)

    def is_level_with(self, pool_state: PoolState) -> bool:
        """Whether nothing was learnt or changed since."""
        return pool_state.lessons == self.lessons and pool_state.changes == self.changes

    def is_stale(self, pool_state: PoolState, now: int, budget: float) -> bool:
        """Whether another one is to be made: enough was learnt, and there are bytes for it where nobody said when."""
        if self.is_level_with(pool_state):
            return False
        if pool_state.changes != self.changes:
            return True
        learnt, seconds = pool_state.lessons - self.lessons, pool_state.settings.refresh_seconds
        if seconds is not None:
            return not 0 <= now - self.at < seconds * 1e6  # a clock set back must not stop the learning
        return learnt >= pool_state.lessons_a_version and (
            pool_state.settings.refresh is not None or budget >= self.cost
        )


class Published(NamedTuple):
    """The version to draw from as long as the journal ends with event `seq`, of this hash."""

    playing: Playing
    seq: int
    hash: bytes
    unplayed: int
    """Lessons since it was made, for which it was too early."""
    refresh_seconds: float | None
    brought: int = 0
    """Bytes of rows that requests brought and that the journal keeps."""

    def can_answer(self, with_rows: bool) -> bool:
        """Whether plain decisions can be drawn from it, or also requests that bring rows of their own."""
        return not with_rows or self.playing.version.known is not None

    def is_level(self, head: Head, now: int, budget: float) -> bool:
        """Whether nothing has happened since, and it is still too early for what was learnt."""
        if (head.seq, head.hash) != (self.seq, self.hash):
            return False
        if not self.unplayed:
            return True
        if self.refresh_seconds is not None:
            return 0 <= now - self.playing.at < self.refresh_seconds * 1e6
        return budget < self.playing.cost


class Lane:
    """Where a process writes: the lane's name, its next place, the hash before that, and how many it has drawn from
    the latest version."""

    def __init__(self) -> None:
        self.name = new_epoch()
        self.place, self.hash = 0, b""
        self.version = self.drawn = 0
        self.at: int | None = None
        """When it was last written to, by the store's clock."""

    def has_rested(self, clock: int) -> bool:
        return self.at is not None and abs(clock - self.at) > RESTED

    def drawn_from(self, version: int) -> int:
        return self.drawn if self.version == version else 0


class LaneWriter:
    """Decisions being drawn, of one batch."""

    def __init__(self, lane: Lane, published: Published, batch: LaneBatch, now: int) -> None:
        self.playing, self.now = published.playing, now
        self._lane, self._published, self._batch = lane, published, batch
        self._rows: list[LaneRow] = []
        self._hash = lane.hash
        self._drawn = lane.drawn_from(self.playing.seq)
        self._events: dict[str, dict[Kind, AnyEvent]] = {}
        self._kept: set[bytes] = set()
        """Digests of rows that are known to be in the journal."""

    @property
    def actions(self) -> Sequence[Any]:
        return self.playing.actions

    @property
    def has_contexts(self) -> bool:
        return self.playing.has_contexts

    @property
    def answers(self) -> Answers:
        return self.playing.answers

    @property
    def secret(self) -> bytes:
        return self.playing.secret

    @property
    def entries(self) -> list[LaneRow]:
        """What has been written so far."""
        return self._rows

    def events_of(self, ticket: str) -> dict[Kind, AnyEvent]:
        """All that happened to a ticket."""
        return self._events.get(ticket, {})

    def look_up(self, tickets: list[str]) -> None:
        """Read what the store knows of tickets."""
        for ticket, bodies in (self._batch.bodies(tickets) if tickets else {}).items():
            self._events[ticket] = {kind: decode(body) for kind, body in bodies.items()}

    def offer(self, context: Any, candidates: Any) -> Offer:
        """What a request may be answered with, checked; raises `InTurn` where it has to wait for the lock."""
        offer = self.answers.offer(context, candidates)
        if offer.digest:
            self._check_kept(offer)
        return offer

    def _check_kept(self, offer: Offer) -> None:
        """Rows that a request brought are in the journal, or there is no room for them: else they wait for the lock."""
        if offer.digest in self._kept or not self.answers.has_room(offer, self._published.brought):
            return
        name = rows_name(offer.digest)
        if "rows" not in self._batch.bodies([name]).get(name, {}):
            raise InTurn("the rows of this request are not in the journal yet")
        self._kept.add(offer.digest)

    def draw(self, ticket: str | None, given: float | None, offer: Offer | None) -> Decided:
        """A decision from the version, for a ticket or for one that is minted; of an offer, if a request has one."""
        playing, lane, place = self.playing, self._lane.name, self._lane.place + len(self._rows)
        round_played, minted = playing.decisions + self._drawn, ticket is None
        name, tail = (ticket, None) if ticket else mint_in_lane(playing.secret, lane, place)
        uniform = given
        if uniform is None:
            uniform = uniform_of(playing.seed, playing.seeded, name, minted, lane, place, round_played)
        of_ticket = self.now, name, UNPLACED, playing.seq
        drawn = playing.draw(offer, uniform)
        event = decided(drawn, of_ticket, given, minted, lane, place, round_played)
        check_probability(event)
        body = encode_decision(event, tail)
        self._hash = sha256(self._hash + body).digest()
        self._rows.append(LaneRow(lane, place, name, self.now, body, self._hash))
        self._drawn += 1
        self._events[name] = {"decision": event}
        return event

    def write(self) -> None:
        """Hand what was drawn to the store."""
        if self._rows:
            first = self._published.seq
            self._batch.add(self._rows, self._lane.hash, (first, first + MOST_BEHIND))

    def move_on(self) -> None:
        """It was kept: the lane goes on from there."""
        lane = self._lane
        lane.place, lane.hash = lane.place + len(self._rows), self._hash
        lane.version, lane.drawn = self.playing.seq, self._drawn
        lane.at = self._batch.clock()


def check_probability(event: Decided) -> None:
    """What is no probability is never written."""
    if not 0 < event.probability <= 1:
        raise RuntimeError(f"a decision of probability {event.probability!r} cannot be journaled")


def decisions_in(rows: Sequence[LaneRow], known: Mapping[bytes, int] | None) -> list[tuple[LaneRow, Decided]]:
    """The decisions of lanes that the journal does not have yet, checked link by link, the lanes merged by time.

    `known`: how many of each lane it has; None: that is not compared. A row without a ticket is the last of those.
    """
    lanes = [_decisions_of(list(group), known) for _, group in groupby(rows, key=lambda row: row.lane)]
    return list(merge(*lanes, key=lambda pair: pair[0].at))


def _decisions_of(rows: list[LaneRow], known: Mapping[bytes, int] | None) -> list[tuple[LaneRow, Decided]]:
    first = rows[0]
    begins = first.place + (first.ticket is None)
    expected = begins if known is None else known.get(first.lane, 0 if len(known) < MOST_LANES else begins)
    if expected > begins:
        raise Damaged(f"decision {first.place} of lane {first.lane.hex()} is in the journal already")
    if expected < begins:
        raise Damaged(f"decision {expected} of lane {first.lane.hex()} is neither in the journal nor in its lane")
    place, digest = (first.place, b"") if first.ticket is not None else (first.place + 1, first.hash)
    found = []
    for row in rows if first.ticket is not None else rows[1:]:
        if row.place != place or sha256(digest + row.body).digest() != row.hash:
            raise Damaged(f"decision {row.place} of lane {row.lane.hex()} does not follow from the one before it")
        event = decode(row.body)
        if not isinstance(event, Decided) or _columns(event) != (row.lane, row.place, row.ticket, row.at):
            raise Damaged(f"decision {row.place} of lane {row.lane.hex()} has other columns than bytes")
        place, digest = row.place + 1, row.hash
        found.append((row, event))
    return found


def _columns(event: Decided) -> tuple[bytes, int, str, int]:
    return event.lane, event.place, event.ticket, event.at


def placed(event: Decided, number: int) -> Decided:
    """A decision of a lane as the journal has it: with its number."""
    return msgspec.structs.replace(event, number=number)
