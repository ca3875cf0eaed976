"""The events of a pool's journal: all there is to know, in the order it happened.

Each event is written once and never changed, but for what is forgotten, whose hash stays. Those that teach (a state or
an outcome, whichever comes second, an expiry, a correction) carry all that the learner needs, so folding the journal
looks nothing up but versions. A version is named by the place (`seq`) of the refresh that made it.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any, ClassVar, Literal

import msgspec

from statepool.live import packed
from statepool.live.luck import number_of

Kind = Literal["catalogue", "refresh", "decision", "state", "outcome", "expiry", "correction", "rows", "erasure"]
Label = str | int | float | bool | tuple[Any, ...]


class Event(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """`at`: microseconds since 1970, by the clock of who wrote it."""

    at: int
    kind: ClassVar[Kind]


class Opened(Event, frozen=True):
    """The catalogue a pool starts with; `rows` is P, row by row, as float64 bytes."""

    kind: ClassVar[Kind] = "catalogue"
    actions: list[Any]
    states: list[Any]
    categories: list[Any]
    rows: bytes
    learner: str
    options: dict[str, Any]
    seed: bytes
    """The key of the draws."""
    settings: dict[str, Any]
    secret: bytes = b""
    """The key of the tickets that the pool mints."""
    seeded: bool = False
    """Whether the seed was given by somebody, who can then foretell the draws."""
    format: int = 1
    rule: int = 1


class Upgraded(Event, frozen=True):
    """From here on another release writes and plays by its own format and rule; `secret` as in `Opened`."""

    kind: ClassVar[Kind] = "catalogue"
    format: int
    rule: int
    secret: bytes


class Added(Event, frozen=True):
    """A new action; `handicap`: what the past would have charged its states that no play could reach."""

    kind: ClassVar[Kind] = "catalogue"
    action: Any
    category: Any
    row: bytes
    handicap: float
    decisions: int


class Retired(Event, frozen=True):
    kind: ClassVar[Kind] = "catalogue"
    action: Any


class Reweighted(Event, frozen=True):
    """Another row of P for an action, from now on."""

    kind: ClassVar[Kind] = "catalogue"
    action: Any
    row: bytes
    handicap: float
    decisions: int


class Placed(Event, frozen=True):
    """Rows of P of contexts, from now on: a table for each context, a row for each of `actions` (their numbers)."""

    kind: ClassVar[Kind] = "catalogue"
    contexts: list[Any]
    actions: list[int]
    rows: bytes


class Brought(Event, frozen=True):
    """The candidates of a request and their rows, kept once for all requests that bring the same."""

    kind: ClassVar[Kind] = "rows"
    digest: bytes
    labels: list[Any]
    rows: bytes

    @property
    def name(self) -> str:
        """What it is looked up by."""
        return rows_name(self.digest)


UNPLACED = -1
"""The number of a decision that is in no journal yet."""


def rows_name(digest: bytes) -> str:
    """What the rows of a request are looked up by."""
    return f"rows {digest.hex()}"


class Changed(Event, frozen=True):
    """Other settings, from now on."""

    kind: ClassVar[Kind] = "catalogue"
    settings: dict[str, Any]


class Refreshed(Event, frozen=True):
    """A version of the play, made after so many `decisions`: what tickets of it will need, a value a state."""

    kind: ClassVar[Kind] = "refresh"
    decisions: int
    record: dict[str, Any]
    epoch: bytes = b""
    """Of the process that made it and alone plays from it; the tickets that it mints carry it."""


class Decided(Event, frozen=True):
    """`number`: how many decisions came before; `uniform`: the number it was drawn from, where the caller gave it.

    `minted`: whether the pool made the ticket; then what it was drawn from follows from `number`, else from the ticket.
    """

    kind: ClassVar[Kind] = "decision"
    ticket: str
    number: int
    version: int
    action: int
    probability: float
    is_holdout: bool
    uniform: float | None = None
    minted: bool = False
    carry: bytes = b""
    """What its outcome will need that depends on the action, a row a state, where the learner has such; of a request
    with rows of its own: all that depends on them, a row a state (`live_learner`)."""
    context: Any = None
    label: Any = None
    """Of the action, where it was a candidate that its request brought: `action` is then negative if the catalogue
    does not have it."""
    digest: bytes = b""
    """Of a request that brought rows of its own."""
    lane: bytes = b""
    """Of a decision that was made without the pool's lock: the lane it was written to first, and how many decisions
    of that lane came before."""
    place: int = 0
    round: int | None = None
    """Of such a decision: how many there had been when its version was made, and since then in its lane. The learner
    counts it as this round, wherever in the journal it came to stand."""

    @property
    def is_request(self) -> bool:
        """Whether it was answered with rows of its own."""
        return self.context is not None or bool(self.digest)

    @property
    def round_played(self) -> int:
        """Which round it is to the learner."""
        return self.number if self.round is None else self.round


class Lesson(Event, frozen=True):
    """What state, outcome, expiry and correction share: the decision as it was made, and how many `decisions` there
    were when this came."""

    ticket: str
    """Empty since format 5: `number` says which decision this is of."""
    number: int
    version: int
    action: int
    is_holdout: bool
    decisions: int
    state: int | None
    loss: float | None

    @property
    def carried(self) -> bytes:
        """The decision's row of the state that was seen, where the learner has such."""
        carry: bytes = getattr(self, "carry", b"")
        return carry

    @property
    def is_request(self) -> bool:
        """Whether the decision was answered with rows of its own."""
        of_request: bool = getattr(self, "of_request", False)
        return of_request

    @property
    def round_played(self) -> int:
        """Which round the decision is to the learner."""
        own: int | None = getattr(self, "round", None)
        return self.number if own is None else own


class Seen(Lesson, frozen=True):
    """The state came; `loss` is there if the outcome, or its default, had come before.

    `carry`, here and below, is the decision's row of the state that was seen, where the learner has such.
    """

    kind: ClassVar[Kind] = "state"
    carry: bytes = b""
    of_request: bool = False
    reached: bytes = b""
    """Of a request with rows of its own: the probability of each state under its play."""
    round: int | None = None
    """Here and below: the decision's, where it has one."""


class Resolved(Lesson, frozen=True):
    """The outcome came; `state` is there if it had been seen.

    `reported` is the outcome in the caller's own numbers, a reward or else a loss: bounds may change, and saying it
    again must be harmless. Journals of earlier versions do not have it.
    """

    kind: ClassVar[Kind] = "outcome"
    reported: float | None = None
    as_reward: bool = False
    carry: bytes = b""
    of_request: bool = False
    round: int | None = None


class Expired(Lesson, frozen=True):
    """No outcome came in time; `loss` is the default (none: the ticket is closed and teaches nothing)."""

    kind: ClassVar[Kind] = "expiry"
    carry: bytes = b""
    of_request: bool = False
    round: int | None = None


class Corrected(Lesson, frozen=True):
    """The outcome came after its expiry and replaces the default, `replaced`."""

    kind: ClassVar[Kind] = "correction"
    replaced: float | None = None
    reported: float | None = None
    as_reward: bool = False
    carry: bytes = b""
    of_request: bool = False
    round: int | None = None


class Forgotten(Event, frozen=True):
    """Events that somebody had erased: the number of each, its hash, and the hash of what is left of it."""

    kind: ClassVar[Kind] = "erasure"
    erased: list[tuple[int, bytes, bytes]]


class Erased(Event, frozen=True):
    """In the place of an event that was erased: what the learner needs of it (`left`, an event without its ticket).

    The event keeps its hash in the chain, which is that of the bytes that are gone: whoever has them can prove that
    they were there. `check` is the hash of that hash and of what is left, so that damage shows; a `Forgotten` event
    further on in the chain says that this was done.
    """

    left: bytes
    check: bytes


AnyEvent = (
    Opened | Upgraded | Added | Retired | Reweighted | Placed | Brought | Changed
    | Refreshed | Decided | Seen | Resolved | Expired | Corrected | Forgotten
)  # fmt: skip

SMALL, KEPT = 256, 8_192
"""Bytes up to which an event is kept once it is decoded, and how many are: whatever looks at a decision, its state and
its outcome reads the same bytes again soon."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyEvent | Erased)


def _pack_lesson(kind: type[packed.PackedLesson], event: Any, *own: Any) -> bytes | None:
    """None: it names its ticket, as events of earlier formats do."""
    return None if event.ticket else packed.write(kind, *packed.lesson_values(event), *own)


PACK: dict[type[Event], Callable[[Any], bytes | None]] = {
    Refreshed: lambda event: packed.pack_version(event.at, event.decisions, event.record, event.epoch),
    Decided: packed.pack_decision,
    Seen: lambda event: _pack_lesson(packed.PackedState, event, event.reached),
    Resolved: lambda event: _pack_lesson(packed.PackedOutcome, event, *packed.said(event)),
    Expired: lambda event: _pack_lesson(packed.PackedExpiry, event),
    Corrected: lambda event: _pack_lesson(
        packed.PackedCorrection, event, packed.number(event.replaced), *packed.said(event)
    ),
}


def _unpack_version(given: packed.PackedVersion) -> Refreshed:
    return Refreshed(given.at, given.decisions, packed.record_of(given), given.epoch)


def _unpack_decision(given: packed.PackedDecision) -> Decided:
    drawn = given.number, given.version, given.action, given.probability, given.is_holdout, given.uniform
    return Decided(
        given.at, packed.ticket_of(given), *drawn, isinstance(given.ticket, bytes), given.carry, given.context,
        given.label, given.digest, given.lane, given.place, given.round,
    )  # fmt: skip


def _unpack_lesson(kind: Callable[..., AnyEvent], given: packed.PackedLesson, *own: Any, then: Any = ()) -> AnyEvent:
    """`own`: what an event has of its own before what travelled with the decision, `then`: after it."""
    number = given.number
    return kind(
        given.at, "", number, given.version, given.action, given.is_holdout, number + given.age, given.state,
        given.loss, *own, given.carry, given.of_request, *then, None if given.later is None else number + given.later,
    )  # fmt: skip


UNPACK: dict[type[packed.Packed], Callable[[Any], AnyEvent]] = {
    packed.PackedVersion: _unpack_version,
    packed.PackedDecision: _unpack_decision,
    packed.PackedState: lambda given: _unpack_lesson(Seen, given, then=(given.reached,)),
    packed.PackedOutcome: lambda given: _unpack_lesson(Resolved, given, *packed.told(given)),
    packed.PackedExpiry: lambda given: _unpack_lesson(Expired, given),
    packed.PackedCorrection: lambda given: _unpack_lesson(Corrected, given, given.replaced, *packed.told(given)),
}


def encode(event: Event) -> bytes:
    """The bytes that are stored and hashed: packed where that can be, else in words."""
    pack = PACK.get(type(event))
    body = None if pack is None else pack(event)
    return _encoder.encode(event) if body is None else body


def encode_decision(event: Decided, tail: bytes | None) -> bytes:
    """The same of a decision that was just made; `tail`: what is stored of its ticket, if that was minted."""
    body = packed.pack_decision(event, tail)
    assert body is not None
    return body


def decode(body: bytes) -> AnyEvent:
    """The event of its bytes, or what is left of it."""
    return _decode_again(body) if len(body) <= SMALL else _decode(body)


def _decode(body: bytes) -> AnyEvent:
    if packed.is_packed(body):
        given = packed.read(body)
        return UNPACK[type(given)](given)
    event = _decoder.decode(body)
    return decode(event.left) if isinstance(event, Erased) else event


_decode_again = lru_cache(KEPT)(_decode)


class _Timed(msgspec.Struct, array_like=True):
    tag: str | int
    at: int


_timer = msgspec.msgpack.Decoder(_Timed)


def time_of(body: bytes) -> int:
    """When an event happened, without reading the rest of it."""
    return _timer.decode(body).at


def columns_of(event: "AnyEvent") -> tuple[Kind, str | None, int | None]:
    """What a store finds an event by: its kind, the ticket of a decision unless it follows from its number, and the
    number of the decision that it is of."""
    if isinstance(event, Lesson):
        return event.kind, None, event.number
    if isinstance(event, Decided):
        follows = event.minted and number_of(event.ticket) == event.number
        return event.kind, None if follows else event.ticket, event.number
    return event.kind, event.name if isinstance(event, Brought) else None, None


def erased_of(body: bytes) -> Erased | None:
    """What stands in the place of an event that was erased; None: it was not."""
    if packed.is_packed(body) or b"Erased" not in body[:9]:
        return None
    event = _decoder.decode(body)
    return event if isinstance(event, Erased) else None


def erase(event: AnyEvent, digest: bytes) -> bytes:
    """The bytes that stand in the place of an event of that hash, of which this is left."""
    left = encode(event)
    return encode(Erased(event.at, left, sha256(digest + left).digest()))
