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

    action: Annotated[Label, Meta(description="What may be shown; it need not be in the catalogue.")]
    row: Annotated[Row, Meta(description="How likely each state is after it: one probability a state, 1 in all.")]


Candidates = Annotated[dict[str, Row], Meta(min_length=1)] | Annotated[list[CandidateBody], Meta(min_length=1)]
"""{action: row}, or a list where labels are no text."""
OwnTicket = Annotated[
    Ticket | UnsetType,
    Meta(description="A name of your own for the decision; asked for again, it gets the same answer. Left out: made."),
]
Context = Annotated[Label | UnsetType, Meta(description="Who is asking, in a pool that has contexts.")]
Offered = Annotated[
    Candidates | UnsetType,
    Meta(
        description="What may be shown, with rows of your own model for this request alone: {action: row}, or a list "
        "of {action, row} where labels are no text. The actions need not be in the catalogue."
    ),
]


class RequestBody(Struct, forbid_unknown_fields=True):
    """One decision of several: its ticket, and who is asking or what may be shown."""

    ticket: OwnTicket = UNSET
    context: Context = UNSET
    candidates: Offered = UNSET


class DecisionBody(Struct, forbid_unknown_fields=True):
    """One decision, for a ticket of your own if you give one; or several in one go.

    At most one of `ticket`, `count`, `tickets` and `requests`, and at most one of `context` and `candidates`, which
    are of every decision that is asked for; several that differ are `requests`. No body at all asks for one decision.
    Several are decided all or none: where one is refused, none is decided, and the refusal says which one it is.
    """

    ticket: OwnTicket = UNSET
    count: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] | UnsetType,
        Meta(description="So many decisions, with tickets that the pool makes."),
    ] = UNSET
    tickets: Annotated[
        Annotated[list[Ticket], Meta(min_length=1, max_length=MOST_AT_ONCE)] | UnsetType,
        Meta(description="One decision for each of these tickets of your own."),
    ] = UNSET
    context: Context = UNSET
    candidates: Offered = UNSET
    requests: Annotated[
        Annotated[list[RequestBody], Meta(min_length=1, max_length=MOST_AT_ONCE)] | UnsetType,
        Meta(description="One decision for each of these, answered in this order."),
    ] = UNSET


SeenState = Annotated[Label, Meta(description="What was seen: one of the pool's states.")]
Loss = Annotated[
    float | UnsetType,
    Meta(description="What it cost, less is better; inside the pool's `loss_bounds`, which are 0 and 1 unless set."),
]
Reward = Annotated[
    float | UnsetType,
    Meta(description="What it brought, more is better; inside the pool's `reward_bounds`, refused where it has none."),
]
DecidedTicket = Annotated[Ticket, Meta(description="The ticket of a decision that was made.")]


class StateBody(Struct, forbid_unknown_fields=True):
    """The state that was seen."""

    state: SeenState


class OutcomeBody(Struct, forbid_unknown_fields=True):
    """The outcome: a loss, or a reward in a pool that has `reward_bounds`; exactly one of them."""

    loss: Loss = UNSET
    reward: Reward = UNSET


class StateOfTicket(Struct, forbid_unknown_fields=True):
    """The state of one ticket."""

    ticket: DecidedTicket
    state: SeenState


class StatesBody(Struct, forbid_unknown_fields=True):
    """The states of many tickets."""

    states: Annotated[
        list[StateOfTicket],
        Meta(min_length=1, max_length=MOST_AT_ONCE, description="Each is done or refused by itself."),
    ]


class OutcomeOfTicket(Struct, forbid_unknown_fields=True):
    """The outcome of one ticket: a loss, or a reward in a pool that has `reward_bounds`; exactly one of them."""

    ticket: DecidedTicket
    loss: Loss = UNSET
    reward: Reward = UNSET


class OutcomesBody(Struct, forbid_unknown_fields=True):
    """The outcomes of many tickets, losses and rewards as they come."""

    outcomes: Annotated[
        list[OutcomeOfTicket],
        Meta(min_length=1, max_length=MOST_AT_ONCE, description="Each is done or refused by itself."),
    ]


class LearnerBody(Struct, forbid_unknown_fields=True):
    """A learner by its name and options."""

    name: Annotated[str, Meta(description="Its name, such as `self-tuned`.")]
    options: Annotated[dict[str, Any], Meta(description="The learner's own arguments by name.")] = {}


class PoolBody(Struct, forbid_unknown_fields=True):
    """A pool to make, or to be level with: with `update`, a difference is written down instead of refused."""

    actions: Annotated[
        list[Label], Meta(min_length=1, description="What can be played, each once: text, number, or array of such.")
    ]
    states: Annotated[list[Label], Meta(min_length=1, description="What can be seen soon after, each once.")]
    P: Annotated[
        list[Row] | dict[str, list[Row] | dict[str, Row]] | None,
        Meta(
            description="How often each action leads to each state: one row an action, one probability a state, 1 in "
            "all. With contexts {context: rows}, or {context: {action: row}} of what may be played there. Null only "
            "for a learner that learns the map."
        ),
    ] = None
    contexts: Annotated[
        list[Label] | None, Meta(description="The contexts in their order; null: as the keys of `P` have them.")
    ] = None
    learner: Annotated[
        LearnerBody | str | None, Meta(description="A learner by its name, or with options; null: `self-tuned`.")
    ] = None
    settings: Annotated[dict[str, Any], Meta(description="Those that are not named have their defaults.")] = {}
    seed: Annotated[
        Annotated[int, Meta(ge=0, le=LARGEST)] | None,
        Meta(description="For tests: whoever knows it can foretell the draws. Null: the system's chance."),
    ] = None
    categories: Annotated[
        list[Label] | None,
        Meta(description="The category of each action, for a learner that learns the map; null: they have none."),
    ] = None
    update: Annotated[
        bool, Meta(description="Whether a pool that is there and differs is changed, instead of refused with 409.")
    ] = False


class SettingsBody(Struct, forbid_unknown_fields=True):
    """Other settings; those that are not named stay. They may also be sent flat, without the outer name."""

    settings: Annotated[dict[str, Any], Meta(description="The settings to change, by name; null: back to the default.")]


class ActionBody(Struct, forbid_unknown_fields=True):
    """An action to add, or to give another row."""

    row: Annotated[
        Row | None,
        Meta(
            description="How likely each state is after it: one probability a state, 1 in all. Null: the map is learnt."
        ),
    ] = None
    category: Annotated[
        Label | None,
        Meta(description="Its category; where the map is learnt it starts with what that has shown; null: none."),
    ] = None
    reweight: Annotated[bool, Meta(description="Whether to give an action that is there another row.")] = False
    label: Annotated[
        Label | UnsetType,
        Meta(description="The action itself where it is no text; the path then holds it as text."),
    ] = UNSET


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
