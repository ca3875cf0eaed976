"""The events that come with every decision, as they are stored: an array each, short.

An array begins with a small number for its sort, ends with the last value that is not the usual one, and holds nothing
that follows from the rest: a ticket that the pool minted is stored without the number that it begins with, what is told
of a decision later names it by its number alone, and the table that a version records has each column once. What cannot
be said this way (events of earlier formats) is written in words, as it was read. One event has one encoding.

This module knows how the values lie; which class they are of is known to `events`.
"""

from typing import Any

import msgspec
import numpy as np

from statepool.live.luck import tail_of, text_of

SAME = True
"""In the place of the number that was reported: it is the loss itself."""

RECORD = {"q", "carry", "clock"}
SOMETIMES = {"registers", "unreached"}

Values = tuple[Any, ...]


class Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    at: int


class PackedVersion(Packed, frozen=True, tag=0):
    decisions: int
    epoch: bytes
    q: bytes
    columns: list[bytes]
    """Of the table that travels: empty where it is q, one number where all states have the same."""
    clock: bytes
    registers: bytes | None = None
    unreached: list[int] | None = None


class PackedDecision(Packed, frozen=True, tag=1):
    ticket: Any
    """Text, or bytes: what a minted one has after its number."""
    number: int
    version: int
    action: int
    probability: float
    is_holdout: bool = False
    lane: bytes = b""
    place: int = 0
    round: int | None = None
    uniform: float | None = None
    carry: bytes = b""
    context: Any = None
    label: Any = None
    digest: bytes = b""


class PackedLesson(Packed, frozen=True):
    number: int
    version: int
    action: int
    age: int
    """How many decisions have come since."""
    state: int | None = None
    loss: float | None = None
    is_holdout: bool = False
    later: int | None = None
    """By how much the round is later than the number, where the decision has one of its own."""
    carry: bytes = b""
    of_request: bool = False


class PackedState(PackedLesson, frozen=True, tag=2):
    reached: bytes = b""


class PackedOutcome(PackedLesson, frozen=True, tag=3):
    reported: float | bool | None = SAME
    as_reward: bool = False


class PackedExpiry(PackedLesson, frozen=True, tag=4):
    pass


class PackedCorrection(PackedLesson, frozen=True, tag=5):
    replaced: float | None = None
    reported: float | bool | None = SAME
    as_reward: bool = False


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(
    PackedVersion | PackedDecision | PackedState | PackedOutcome | PackedExpiry | PackedCorrection
)
_USUAL: dict[type[Packed], Values] = {
    kind: (kind.__struct_config__.tag, kind.__struct_defaults__[::-1])
    for kind in (PackedVersion, PackedDecision, PackedState, PackedOutcome, PackedExpiry, PackedCorrection)
}
WORD = range(0xA0, 0xC0)
"""First bytes of a short text in msgpack: an event that was written in words has its name there."""


def is_packed(body: bytes) -> bool:
    """Whether an event is stored as an array that begins with a number."""
    return body[1 if body[0] < 0xA0 else 3] not in WORD if len(body) > 3 else False


def write(kind: type[Packed], *values: Any) -> bytes:
    """The values, without those at the end that are the usual ones."""
    tag, usual = _USUAL[kind]
    size = len(values)
    for each in usual:  # the last first
        if values[size - 1] != each or type(values[size - 1]) is not type(each):  # 1 is no True
            break
        size -= 1
    return _encoder.encode((tag, *values[:size]))


def read(body: bytes) -> Any:
    return _decoder.decode(body)


def number(value: float | None) -> Any:
    """A number that is whole takes less room as such; it is read as the same float."""
    if value is None or value % 1 or abs(value) > 1 << 31 or (value == 0 and str(value) == "-0.0"):
        return value
    return int(value)


def pack_version(at: int, decisions: int, record: dict[str, Any], epoch: bytes) -> bytes | None:
    """None: it is not a record that this release makes."""
    if not RECORD <= record.keys() <= RECORD | SOMETIMES or not record["q"]:
        return None
    table = np.frombuffer(record["carry"]).reshape(len(record["q"]) // 8, -1)
    columns = [_narrow(column.tobytes(), record["q"]) for column in table.T]
    given = columns, record["clock"], record.get("registers"), record.get("unreached")
    return write(PackedVersion, at, decisions, epoch, record["q"], *given)


def _narrow(column: bytes, q: bytes) -> bytes:
    if column == q:
        return b""
    return column[:8] if column == column[:8] * (len(q) // 8) else column


def record_of(packed: PackedVersion) -> dict[str, Any]:
    """The record as it was made, with its keys in that order."""
    q, n_states = packed.q, len(packed.q) // 8
    table = np.empty((n_states, len(packed.columns)))
    for place, column in enumerate(packed.columns):
        table[:, place] = np.frombuffer(column or q)
    record: dict[str, Any] = {"q": q, "carry": table.tobytes(), "clock": packed.clock}
    if packed.registers is not None:
        record["registers"] = packed.registers
    if packed.unreached is not None:
        record["unreached"] = packed.unreached
    return record


def pack_decision(event: Any, tail: bytes | None = None) -> bytes | None:
    """None: its ticket was minted by an earlier release. `tail`: what is stored of it, where that is known."""
    if event.minted and tail is None:
        tail = tail_of(event.ticket, event.lane, event.place if event.lane else event.number)
        if tail is None:
            return None
    return write(
        PackedDecision, event.at, event.ticket if tail is None else tail, event.number, event.version, event.action,
        number(event.probability), event.is_holdout, event.lane, event.place, event.round,
        number(event.uniform), event.carry, event.context, event.label, event.digest,
    )  # fmt: skip


def ticket_of(packed: PackedDecision) -> str:
    if isinstance(packed.ticket, str):
        return packed.ticket
    if not isinstance(packed.ticket, bytes):
        raise msgspec.ValidationError("Expected `str` or `bytes` - at `$[2]`")
    return text_of(packed.ticket, packed.lane, packed.place if packed.lane else packed.number)


def lesson_values(event: Any) -> Values:
    """What all that is told of a decision has in common."""
    later = None if event.round is None else event.round - event.number
    of_decision = event.at, event.number, event.version, event.action, event.decisions - event.number
    return *of_decision, event.state, number(event.loss), event.is_holdout, later, event.carry, event.of_request


def said(event: Any) -> Values:
    """What was reported, and whether that was a reward."""
    same = event.loss == event.reported is not None and (event.loss or repr(event.loss) == repr(event.reported))
    return SAME if same else number(event.reported), event.as_reward


def told(packed: PackedOutcome | PackedCorrection) -> Values:
    """The same of an event that was read."""
    return packed.loss if packed.reported is SAME else packed.reported, packed.as_reward
