"""Requests, responses and refusals of the HTTP API.

The msgspec types validate what is received, encode what is sent, and are the source of the OpenAPI document.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.exceptions import HTTPException

from statepool.live.decisions import Decision
from statepool.live.errors import Conflict, NoSuchPool, ReadOnly, StoreUnavailable, UnknownTicket
from statepool.live.settings import Label, about

MAX_COUNT = 1_000
Ticket = Annotated[str, Meta(min_length=1, max_length=200)]
Row = list[Annotated[float, Meta(ge=0, le=1)]]
Time = Annotated[datetime, Meta(tz=True)]


class CandidateBody(Struct, forbid_unknown_fields=True):
    """An action that may be shown, with its row of P for this request."""

    action: Annotated[Label, about("What may be shown; it need not be in the catalogue.")]
    row: Annotated[Row, about("Probability of each state after this action; they sum to 1.")]


Candidates = Annotated[dict[str, Row], Meta(min_length=1)] | Annotated[list[CandidateBody], Meta(min_length=1)]


class DecisionBody(Struct, forbid_unknown_fields=True):
    """One decision, or `count` of them. An empty body asks for one decision."""

    ticket: Annotated[
        Ticket | None,
        about("Your own name for it. Repeating it returns the same answer. Null: generated. Not with `count`."),
    ] = None
    context: Annotated[Label | None, about("The context of the request; null in a pool without contexts.")] = None
    candidates: Annotated[
        Candidates | None,
        about("What may be shown to this request only: {action: row}, or a list where labels are not text; null: all."),
    ] = None
    count: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_COUNT)] | None,
        about("Number of decisions, all made or none, with generated tickets; null: one."),
    ] = None


class StateBody(Struct, forbid_unknown_fields=True):
    """The state observed after a decision."""

    state: Annotated[Label, about("The state that was observed: one of the pool's states.")]


class OutcomeBody(Struct, forbid_unknown_fields=True):
    """The outcome of a decision: a loss or a reward, exactly one of them."""

    loss: Annotated[float | None, about("The outcome as a loss, less is better; null: it is a reward.")] = None
    reward: Annotated[
        float | None, about("The outcome as a reward, more is better; null: it is a loss. Needs `reward_bounds`.")
    ] = None


class LearnerBody(Struct, forbid_unknown_fields=True):
    """A learner by name, with its options."""

    name: Annotated[str, about("Its name, such as `self-tuned`.")]
    options: Annotated[dict[str, Any], about("The learner's own arguments by name.")] = {}


class PoolBody(Struct, forbid_unknown_fields=True):
    """A pool to create, or to compare with the existing one; `update` applies the difference."""

    actions: Annotated[list[Label], about("The catalogue, each action once.", min_length=1)]
    states: Annotated[list[Label], about("The states that can be observed, each once.", min_length=1)]
    P: Annotated[
        list[Row] | dict[str, list[Row] | dict[str, Row]] | None,
        about(
            "P(state | action): one row per action, one probability per state. With contexts "
            "{context: rows}, or {context: {action: row}} of the actions available there. Null: the map is learnt."
        ),
    ] = None
    contexts: Annotated[list[Label] | None, about("The contexts in order; null: as the keys of `P`.")] = None
    learner: Annotated[LearnerBody | str | None, about("By name, or with options; null: `self-tuned`.")] = None
    learn_map: Annotated[bool, about("Whether to learn the map, with `P` as a first guess.")] = False
    settings: Annotated[dict[str, Any], about("Settings by name; the others keep their defaults.")] = {}
    prior: Annotated[dict[str, Any] | None, about("The setting `prior`, as AUDIT.json has it; null: none.")] = None
    categories: Annotated[list[Label] | None, about("The category of each action; null: none.")] = None
    update: Annotated[bool, about("Whether an existing pool that differs is changed instead of refused.")] = False


class ActionBody(Struct, forbid_unknown_fields=True):
    """An action to add, or to give another row."""

    row: Annotated[Row | None, about("Probability of each state after this action; null: the map is learnt.")] = None
    category: Annotated[Label | None, about("The category of the action; null: none.")] = None
    reweight: Annotated[bool, about("Whether to replace the row of an existing action.")] = False
    label: Annotated[Label | None, about("A new action that is not text; null: the text in the path.")] = None


class ErrorAnswer(Struct):
    """Why a request was refused."""

    error: Annotated[str, about("One sentence: what was given, what was expected, and where.")]


class DecisionsAnswer(Struct):
    """The decisions of a batch."""

    decisions: Annotated[list[Decision], about("In the order of the request.")]


class TicketAnswer(Struct):
    """Everything known of one decision."""

    ticket: Annotated[str | None, about("The name of the decision; null: it was erased.")]
    action: Annotated[Label, about("The action that was drawn.")]
    probability: Annotated[float, about("Probability of this action when it was drawn.", ge=0, le=1)]
    state: Annotated[Label | None, about("The state observed; null: not reported yet.")]
    loss: Annotated[float | None, about("The outcome scaled by the bounds: 0 is best, 1 worst; null: none yet.")]
    reward: Annotated[float | None, about("The outcome if it was reported as a reward; null: it was not.")]
    decided_at: Annotated[Time, about("When the decision was made.")]
    observed_at: Annotated[Time | None, about("When the state was reported; null: not yet.")]
    resolved_at: Annotated[Time | None, about("When the outcome was reported or expired; null: not yet.")]
    is_holdout: Annotated[bool, about("Whether the decision belongs to the holdout.")]
    expired: Annotated[bool, about("Whether the outcome is the default of a window that passed.")]
    version: Annotated[int, about("The policy version that it was drawn from.")]
    context: Annotated[Label | None, about("The context of the request; null: there was none.")]
    cursor: Annotated[int, about("Pass the largest one as `after` to read only what was learnt since.")]


class ArmAnswer(Struct):
    """The outcomes of one group of decisions, in reported units."""

    count: Annotated[int, about("Decisions with an outcome, defaults included.")]
    mean: Annotated[float | None, about("Mean outcome; null: there is none.")]


class LiftAnswer(Struct):
    """How much better the learner does than the holdout per decision, in reported units."""

    value: Annotated[float, about("The difference of the means; above 0 the learner is better.")]
    low: Annotated[float, about("Lower end of the 95 % interval, valid at all times.")]
    high: Annotated[float, about("Upper end of it.")]


COUNTS = {
    "state": "states", "outcome": "outcomes", "expiry": "expiries", "out_of_bounds": "out_of_bounds",
    "impossible": "impossible", "correction": "corrected", "unlearned": "unlearned",
}  # fmt: skip
"""Kinds of reports, as they are named here and in `Status.counts`."""


class PoolAnswer(Struct):
    """The status of a pool."""

    name: Annotated[str, about("The pool's name.")]
    actions: Annotated[int, about("Number of active actions.")]
    states: Annotated[list[Label], about("The states that can be reported.")]
    learner: Annotated[LearnerBody, about("The learner.")]
    settings: Annotated[dict[str, Any], about("All settings.")]
    decisions: Annotated[int, about("Decisions made.")]
    pending: Annotated[int, about("Decisions without an outcome.")]
    counts: Annotated[
        dict[str, int],
        about(
            "Reports by kind: `state`, `outcome`, `expiry`, `correction` (outcomes after an expiry), "
            "`impossible` (states with probability 0), `out_of_bounds`, `unlearned`."
        ),
    ]
    version: Annotated[int, about("Number of the latest policy version.")]
    unit: Annotated[str, about("Whether outcomes are shown as `reward` or `loss`.")]
    outcomes: Annotated[
        dict[str, ArmAnswer], about("Mean outcome of `learner` and `holdout`, since the holdout last changed.")
    ]
    lift: Annotated[LiftAnswer | None, about("Learner against holdout; null: one of them has no outcome.")]


STATUSES = {UnknownTicket: 404, NoSuchPool: 404, ReadOnly: 405, Conflict: 409, StoreUnavailable: 503}


def refusal(error: Exception) -> HTTPException:
    """The status, sentence and headers of the answer to any exception; an unexpected one says nothing of the inside."""
    if isinstance(error, HTTPException):
        is_routers = error.detail == HTTPStatus(error.status_code).phrase
        sentence = f"{error.detail.lower()}: see /schema" if is_routers else error.detail
        return HTTPException(error.status_code, sentence, error.headers)
    if not isinstance(error, ValueError | StoreUnavailable):
        return HTTPException(500, "the service failed, its log says why")
    status = STATUSES.get(type(error), 422)
    return HTTPException(status, " ".join(str(error).split()), {"retry-after": "1"} if status == 503 else None)
