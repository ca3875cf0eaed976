"""The table of routes: each handler with its address, what a key must allow, and the types of its body and answer.

Routing, validation and the OpenAPI document all follow from it. A handler returns a value of its answer's type, or a
Starlette response.
"""

import asyncio
import dataclasses
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from inspect import Parameter, cleandoc, signature
from itertools import islice
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET
from starlette.responses import Response, StreamingResponse

from statepool.learners import name_of
from statepool.live.decisions import Decision
from statepool.live.errors import Conflict
from statepool.live.pool import Pool
from statepool.live.service import messages as m
from statepool.live.service.pools import Batcher, OpenPool, in_thread
from statepool.live.service.refusals import Refused, refusal

if TYPE_CHECKING:
    from statepool.live.service.app import Service
    from statepool.live.service.keys import Key

POOL = "/v1/pools/{name}"
DECISIONS = f"{POOL}/decisions"
TICKET = f"{DECISIONS}/{{ticket}}"
ACTION = f"{POOL}/actions/{{action}}"
ROWS_AT_ONCE = 500


class Call:
    """A request that was admitted."""

    __slots__ = ("headers", "key", "path", "query", "service", "status")

    def __init__(self, service: "Service", path: dict[str, str], query: bytes, headers: dict[bytes, bytes]) -> None:
        self.service, self.path, self.query, self.headers = service, path, query, headers
        self.key: Key | None = None
        self.status = 200

    async def find(self) -> OpenPool:
        return await self.service.pools.find(self.path["name"])

    async def pool(self) -> Pool:
        return (await self.find()).pool


class Endpoint(NamedTuple):
    """One route. `need` is what a key must allow; none: anybody who may reach the service."""

    method: str
    path: str
    need: str
    handler: Callable[..., Awaitable[Any]]
    body: Any
    """The type of the body, and whether it must be sent; None: there is none."""
    body_required: bool
    answer: Any
    media: str

    @property
    def name(self) -> str:
        return re.sub(r"_(\w)", lambda found: found[1].upper(), self.handler.__name__)

    @property
    def says(self) -> tuple[str, str]:
        """The summary and the description of the document."""
        summary, _, more = cleandoc(self.handler.__doc__ or "").partition("\n")
        return summary, " ".join(more.split())


ENDPOINTS: list[Endpoint] = []


def route(method: str, path: str, need: str, media: str = "application/json") -> Callable[[Any], Any]:
    """Add a handler to the table; its annotations are the types of body and answer."""

    def add(handler: Any) -> Any:
        hints, body = get_type_hints(handler, localns={"Service": Any, "Key": Any}), signature(handler).parameters
        required = "body" in body and body["body"].default is Parameter.empty
        answer = hints["return"] if media == "application/json" else None
        ENDPOINTS.append(Endpoint(method, path, need, handler, hints.get("body"), required, answer, media))
        return handler

    return add


@route("POST", DECISIONS, "decide")
async def decide(call: Call, body: m.DecisionBody = m.DecisionBody()) -> Decision | m.DecisionsAnswer:  # noqa: B008
    """Decide: draw an action, stored before it is returned.

    The same ticket gets the same answer, so a call without an answer may be repeated. `count`, `tickets` and `requests`
    are answered as `decisions`.
    """
    found = await call.find()
    requests = _requests_of(body)
    if requests is None:
        return await found.decide.submit(_arguments(body))
    tickets, contexts, candidates = zip(*map(_arguments, requests), strict=True)
    pool = found.pool
    return m.DecisionsAnswer(
        await in_thread(lambda: pool.decide_many(tickets, contexts=contexts, candidates=candidates))
    )


@route("PUT", f"{TICKET}/state", "report")
async def put_state(call: Call, body: m.StateBody) -> m.StateReport:
    """Report the state observed after a decision.

    Repeating it is harmless; another state is refused with 409.
    """
    await (await call.find()).observe.submit((call.path["ticket"], body.state))
    return m.StateReport(body.state, ticket=call.path["ticket"])


@route("PUT", f"{TICKET}/outcome", "report")
async def put_outcome(call: Call, body: m.OutcomeBody) -> m.OutcomeReport:
    """Report the outcome of a decision, before or after its state.

    Repeating it is harmless. Another outcome is refused with 409, unless the one before was the default of an expired
    decision.
    """
    await (await call.find()).resolve.submit((call.path["ticket"], _given(body.loss), _given(body.reward)))
    return m.OutcomeReport(body.loss, body.reward, ticket=call.path["ticket"])


@route("GET", TICKET, "read")
async def show_ticket(call: Call) -> m.TicketAnswer:
    """Show what is known of a ticket."""
    pool = await call.pool()
    return await in_thread(lambda: msgspec.convert(pool.find(call.path["ticket"]), m.TicketAnswer))


@route("PUT", f"{POOL}/states", "report")
async def put_states(call: Call, body: m.StatesBody) -> m.ReportsAnswer:
    """Report the states of many tickets.

    Each is accepted or refused alone.
    """
    return await _report_each((await call.find()).observe, [(each.ticket, each.state) for each in body.states])


@route("PUT", f"{POOL}/outcomes", "report")
async def put_outcomes(call: Call, body: m.OutcomesBody) -> m.ReportsAnswer:
    """Report the outcomes of many tickets.

    Each is accepted or refused alone.
    """
    outcomes = [(each.ticket, _given(each.loss), _given(each.reward)) for each in body.outcomes]
    return await _report_each((await call.find()).resolve, outcomes)


@route("GET", "/v1/pools", "read")
async def list_pools(call: Call) -> m.NamesAnswer:
    """List the pools."""
    names = await in_thread(call.service.pools.names)
    return m.NamesAnswer([name for name in names if call.key is None or call.key.may_use(name)])


@route("GET", POOL, "read")
async def show_pool(call: Call) -> m.PoolAnswer:
    """Show the status of a pool."""
    pool = await call.pool()
    return await in_thread(lambda: summarise(pool))


@route("PUT", POOL, "admin")
async def put_pool(call: Call, body: m.PoolBody) -> m.PoolAnswer:
    """Create a pool (201), or confirm that it is as described (200).

    An existing pool that differs is refused with 409, or changed with `update`.
    """
    if await in_thread(lambda: call.service.pools.put(call.path["name"], body)):
        call.status = 201
    return await show_pool(call)


@route("PATCH", POOL, "admin")
async def change_pool(call: Call, body: dict[str, Any]) -> m.PoolAnswer:
    """Change settings; those that are not named stay.

    They are sent flat, `{"holdout": 0.2}`, or as PUT has them, `{"settings": {"holdout": 0.2}}`.
    """
    pool, settings = await call.pool(), body
    if isinstance(settings.get("settings"), dict):
        for unknown in sorted(settings.keys() - {"settings"}):
            raise ValueError(f"body: {unknown!r} is not known beside settings")
        settings = settings["settings"]
    await in_thread(lambda: pool.change(**settings))
    return await show_pool(call)


@route("PUT", ACTION, "admin")
async def put_action(call: Call, body: m.ActionBody) -> m.ActionAnswer:
    """Add an action, or replace its row.

    A new action starts from what was learnt about its states. Another row for an existing action is refused with 409,
    unless `reweight` is set.
    """
    pool, text = await call.pool(), call.path["action"]

    def put() -> Any:
        label = find_action(pool.status().actions, text)
        if body.label is not UNSET:
            label = _agree(text, label, body.label)
        elif label is None:
            label = text
        if not body.reweight:
            pool.add_action(label, body.row, body.category)
        elif body.row is None:
            raise ValueError("row: is missing, expected one probability per state")
        else:
            pool.reweight_action(label, body.row)
        return label

    return m.ActionAnswer(await in_thread(put))


@route("DELETE", ACTION, "admin")
async def retire_action(call: Call) -> m.ActionAnswer:
    """Retire an action.

    Outcomes of its earlier decisions are still learnt. The last action cannot be retired.
    """
    pool, text = await call.pool(), call.path["action"]

    def retire() -> Any:
        label = find_action(pool.status().actions, text)
        if label is None:
            raise Refused(404, f"action: {text!r} is not in the catalogue")
        pool.retire_action(label)
        return label

    return m.ActionAnswer(await in_thread(retire))


@route("POST", f"{POOL}/expire", "admin")
async def expire(call: Call) -> m.ExpiryAnswer:
    """Expire overdue decisions now.

    The service does so by itself. Refused with 422 in a pool without `window`.
    """
    pool = await call.pool()
    return m.ExpiryAnswer(await in_thread(pool.expire))


@route("GET", f"{POOL}/rows", "admin", "application/jsonl")
async def rows(call: Call) -> Response:
    """Export decisions as JSON lines.

    `after` is the largest cursor seen before: only decisions that changed since are sent. Upsert by ticket.
    """
    pool, [after] = await call.pool(), parse_qs(call.query.decode("latin-1")).get("after", [None])[-1:]
    if after is not None and not after.isdigit():
        raise ValueError(f"after: is {after[:40]!r}, expected the cursor of a row")
    found = pool.rows(None if after is None else int(after))
    first = await in_thread(lambda: _encode_some(found))  # errors become a status while none was sent yet
    return StreamingResponse(_stream(first, found), media_type="application/jsonl")


@route("GET", "/healthz", "")
async def health(call: Call) -> dict[str, str]:
    """Whether the process is up."""
    return {"status": "up"}


@route("GET", "/readyz", "")
async def readiness(call: Call) -> dict[str, str]:
    """Whether requests are answered without delay: the store answers and the learners are compiled."""
    call.service.gate.check_host(call.headers)
    if not call.service.is_ready:
        raise Refused(503, "not ready: the learners are being compiled", {"retry-after": "1"})
    await in_thread(call.service.pools.names)
    return {"status": "ready"}


@route("GET", "/metrics", "read", "text/plain")
async def metrics(call: Call) -> Response:
    """Metrics for Prometheus."""
    return await call.service.show_metrics(call.key)


@route("GET", "/schema", "")
async def schema(call: Call) -> dict[str, Any]:
    """This document."""
    from statepool.live.service.openapi import document

    call.service.gate.check_host(call.headers)
    return document()


PATTERNS = [
    # Tickets and actions may hold slashes, and line ends.
    (
        re.compile(re.sub(r"{(ticket|action)}", r"(?P<\1>[\\s\\S]+)", each.path).replace("{name}", "(?P<name>[^/]+)")),
        each,
    )
    for each in ENDPOINTS
]


@lru_cache(maxsize=1024)
def match(method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
    """The endpoint of a request and the parts of its path; None if no path fits, 405 if none has this method."""
    allowed = []
    for pattern, endpoint in PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None:
            if endpoint.method == method or (endpoint.method == "GET" and method == "HEAD"):
                return endpoint, found.groupdict()
            allowed.append(endpoint.method)
    if allowed:
        raise Refused(405, "method not allowed: see /schema", {"allow": ", ".join(dict.fromkeys(allowed))})
    return None


def _requests_of(body: m.DecisionBody) -> Sequence[m.DecisionRequest] | None:
    """The decisions of a batch; None: it is a single one."""
    if body.count is UNSET and body.tickets is UNSET and body.requests is UNSET:
        return None
    given = [name for name in ("ticket", "count", "tickets", "requests") if getattr(body, name) is not UNSET]
    if len(given) > 1:
        raise ValueError(f"body: has {' and '.join(given)}, expected one of ticket, count, tickets and requests")
    if isinstance(body.requests, list):
        if body.context is not UNSET or body.candidates is not UNSET:
            raise ValueError("body: has requests, expected context and candidates inside each of them")
        return body.requests
    if isinstance(body.count, int):
        return [m.DecisionRequest(UNSET, body.context, body.candidates)] * body.count
    tickets: Any = body.tickets
    return [m.DecisionRequest(ticket, body.context, body.candidates) for ticket in tickets]


def _arguments(request: m.DecisionRequest) -> tuple[str | None, Any, dict[Any, list[float]] | None]:
    """Ticket, context and candidates as `Pool.decide` takes them."""
    candidates: Any = request.candidates
    if isinstance(candidates, list):
        rows = {each.action: each.row for each in candidates}
        if len(rows) < len(candidates):
            raise ValueError("candidates: has an action twice, expected different ones")
        candidates = rows
    return _given(request.ticket), _given(request.context), _given(candidates)


def _given(value: Any) -> Any:
    return None if value is UNSET else value


async def _report_each(batcher: Batcher, reports: Sequence[tuple[Any, ...]]) -> m.ReportsAnswer:
    """Store each report; a store that is away refuses the whole request, which may be repeated."""
    results = await asyncio.gather(*(batcher.submit(report) for report in reports), return_exceptions=True)
    refused = []
    for report, result in zip(reports, results, strict=True):
        if isinstance(result, ValueError):
            why = refusal(result)
            refused.append(m.RefusedReport(report[0], why.status, why.sentence))
        elif isinstance(result, BaseException):
            raise result
    return m.ReportsAnswer(len(reports) - len(refused), refused)


def summarise(pool: Pool) -> m.PoolAnswer:
    """The status of a pool, in reported units."""
    pool.refresh()  # another process may have changed it
    status = pool.status()
    unit, counts, learner = status.unit, status.counts, status.learner
    options = {each.name: getattr(learner, each.name) for each in dataclasses.fields(learner)}  # type: ignore[arg-type]
    arms = {}
    for arm, tally in status.losses.items():
        mean, error = unit.mean(tally), abs(unit.slope) * sqrt(tally.variance)
        arms[arm] = m.ArmAnswer(tally.count, mean if isfinite(mean) else None, error if isfinite(error) else None)
    return m.PoolAnswer(
        name=status.name, actions=len(status.numbers), states=list(status.states),
        learner=m.LearnerBody(name_of(type(learner)) or type(learner).__name__, options),
        settings=msgspec.structs.asdict(status.settings), decisions=status.decisions, pending=status.pending,
        counts={
            "state": counts["states"], "outcome": counts["outcomes"], "expiry": counts["expiries"],
            "correction": counts["corrected"], "impossible": counts["impossible"],
            "out_of_bounds": counts["out_of_bounds"], "unlearned": counts["unlearned"],
        },
        version=status.version, unit=unit.name, outcomes=arms,
        lift=None if status.lift is None else m.LiftAnswer(*unit.lift(status.lift)),
    )  # fmt: skip


def find_action(labels: Sequence[Any], text: str) -> Any:
    """The label that a path means: the text itself, or else the label that is written so; None: there is none."""
    if text in labels:
        return text
    return next((label for label in labels if not isinstance(label, str) and text in _spellings(label)), None)


def _spellings(label: Any) -> tuple[str, str]:
    return str(label), msgspec.json.encode(label).decode()


def _agree(text: str, found: Any, label: Any) -> Any:
    if text not in _spellings(label) and text != label:
        raise ValueError(f"label: is {label!r}, expected what the path says, {text!r}")
    if found is not None and found != label:
        raise Conflict(f"action: {text!r} is {found!r} already")
    return label


def _encode_some(rows: Iterator[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in islice(rows, ROWS_AT_ONCE))


async def _stream(first: bytes, rows: Iterator[dict[str, Any]]) -> AsyncGenerator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = await in_thread(lambda: _encode_some(rows))
