"""The requests that many make at once: decisions, their states, their outcomes. No framework is in their way."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from statepool.live.requests import Decide, Decision, Observe, Resolve, check_ticket
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
from statepool.live.service.pools import Pools
from statepool.live.service.refusals import refusal

POOLS = "/v1/pools/"
DECISIONS = "/v1/pools/{name}/decisions"
STATE = f"{DECISIONS}/{{ticket}}/state"
OUTCOME = f"{DECISIONS}/{{ticket}}/outcome"
STATES = "/v1/pools/{name}/states"
OUTCOMES = "/v1/pools/{name}/outcomes"

_encode = msgspec.json.Encoder().encode


class TicketCall(NamedTuple):
    """A request of this kind, as its address tells."""

    route: str
    need: str
    pool: str
    ticket: str
    answer: "Callable[[Pools, TicketCall, bytes, Visit], Awaitable[bytes]]"


def ticket_call(method: str, path: str) -> TicketCall | None:
    """The call that a request makes, None if it is of another kind. A ticket may hold slashes."""
    if not path.startswith(POOLS):
        return None
    pool, _, rest = path[len(POOLS) :].partition("/")
    if method == "POST" and rest == "decisions":
        return TicketCall(DECISIONS, "decide", pool, "", decide)
    if method == "PUT" and rest.startswith("decisions/"):
        if rest.endswith("/state"):
            return TicketCall(STATE, "report", pool, rest[10:-6], observe)
        if rest.endswith("/outcome"):
            return TicketCall(OUTCOME, "report", pool, rest[10:-8], resolve)
    if method == "PUT" and rest == "states":
        return TicketCall(STATES, "report", pool, "", observe_many)
    if method == "PUT" and rest == "outcomes":
        return TicketCall(OUTCOMES, "report", pool, "", resolve_many)
    return None


async def decide(pools: Pools, call: TicketCall, body: bytes, visit: Visit) -> bytes:
    asked = decode(body, DecisionBody) if body else DecisionBody()
    given = [name for name in ("ticket", "count", "tickets", "requests") if getattr(asked, name) is not UNSET]
    if len(given) > 1:
        raise ValueError(f"body: has {' and '.join(given)}, expected one of ticket, count, tickets and requests")
    if asked.requests is not UNSET:
        if asked.context is not UNSET or asked.candidates is not UNSET:
            raise ValueError("body: has requests, expected context and candidates inside each of them")
        asked_for = [_asked(each) for each in asked.requests]
    elif asked.count is not UNSET or asked.tickets is not UNSET:
        tickets = [None] * asked.count if asked.count is not UNSET else _checked(asked.tickets)
        plain = _asked(asked)
        asked_for = [Decide(ticket, None, plain.context, plain.candidates) for ticket in tickets]
    else:
        [decision] = await _decide(pools, call, [_asked(asked)], visit)
        return _encode(_shown(decision))
    decisions = await _decide(pools, call, asked_for, visit)
    return _encode(DecisionsAnswer([_shown(decision) for decision in decisions]))


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


async def _decide(pools: Pools, call: TicketCall, asked: Sequence[Decide], visit: Visit) -> list[Decision]:
    visit.pay(len(asked))
    worker = pools.open_worker(call.pool) or await pools.worker(call.pool)
    tickets = [each.ticket for each in asked]
    await visit.claim(worker.pool, tickets)
    answers = await worker.ask(asked)
    for ticket, answer in zip(tickets, answers, strict=True):
        if ticket is not None and isinstance(answer, ValueError):
            visit.own_tickets.release(call.pool, ticket)
    return _checked_answers(answers)


def _checked(tickets: Any) -> list[str]:
    return [check_ticket(ticket) for ticket in tickets]  # one that is wrong is refused before any is decided


def _shown(decision: Decision) -> DecisionAnswer:
    return DecisionAnswer(decision.ticket, decision.action, decision.probability)


async def observe(pools: Pools, call: TicketCall, body: bytes, visit: Visit) -> bytes:
    state = decode(body, StateBody).state
    await _one(pools, call, Observe(call.ticket, state))
    return _encode(StateAnswer(call.ticket, state))


async def resolve(pools: Pools, call: TicketCall, body: bytes, visit: Visit) -> bytes:
    outcome = decode(body, OutcomeBody)
    await _one(pools, call, Resolve(call.ticket, _set(outcome.loss), _set(outcome.reward)))
    visit.own_tickets.release(call.pool, call.ticket)
    return _encode(OutcomeAnswer(call.ticket, outcome.loss, outcome.reward))


async def observe_many(pools: Pools, call: TicketCall, body: bytes, visit: Visit) -> bytes:
    asked = decode(body, StatesBody).states
    return await _report(pools, call, [Observe(each.ticket, each.state) for each in asked], visit)


async def resolve_many(pools: Pools, call: TicketCall, body: bytes, visit: Visit) -> bytes:
    asked = decode(body, OutcomesBody).outcomes
    return await _report(
        pools, call, [Resolve(each.ticket, _set(each.loss), _set(each.reward)) for each in asked], visit
    )


def _set(value: float | UnsetType) -> float | None:
    return None if value is UNSET else value


async def _report(pools: Pools, call: TicketCall, requests: Sequence[Observe | Resolve], visit: Visit) -> bytes:
    """Do what can be done, and tell each that was refused as it would have been alone."""
    visit.pay(len(requests))
    worker = pools.open_worker(call.pool) or await pools.worker(call.pool)
    refused = []
    for request, answer in zip(requests, await worker.ask(requests), strict=True):
        if isinstance(answer, ValueError):
            why = refusal(answer)
            refused.append(RefusedReport(request.ticket, why.status, why.sentence))
        elif isinstance(answer, Exception):
            raise answer  # the store is away: asking again is harmless
        elif isinstance(request, Resolve):
            visit.own_tickets.release(call.pool, request.ticket)
    return _encode(ReportsAnswer(len(requests) - len(refused), refused))


async def _one(pools: Pools, call: TicketCall, request: Any) -> Any:
    worker = pools.open_worker(call.pool) or await pools.worker(call.pool)
    return _checked_answers(await worker.ask([request]))[0]


def _checked_answers(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
