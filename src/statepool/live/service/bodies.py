"""What requests hold, as msgspec types: checked while they are read, and the source of the OpenAPI document."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from statepool.live.service.refusals import Refused
from statepool.live.writer import LONGEST_TICKET

MOST_AT_ONCE = 1_000
LARGEST = (1 << 63) - 1

Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Plain = str | Whole | float | bool
Label = str | Whole | float | bool | Annotated[tuple[Plain, ...], Meta(min_length=1)]
"""A tuple is written as an array."""
Ticket = Annotated[str, Meta(min_length=1, max_length=LONGEST_TICKET)]
Row = list[Annotated[float, Meta(ge=0, le=1)]]


class CandidateBody(Struct, forbid_unknown_fields=True):
    """An action that may be shown, and its row of P for this request."""

    action: Label
    row: Row


Candidates = Annotated[dict[str, Row], Meta(min_length=1)] | Annotated[list[CandidateBody], Meta(min_length=1)]
"""{action: row}, or a list where labels are no text."""


class RequestBody(Struct, forbid_unknown_fields=True):
    """One decision of several: its ticket, and who is asking or what may be shown."""

    ticket: Ticket | UnsetType = UNSET
    context: Label | UnsetType = UNSET
    candidates: Candidates | UnsetType = UNSET


class DecisionBody(Struct, forbid_unknown_fields=True):
    """One decision, for a ticket of your own if you give one; or several in one go.

    `context` says who is asking, in a pool that has contexts; `candidates` what may be shown, with rows for this
    request alone. Both are of one decision; several that differ are `requests`.
    """

    ticket: Ticket | UnsetType = UNSET
    count: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] | UnsetType = UNSET
    tickets: Annotated[list[Ticket], Meta(min_length=1, max_length=MOST_AT_ONCE)] | UnsetType = UNSET
    context: Label | UnsetType = UNSET
    candidates: Candidates | UnsetType = UNSET
    requests: Annotated[list[RequestBody], Meta(min_length=1, max_length=MOST_AT_ONCE)] | UnsetType = UNSET


class StateBody(Struct, forbid_unknown_fields=True):
    """The state that was seen."""

    state: Label


class OutcomeBody(Struct, forbid_unknown_fields=True):
    """The outcome: a loss, or a reward in a pool that has reward_bounds."""

    loss: float | UnsetType = UNSET
    reward: float | UnsetType = UNSET


class StateOfTicket(Struct, forbid_unknown_fields=True):
    ticket: Ticket
    state: Label


class StatesBody(Struct, forbid_unknown_fields=True):
    """The states of many tickets."""

    states: Annotated[list[StateOfTicket], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class OutcomeOfTicket(Struct, forbid_unknown_fields=True):
    """The outcome of one ticket: a loss, or a reward in a pool that has reward_bounds."""

    ticket: Ticket
    loss: float | UnsetType = UNSET
    reward: float | UnsetType = UNSET


class OutcomesBody(Struct, forbid_unknown_fields=True):
    """The outcomes of many tickets, losses and rewards as they come."""

    outcomes: Annotated[list[OutcomeOfTicket], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class LearnerBody(Struct, forbid_unknown_fields=True):
    name: str
    options: dict[str, Any] = {}


class PoolBody(Struct, forbid_unknown_fields=True):
    """A pool to make, or to be level with: with `update`, a difference is written down instead of refused."""

    actions: Annotated[list[Label], Meta(min_length=1)]
    states: Annotated[list[Label], Meta(min_length=1)]
    P: list[Row] | dict[str, list[Row] | dict[str, Row]] | None = None
    """One row an action; with contexts, {context: rows}, or {context: {action: row}} of what may be played there."""
    contexts: list[Label] | None = None
    learner: LearnerBody | str | None = None
    settings: dict[str, Any] = {}
    seed: Annotated[int, Meta(ge=0, le=LARGEST)] | None = None
    categories: list[Label] | None = None
    update: bool = False


class SettingsBody(Struct, forbid_unknown_fields=True):
    """Other settings; those that are not named stay."""

    settings: dict[str, Any]


class ActionBody(Struct, forbid_unknown_fields=True):
    """An action to add, or to give another row; `label` where it is no text (the path then holds it as text)."""

    row: Row | None = None
    category: Label | None = None
    reweight: bool = False
    label: Label | UnsetType = UNSET


BODIES = (DecisionBody, StateBody, StatesBody, OutcomeBody, OutcomesBody, PoolBody, SettingsBody, ActionBody)
Body = TypeVar("Body")
DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (*BODIES, dict[str, Any])
}


def decode(body: bytes, kind: type[Body]) -> Body:
    """Read a body as its type; NaN and Infinity are refused, since they are not JSON."""
    try:
        return DECODERS[kind].decode(body)
    except msgspec.ValidationError as error:
        raise Refused(422, f"body: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(400, f"body: is not JSON ({error})") from None
