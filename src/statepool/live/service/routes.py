"""The table of routes: each handler with its address, what a key must allow, and the types of its body and answer.

Routing, validation and the OpenAPI document all follow from it. A handler returns a value of its answer's type, or a
Starlette response.
"""

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, lru_cache
from inspect import Parameter, cleandoc, signature
from itertools import chain, islice
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin, get_type_hints
from urllib.parse import parse_qs

import msgspec
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from statepool import __version__
from statepool.learners import name_of
from statepool.live.decisions import Decision
from statepool.live.pool import Pool
from statepool.live.service import messages as m
from statepool.live.service.monitoring import CONTENT_TYPE
from statepool.live.service.pools import OpenPool
from statepool.live.settings import Label

if TYPE_CHECKING:
    from statepool.live.service.app import Service
    from statepool.live.service.keys import Key

POOL = "/v1/pools/{name}"
DECISIONS = f"{POOL}/decisions"
TICKET = f"{DECISIONS}/{{ticket}}"
ACTION = f"{POOL}/actions/{{action}}"
ROWS_AT_ONCE = 500


@dataclasses.dataclass(slots=True)
class Call:
    """A request that was admitted."""

    service: "Service"
    path: dict[str, str]
    query: bytes
    headers: dict[bytes, bytes]
    key: "Key | None" = None
    status: int = 200

    async def find(self) -> OpenPool:
        return await self.service.pools.find(self.path["name"])

    async def run(self, work: Callable[[Pool], Any]) -> Any:
        pool = (await self.find()).pool
        return await asyncio.to_thread(lambda: work(pool))


class Endpoint(NamedTuple):
    """One route. `need` is what a key must allow; none: anybody who may reach the service."""

    method: str
    path: str
    need: str
    handler: Callable[..., Awaitable[Any]]
    body: Any
    """The type of the body; None: there is none."""
    body_required: bool
    answer: Any
    media: str


ENDPOINTS: list[Endpoint] = []


def route(method: str, path: str, need: str, media: str = "application/json") -> Callable[[Any], Any]:
    """Add a handler to the table; its annotations are the types of body and answer."""

    def add(handler: Any) -> Any:
        hints, body = get_type_hints(handler, localns={"Service": Any, "Key": Any}), signature(handler).parameters
        required = "body" in body and body["body"].default is Parameter.empty
        answer = hints["return"] if media == "application/json" else str
        ENDPOINTS.append(Endpoint(method, path, need, handler, hints.get("body"), required, answer, media))
        return handler

    return add


@route("POST", DECISIONS, "decide")
async def decide(call: Call, body: m.DecisionBody = m.DecisionBody()) -> Decision | m.DecisionsAnswer:  # noqa: B008
    """Decide: draw an action, stored before it is returned.

    The same ticket gets the same answer, so a call without an answer may be repeated. `count` is answered as
    `decisions`.
    """
    candidates: Any = body.candidates
    if isinstance(candidates, list):
        candidates = {each.action: each.row for each in candidates}
        if len(candidates) < len(body.candidates or ()):
            raise ValueError("candidates: has an action twice, expected different ones")
    if body.count is None:
        return await (await call.find()).decide.submit((body.ticket, body.context, candidates))
    if body.ticket is not None:
        raise ValueError("body: has ticket and count, expected one of them")
    contexts, offers = [body.context] * body.count, [candidates] * body.count
    return m.DecisionsAnswer(
        await call.run(lambda pool: pool.decide_many(len(offers), contexts=contexts, candidates=offers))
    )


@route("PUT", f"{TICKET}/state", "report")
async def put_state(call: Call, body: m.StateBody) -> m.StateBody:
    """Report the state observed after a decision.

    Repeating it is harmless; another state is refused with 409.
    """
    await (await call.find()).observe.submit((call.path["ticket"], body.state))
    return body


@route("PUT", f"{TICKET}/outcome", "report")
async def put_outcome(call: Call, body: m.OutcomeBody) -> m.OutcomeBody:
    """Report the outcome of a decision, before or after its state.

    Repeating it is harmless. Another outcome is refused with 409, unless the one before was the default of an expired
    decision.
    """
    await (await call.find()).resolve.submit((call.path["ticket"], body.loss, body.reward))
    return body


@route("GET", TICKET, "read")
async def show_ticket(call: Call) -> m.TicketAnswer:
    """Show what is known of a ticket."""
    return await call.run(lambda pool: msgspec.convert(pool.find(call.path["ticket"]), m.TicketAnswer))


@route("GET", "/v1/pools", "read")
async def list_pools(call: Call) -> dict[str, list[str]]:
    """List the names of the `pools` that the key may use."""
    names = await asyncio.to_thread(call.service.pools.database.pool_names)
    return {"pools": [name for name in names if call.key is None or call.key.may_use(name)]}


@route("GET", POOL, "read")
async def show_pool(call: Call) -> m.PoolAnswer:
    """Show the status of a pool."""
    return await call.run(summarise)


@route("PUT", POOL, "admin")
async def put_pool(call: Call, body: m.PoolBody) -> m.PoolAnswer:
    """Create a pool (201), or confirm that it is as described (200).

    An existing pool that differs is refused with 409, or changed with `update`.
    """
    if await asyncio.to_thread(lambda: call.service.pools.put(call.path["name"], body)):
        call.status = 201
    return await show_pool(call)


@route("PATCH", POOL, "admin")
async def change_pool(call: Call, body: dict[str, Any]) -> m.PoolAnswer:
    """Change settings, such as `{"holdout": 0.2}`; those that are not named stay."""
    await call.run(lambda pool: pool.change(**body))
    return await show_pool(call)


@route("PUT", ACTION, "admin")
async def put_action(call: Call, body: m.ActionBody) -> dict[str, Label]:
    """Add an action, or replace its row.

    A new action starts from what was learnt about its states. Another row for an existing action is refused with 409,
    unless `reweight` is set.
    """

    def put(pool: Pool) -> Any:
        label = find_action(pool, call.path["action"]) if body.label is None else body.label
        label = call.path["action"] if label is None else label
        if not body.reweight:
            pool.add_action(label, body.row, body.category)
        else:
            pool.reweight_action(label, body.row or [])
        return label

    return {"action": await call.run(put)}


@route("DELETE", ACTION, "admin")
async def retire_action(call: Call) -> dict[str, Label]:
    """Retire an action.

    Outcomes of its earlier decisions are still learnt. The last action cannot be retired.
    """

    def retire(pool: Pool) -> Any:
        label = find_action(pool, call.path["action"])
        if label is None:
            raise HTTPException(404, f"action: {call.path['action']!r} is not in the catalogue")
        pool.retire_action(label)
        return label

    return {"action": await call.run(retire)}


@route("GET", f"{POOL}/rows", "admin", "application/jsonl")
async def rows(call: Call) -> Response:
    """Export decisions as JSON lines.

    `after` is the largest cursor seen before: only decisions that changed since are sent. Upsert by ticket.
    """
    [after] = parse_qs(call.query.decode("latin-1")).get("after", [None])[-1:]
    if after is not None and not re.fullmatch("[0-9]{1,18}", after):
        raise ValueError(f"after: is {after[:40]!r}, expected the cursor of a row")
    found = (await call.find()).pool.rows(None if after is None else int(after))
    pieces = iter(lambda: b"".join(msgspec.json.encode(row) + b"\n" for row in islice(found, ROWS_AT_ONCE)), b"")
    first = await asyncio.to_thread(lambda: next(pieces, b""))  # errors become a status while none was sent yet
    return StreamingResponse(chain([first], pieces), media_type="application/jsonl")


@route("GET", "/healthz", "")
async def health(call: Call) -> dict[str, str]:
    """Whether the process is up."""
    return {"status": "up"}


@route("GET", "/readyz", "")
async def readiness(call: Call) -> dict[str, str]:
    """Whether requests are answered without delay: the store answers and the learners are compiled."""
    call.service.gate.check_host(call.headers)
    if not call.service.is_ready:
        raise HTTPException(503, "not ready: the learners are being compiled", {"retry-after": "1"})
    await asyncio.to_thread(call.service.pools.database.pool_names)
    return {"status": "ready"}


@route("GET", "/metrics", "read", "text/plain")
async def metrics(call: Call) -> Response:
    """Metrics for Prometheus; while the store is away, without what only the store knows."""
    if call.key is not None and call.key.pools:
        raise HTTPException(
            403, f"the key {call.key.name!r} is for some pools only, expected one for the whole service"
        )
    return Response(await asyncio.to_thread(generate_latest, call.service.metrics.registry), media_type=CONTENT_TYPE)


@route("GET", "/schema", "")
async def schema(call: Call) -> dict[str, Any]:
    """This document."""
    call.service.gate.check_host(call.headers)
    return document()


ANYTHING = r"(?P<\1>[\\s\\S]+)"  # tickets and actions may hold slashes, and line ends
PATTERNS = [
    (re.compile(re.sub(r"{(ticket|action)}", ANYTHING, each.path).replace("{name}", "(?P<name>[^/]+)")), each)
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
        raise HTTPException(405, "method not allowed: see /schema", {"allow": ", ".join(dict.fromkeys(allowed))})
    return None


def summarise(pool: Pool) -> m.PoolAnswer:
    """The status of a pool, in reported units."""
    status = pool.status()
    unit, learner = status.unit, status.learner
    options = {each.name: getattr(learner, each.name) for each in dataclasses.fields(learner)}  # type: ignore[arg-type]
    arms = {
        arm: m.ArmAnswer(tally.count, unit.mean(tally) if tally.count else None) for arm, tally in status.losses.items()
    }
    return m.PoolAnswer(
        name=status.name, actions=len(status.numbers), states=list[Any](status.catalogue.states),
        learner=m.LearnerBody(name_of(type(learner)) or type(learner).__name__, options),
        settings=msgspec.structs.asdict(status.settings), decisions=status.decisions, pending=status.pending,
        counts={kind: status.counts[counted] for kind, counted in m.COUNTS.items()},
        version=status.version, unit=unit.name, outcomes=arms,
        lift=None if status.lift is None else m.LiftAnswer(*status.lift),
    )  # fmt: skip


def find_action(pool: Pool, text: str) -> Any:
    """The label that a path means: the text itself, or else the label that is so as JSON; None: there is none."""
    pool.refresh()  # another process may have changed it
    labels: Sequence[Any] = pool.catalogue.labels
    if text in labels:
        return text
    return next((each for each in labels if msgspec.json.encode(each) == text.encode()), None)


PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("The pool's name.", {"pattern": "^[A-Za-z0-9_.-]+$", "maxLength": 64}),
    "ticket": ("The decision's ticket, percent-encoded.", {"minLength": 1, "maxLength": 200}),
    "action": ("The action's label, percent-encoded; as JSON where it is not text.", {"minLength": 1}),
}
AFTER = {"name": "after", "in": "query", "description": "A cursor of an earlier row.", "schema": {"type": "integer"}}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the table."""
    used = [kind for each in ENDPOINTS for kind in (*_each(each.answer), *_each(each.body))]
    kinds = list(dict.fromkeys([m.ErrorAnswer, *used]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    named, paths = dict(zip(kinds, schemas, strict=True)), dict[str, Any]()
    for each in ENDPOINTS:
        parameters = [
            {"name": name, "in": "path", "required": True, "description": PARAMETERS[name][0],
             "schema": {"type": "string", **PARAMETERS[name][1]}}
            for name in re.findall(r"{(\w+)}", each.path)
        ]  # fmt: skip
        paths.setdefault(each.path, {"parameters": parameters})[each.method.lower()] = _operation(each, named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "statepool", "version": __version__, "description": "Bandits with delayed outcomes."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _each(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is UnionType else () if kind is None else (kind,)


def _operation(endpoint: Endpoint, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    summary, _, more = cleandoc(endpoint.handler.__doc__ or "").partition("\n")
    answers = [schemas[kind] for kind in _each(endpoint.answer)]
    schema = {"oneOf": answers} if len(answers) > 1 else answers[0]
    fine = {"description": summary, "content": {endpoint.media: {"schema": schema}}}
    refused = {"application/json": {"schema": schemas[m.ErrorAnswer]}}
    responses = {"200": fine, "default": {"description": "Refused; `error` says why.", "content": refused}}
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__, "summary": summary, "description": " ".join(more.split()),
        "responses": responses, "parameters": [AFTER] if endpoint.handler is rows else [],
        "security": [{"key": []}, {}] if endpoint.need else [],
    }  # fmt: skip
    if endpoint.handler is put_pool:
        responses["201"] = fine
    if endpoint.body is not None:
        content = {"application/json": {"schema": schemas[endpoint.body]}}
        operation["requestBody"] = {"required": endpoint.body_required, "content": content}
    return operation
