"""What the service answers, as msgspec types: what is written, and the source of the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from statepool.live.service.bodies import Label
from statepool.live.service.refusals import ErrorAnswer
from statepool.live.settings import Settings

Probability = Annotated[
    float, Meta(ge=0, le=1, description="How likely this action was when it was drawn; keep it with your own log.")
]
Time = Annotated[datetime, Meta(tz=True)]
TicketName = Annotated[str, Meta(description="The name of the decision.")]
Played = Annotated[Label, Meta(description="The action that was drawn.")]


class NamesAnswer(Struct):
    """The pools that the key may use."""

    pools: Annotated[list[str], Meta(description="Their names, in order.")]


class DecisionAnswer(Struct):
    """An action to play, drawn with this probability; the ticket names the decision from here on."""

    ticket: TicketName
    action: Played
    probability: Probability


class DecisionsAnswer(Struct):
    """Several decisions, where `count`, `tickets` or `requests` asked for them."""

    decisions: Annotated[list[DecisionAnswer], Meta(description="In the order in which they were asked for.")]


class TicketAnswer(Struct):
    """What is known of a ticket; what has not come yet is null."""

    ticket: TicketName
    action: Played
    probability: Probability
    state: Annotated[Label | None, Meta(description="What was seen; null: nothing was reported yet.")]
    loss: Annotated[
        float | None,
        Meta(
            description="The outcome scaled to 0–1, less is better; the default loss if `expired`; null: it has not "
            "come yet."
        ),
    ]
    reward: Annotated[
        float | None,
        Meta(description="The outcome as it was reported, as a reward; null: it was a loss, or has not come yet."),
    ]
    decided_at: Annotated[Time, Meta(description="When the decision was made.")]
    observed_at: Annotated[Time | None, Meta(description="When the state came; null: not yet.")]
    resolved_at: Annotated[Time | None, Meta(description="When the outcome came, or the default loss; null: not yet.")]
    is_holdout: Annotated[
        bool, Meta(description="Whether it belongs to the holdout, which the learner does not steer.")
    ]
    expired: Annotated[bool, Meta(description="Whether the loss is the default of an outcome that did not come.")]
    version: Annotated[int, Meta(description="The version of the play that it was drawn from.")]
    context: Annotated[
        Label | None,
        Meta(description="Who was asking; null: there are no contexts, or the request brought rows."),
    ]


class StateAnswer(Struct):
    """The state that a ticket has now."""

    ticket: TicketName
    state: Annotated[Label, Meta(description="As it was reported.")]


class OutcomeAnswer(Struct, omit_defaults=True):
    """The outcome that a ticket has now: a loss or a reward, as it was reported."""

    ticket: TicketName
    loss: Annotated[float | UnsetType, Meta(description="If it was reported as a loss.")] = UNSET
    reward: Annotated[float | UnsetType, Meta(description="If it was reported as a reward.")] = UNSET


class RefusedReport(Struct):
    """A report of several that was refused, as it would have been alone."""

    ticket: Annotated[str, Meta(description="The ticket that it was about.")]
    status: Annotated[int, Meta(description="The status that it would have had alone: 404, 409 or 422.")]
    error: Annotated[str, Meta(description="Why, in one sentence.")]


class ReportsAnswer(Struct):
    """How many of several reports were done, and which were not."""

    done: Annotated[int, Meta(description="How many were done, those included that were there already.")]
    refused: Annotated[list[RefusedReport], Meta(description="The others; nothing was changed by them.")]


class ActionAnswer(Struct):
    """The action that was added, changed or retired."""

    action: Annotated[Label, Meta(description="Its label, also where it is no text.")]


class ExpiryAnswer(Struct):
    """How many decisions were given the default loss."""

    expired: Annotated[int, Meta(description="So many, now; one whose outcome comes later is corrected.")]


class HealthAnswer(Struct, omit_defaults=True):
    """How the service is."""

    status: Annotated[str, Meta(description="`up` or `ready`.")]
    trouble: Annotated[
        dict[str, str] | UnsetType, Meta(description="The pools that are in trouble, and why; not there if none is.")
    ] = UNSET
    kind: Annotated[
        str | UnsetType,
        Meta(description="In place of `trouble`, for callers without a key: `pools`, if some are in trouble."),
    ] = UNSET


class LearnerAnswer(Struct):
    """A learner by its name in the registry, and its options."""

    name: Annotated[str, Meta(description="Such as `self-tuned`.")]
    options: Annotated[dict[str, Any], Meta(description="Its options by name.")]


class CountsAnswer(Struct):
    """What has come, over the pool's life."""

    state: Annotated[int, Meta(description="States that were reported.")]
    outcome: Annotated[int, Meta(description="Outcomes that came in time.")]
    expiry: Annotated[int, Meta(description="Decisions that were given the default loss.")]
    correction: Annotated[int, Meta(description="Outcomes that came after it, and took its place.")]
    impossible: Annotated[
        int, Meta(description="States that the action's row of P calls impossible; they teach nothing.")
    ]


class ArmAnswer(Struct):
    """The outcomes of some decisions; losses are scaled to 0–1, less is better."""

    count: Annotated[int, Meta(description="How many have an outcome, default losses included.")]
    mean: Annotated[float | None, Meta(description="Their mean loss; null: there is none.")]
    error: Annotated[float | None, Meta(description="The standard error of the mean; null: fewer than two came.")]


class ArmsAnswer(Struct):
    """The losses of the learner's decisions and of the holdout's, since the holdout last changed."""

    learner: Annotated[ArmAnswer, Meta(description="Of the decisions that the learner steered.")]
    holdout: Annotated[ArmAnswer, Meta(description="Of those that were kept from it.")]


class LiftAnswer(Struct):
    """How much less the learner loses than the holdout, scaled to 0–1, since the holdout last changed."""

    value: Annotated[
        float, Meta(description="The holdout's mean loss less the learner's: above 0, the learner loses less.")
    ]
    low: Annotated[float, Meta(description="Lower end of its interval of 95 %, which holds at all times together.")]
    high: Annotated[float, Meta(description="Upper end of it.")]


ANEW = "A change of `holdout` or `holdout_action` starts it anew, from nothing."


class PoolAnswer(Struct):
    """What a pool adds up to."""

    name: Annotated[str, Meta(description="The pool's name.")]
    actions: Annotated[int, Meta(description="How many actions can be played; retired ones are not counted.")]
    states: Annotated[list[Label], Meta(description="The states that can be reported.")]
    learner: Annotated[LearnerAnswer, Meta(description="Which learner plays.")]
    settings: Annotated[Settings, Meta(description="All settings, as they are now.")]
    decisions: Annotated[int, Meta(description="Decisions made.")]
    pending: Annotated[int, Meta(description="Decisions that wait for an outcome.")]
    counts: Annotated[CountsAnswer, Meta(description="What has come, over the pool's life.")]
    version: Annotated[int, Meta(description="The event that made the latest version of the play; 0: none yet.")]
    losses: Annotated[ArmsAnswer, Meta(description=f"Learner and holdout compared. {ANEW}")]
    lift: Annotated[
        LiftAnswer | None,
        Meta(description=f"What the learner saves; null while either side has no outcome. {ANEW}"),
    ]


ANSWERS = (
    ErrorAnswer, NamesAnswer, PoolAnswer, DecisionAnswer, DecisionsAnswer, TicketAnswer, StateAnswer, OutcomeAnswer,
    ReportsAnswer, ActionAnswer, ExpiryAnswer, HealthAnswer,
)  # fmt: skip
