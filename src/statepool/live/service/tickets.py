"""The requests that many make at once: decisions, their states, their outcomes. No framework is in their way."""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from statepool.live.requests import Decide, DecideAll, Decision, Observe, Resolve, check_ticket, of_several
from statepool.live.service.admission import Visit
from statepool.live.service.answers import (
    DecisionAnswer,
    DecisionsAnswer,
    OutcomeAnswer,
    RefusedReport,
    ReportsAnswer,
    StateAnswer,
)
from statepool.live.service.bodies import (
    DecisionBody,
    OutcomeBody,
    OutcomesBody,
    RequestBody,
    StateBody,
    StatesBody,
    decode,
)
from statepool.live.service.pools import Pools, PoolWorker
from statepool.live.service.refusals import refusal

POOLS = "/v1/pools/"
DECISIONS = "/v1/pools/{name}/decisions"
STATE = f"{DECISIONS}/{{ticket}}/state"
OUTCOME = f"{DECISIONS}/{{ticket}}/outcome"
STATES = "/v1/pools/{name}/states"
OUTCOMES = "/v1/pools/{name}/outcomes"

_encode = msgspec.json.Encoder().encode


class Asked(NamedTuple):
    """What a body asks of a pool; `show` makes the answer from the pool's, or raises what was refused."""

    requests: Sequence[Any]
    show: "Callable[[Asked, list[Any]], bytes]"
    named: Sequence[str] = ()
    """Tickets of the caller's own that are decided."""


class TicketCall(NamedTuple):
    """A request of this kind, as its address tells; `read` takes its body."""

    method: str
    route: str
    need: str
    pool: str
    ticket: str
    read: "Callable[[TicketCall, bytes], Asked]"


@lru_cache(maxsize=1024)
def _decisions_of(path: str) -> TicketCall | None:
    pool, _, rest = path[len(POOLS) :].partition("/")
    return TicketCall("POST", DECISIONS, "decide", pool, "", read_decisions) if rest == "decisions" else None


def ticket_call(method: str, path: str) -> TicketCall | None:
    """The call that a request makes, None if it is of another kind. A ticket may hold slashes."""
    if not path.startswith(POOLS):
        return None
    if method == "POST":
        return _decisions_of(path)
    if method != "PUT":
        return None
    pool, _, rest = path[len(POOLS) :].partition("/")
    if rest.startswith("decisions/"):
        if rest.endswith("/state"):
            return TicketCall(method, STATE, "report", pool, rest[10:-6], read_state)
        if rest.endswith("/outcome"):
            return TicketCall(method, OUTCOME, "report", pool, rest[10:-8], read_outcome)
    if rest == "states":
        return TicketCall(method, STATES, "report", pool, "", read_states)
    if rest == "outcomes":
        return TicketCall(method, OUTCOMES, "report", pool, "", read_outcomes)
    return None


Done = Callable[[bytes | Exception, Sequence[int]], None]


def answer(pools: Pools, call: TicketCall, body: bytes, visit: Visit, done: Done) -> None:
    """Raise what is wrong at once; `done` is told the answer once it is on disk, or why there is none, and the statuses
    of what was refused while the rest was done."""
    asked = call.read(call, body)
    visit.pay(asked.requests)
    worker = pools.open_worker(call.pool)
    claimed = None if worker is None else visit.claim(call.pool, asked.named)
    if worker is not None and claimed is not None:
        _ask(worker, asked, visit, claimed, done)
    else:
        pools.begin(_answer_later(pools, call, asked, visit, done))


async def _answer_later(pools: Pools, call: TicketCall, asked: Asked, visit: Visit, done: Done) -> None:
    """Open the pool first, or ask the store how many tickets are open."""
    try:
        worker = await pools.worker(call.pool)
        _ask(worker, asked, visit, await visit.look_and_claim(worker.pool, asked.named), done)
    except Exception as error:
        done(error, ())


def _ask(worker: PoolWorker, asked: Asked, visit: Visit, claimed: Collection[str], done: Done) -> None:
    def told(answers: list[Any]) -> None:
        if visit.key:
            _release(worker.pool.name, asked, answers, visit, claimed)
        try:
            content = asked.show(asked, answers)
        except Exception as error:
            done(error, ())
        else:
            done(content, [refusal(each).status for each in answers if isinstance(each, Exception)])

    worker.put(asked.requests, told)


def _release(pool: str, asked: Asked, answers: list[Any], visit: Visit, claimed: Collection[str]) -> None:
    """Tickets of a key's own that were new and are refused, or that have their outcome, are open no more."""
    ended = set(claimed) if any(isinstance(answer, ValueError) for answer in answers) else set()
    told = zip(asked.requests, answers, strict=True)
    for ticket in ended | {each.ticket for each, answer in told if answer is None and isinstance(each, Resolve)}:
        visit.own_tickets.release(pool, ticket)


def read_decisions(call: TicketCall, body: bytes) -> Asked:
    if body in NOTHING:  # as most have
        return PLAIN
    asked = decode(body, DecisionBody)
    given = [name for name in ("ticket", "count", "tickets", "requests") if getattr(asked, name) is not UNSET]
    if len(given) > 1:
        raise ValueError(f"body: has {' and '.join(given)}, expected one of ticket, count, tickets and requests")
    if asked.requests is not UNSET:
        if asked.context is not UNSET or asked.candidates is not UNSET:
            raise ValueError("body: has requests, expected context and candidates inside each of them")
        asked_for = _asked_each(asked.requests)
    elif asked.count is not UNSET or asked.tickets is not UNSET:
        named: Any = asked.tickets
        tickets = [None] * asked.count if asked.count is not UNSET else _checked_tickets(named)
        plain = _asked(asked)
        asked_for = [Decide(ticket, None, plain.context, plain.candidates) for ticket in tickets]
    else:
        one = _asked(asked)
        return Asked([one], _show_decision, () if one.ticket is None else (one.ticket,))
    return Asked(
        [DecideAll(asked_for)], _show_decisions, [each.ticket for each in asked_for if each.ticket is not None]
    )


def _checked_tickets(tickets: list[str]) -> list[str]:
    for number, ticket in enumerate(tickets, start=1):
        try:
            check_ticket(ticket)
        except ValueError as error:
            raise of_several(error, number, len(tickets)) from None
    return tickets


def _asked_each(bodies: list[RequestBody]) -> list[Decide]:
    asked_for = []
    for number, body in enumerate(bodies, start=1):
        try:
            asked_for.append(_asked(body))
        except ValueError as error:
            raise of_several(error, number, len(bodies)) from None
    return asked_for


def _asked(body: DecisionBody | RequestBody) -> Decide:
    """The request of one decision."""
    candidates: Any = None if body.candidates is UNSET else body.candidates
    if isinstance(candidates, list):
        rows = {each.action: each.row for each in candidates}
        if len(rows) < len(candidates):
            raise ValueError("candidates: has an action twice, expected different ones")
        candidates = rows
    ticket = None if body.ticket is UNSET else check_ticket(body.ticket)
    return Decide(ticket, None, None if body.context is UNSET else body.context, candidates)


def _show_decision(asked: Asked, answers: list[Any]) -> bytes:
    return _encode(_shown(_checked_answers(answers)[0]))


NOTHING = b"", b"{}"
PLAIN = Asked((Decide(),), _show_decision)
"""What a body without anything in it asks for."""


def _show_decisions(asked: Asked, answers: list[Any]) -> bytes:
    [decisions] = _checked_answers(answers)
    return _encode(DecisionsAnswer([_shown(decision) for decision in decisions]))


def _shown(decision: Decision) -> DecisionAnswer:
    return DecisionAnswer(decision.ticket, decision.action, decision.probability)


def read_state(call: TicketCall, body: bytes) -> Asked:
    return Asked([Observe(call.ticket, decode(body, StateBody).state)], _show_state)


def _show_state(asked: Asked, answers: list[Any]) -> bytes:
    _checked_answers(answers)
    [told] = asked.requests
    return _encode(StateAnswer(told.ticket, told.state))


def read_outcome(call: TicketCall, body: bytes) -> Asked:
    outcome = decode(body, OutcomeBody)
    return Asked([Resolve(call.ticket, _set(outcome.loss), _set(outcome.reward))], _show_outcome)


def _show_outcome(asked: Asked, answers: list[Any]) -> bytes:
    _checked_answers(answers)
    [told] = asked.requests
    return _encode(OutcomeAnswer(told.ticket, _unset(told.loss), _unset(told.reward)))


def read_states(call: TicketCall, body: bytes) -> Asked:
    return Asked([Observe(each.ticket, each.state) for each in decode(body, StatesBody).states], _show_reports)


def read_outcomes(call: TicketCall, body: bytes) -> Asked:
    told = decode(body, OutcomesBody).outcomes
    return Asked([Resolve(each.ticket, _set(each.loss), _set(each.reward)) for each in told], _show_reports)


def _set(value: float | UnsetType) -> float | None:
    return None if value is UNSET else value


def _unset(value: float | None) -> float | UnsetType:
    return UNSET if value is None else value


def _show_reports(asked: Asked, answers: list[Any]) -> bytes:
    """How many could be done, and each that was refused as it would have been alone."""
    refused = []
    for request, answer in zip(asked.requests, answers, strict=True):
        if isinstance(answer, ValueError):
            why = refusal(answer)
            refused.append(RefusedReport(request.ticket, why.status, why.sentence))
        elif isinstance(answer, Exception):
            raise answer  # the store is away: asking again is harmless
    return _encode(ReportsAnswer(len(asked.requests) - len(refused), refused))


def _checked_answers(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
