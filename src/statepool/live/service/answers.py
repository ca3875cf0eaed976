"""What the service answers, as msgspec types: what is written, and the source of the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from statepool.live.service.bodies import Label
from statepool.live.service.refusals import ErrorAnswer
from statepool.live.settings import Settings

Probability = Annotated[float, Meta(ge=0, le=1)]
Time = Annotated[datetime, Meta(tz=True)]


class NamesAnswer(Struct):
    """The pools that the key may use."""

    pools: list[str]


class DecisionAnswer(Struct):
    """An action to play, drawn with this probability; the ticket names the decision from here on."""

    ticket: str
    action: Label
    probability: Probability


class DecisionsAnswer(Struct):
    """Several decisions, in the order in which they were asked for."""

    decisions: list[DecisionAnswer]


class TicketAnswer(Struct):
    """What is known of a ticket; what has not come yet is null."""

    ticket: str
    action: Label
    probability: Probability
    state: Label | None
    loss: float | None
    reward: float | None
    decided_at: Time | None
    observed_at: Time | None
    resolved_at: Time | None
    held: bool
    expired: bool
    version: int
    context: Label | None


class StateAnswer(Struct):
    """The state that a ticket has now."""

    ticket: str
    state: Label


class OutcomeAnswer(Struct, omit_defaults=True):
    """The outcome that a ticket has now, as it was reported."""

    ticket: str
    loss: float | UnsetType = UNSET
    reward: float | UnsetType = UNSET


class RefusedReport(Struct):
    """A report of several that was refused, as it would have been alone."""

    ticket: str
    status: int
    error: str


class ReportsAnswer(Struct):
    """How many of several reports were done, and which were not."""

    done: int
    refused: list[RefusedReport]


class ActionAnswer(Struct):
    """The action that was added, changed or retired."""

    action: Label


class ExpiryAnswer(Struct):
    """How many decisions were given the default loss."""

    expired: int


class HealthAnswer(Struct, omit_defaults=True):
    """How the service is; `trouble` names the pools that are in some, and says why."""

    status: str
    trouble: dict[str, str] | UnsetType = UNSET


class LearnerAnswer(Struct):
    """A learner by its name in the registry, and its options."""

    name: str
    options: dict[str, Any]


class CountsAnswer(Struct):
    """What has come: states, outcomes, expiries, corrections; and states that the map calls impossible."""

    state: int
    outcome: int
    expiry: int
    correction: int
    impossible: int


class ArmAnswer(Struct):
    """Outcomes of an arm, their mean loss and its standard error (null: too few came)."""

    count: int
    mean: float | None
    error: float | None


class ArmsAnswer(Struct):
    """The losses of the learner's decisions and of the holdout's, since the holdout last changed."""

    learner: ArmAnswer
    holdout: ArmAnswer


class LiftAnswer(Struct):
    """How much less the learner loses than the holdout, with its interval of 95 % at all times together."""

    value: float
    low: float
    high: float


class PoolAnswer(Struct):
    """What a pool adds up to."""

    name: str
    actions: int
    states: list[Label]
    learner: LearnerAnswer
    settings: Settings
    plays: int
    pending: int
    counts: CountsAnswer
    version: int
    losses: ArmsAnswer
    lift: LiftAnswer | None


ANSWERS = (
    ErrorAnswer, NamesAnswer, PoolAnswer, DecisionAnswer, DecisionsAnswer, TicketAnswer, StateAnswer, OutcomeAnswer,
    ReportsAnswer, ActionAnswer, ExpiryAnswer, HealthAnswer,
)  # fmt: skip
