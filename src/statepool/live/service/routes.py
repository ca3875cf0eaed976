"""The table of routes. Routing, validation and the OpenAPI document all follow from it."""

import re
from collections.abc import Awaitable, Callable
from functools import cache, lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from statepool import __version__
from statepool.live.service import messages as m
from statepool.live.service.handlers import Call, Handlers
from statepool.live.service.refusals import Refused

POOL = "/v1/pools/{name}"
DECISIONS = f"{POOL}/decisions"
TICKET = f"{DECISIONS}/{{ticket}}"
ACTION = f"{POOL}/actions/{{action}}"
REF = "#/components/schemas/{name}"
REFUSALS = {
    400: "The body is not JSON.",
    401: "No key, or one that is not known.",
    403: "The key does not allow this, or the request comes from another site.",
    404: "No such pool, ticket or action.",
    405: "The address does not have this method.",
    409: "It contradicts what is stored; nothing was changed.",
    413: "The body is too large.",
    422: "Something in the request is not as expected.",
    503: "The store is away; the request may be repeated.",
}


class Endpoint(NamedTuple):
    """One operation. `need` is what a key must allow; `handler` is None for what the application answers itself."""

    method: str
    path: str
    name: str
    need: str
    handler: Callable[[Handlers, Call], Awaitable[Any]] | None
    says: str
    """A summary; further lines are the description."""
    answer: Any = None
    body: Any = None
    body_required: bool = True
    links: tuple[str, ...] = ()
    media: str = "application/json"


ENDPOINTS = (
    Endpoint(
        "POST", DECISIONS, "decide", "decide", Handlers.decide,
        "Decide: draw an action, stored before it is returned.\n"
        "The same ticket gets the same answer, so a call without an answer may be repeated. `count`, `tickets` and "
        "`requests` are answered as `decisions`.",
        (m.DecisionAnswer, m.DecisionsAnswer), m.DecisionBody, body_required=False,
        links=("putState", "putOutcome", "showTicket"),
    ),
    Endpoint(
        "PUT", f"{TICKET}/state", "putState", "report", Handlers.put_state,
        "Report the state observed after a decision.\nRepeating it is harmless; another state is refused with 409.",
        m.StateAnswer, m.StateBody, links=("putOutcome", "showTicket"),
    ),
    Endpoint(
        "PUT", f"{TICKET}/outcome", "putOutcome", "report", Handlers.put_outcome,
        "Report the outcome of a decision, before or after its state.\n"
        "Repeating it is harmless. Another outcome is refused with 409, unless the one before was the default of an "
        "expired decision.",
        m.OutcomeAnswer, m.OutcomeBody, links=("putState", "showTicket"),
    ),
    Endpoint(
        "GET", TICKET, "showTicket", "read", Handlers.show_ticket, "Show what is known of a ticket.", m.TicketAnswer
    ),
    Endpoint(
        "PUT", f"{POOL}/states", "putStates", "report", Handlers.put_states,
        "Report the states of many tickets.\nEach is accepted or refused alone.", m.ReportsAnswer, m.StatesBody,
    ),
    Endpoint(
        "PUT", f"{POOL}/outcomes", "putOutcomes", "report", Handlers.put_outcomes,
        "Report the outcomes of many tickets.\nEach is accepted or refused alone.", m.ReportsAnswer, m.OutcomesBody,
    ),
    Endpoint("GET", "/v1/pools", "listPools", "read", Handlers.list_pools, "List the pools.", m.NamesAnswer),
    Endpoint("GET", POOL, "showPool", "read", Handlers.show_pool, "Show the status of a pool.", m.PoolAnswer),
    Endpoint(
        "PUT", POOL, "putPool", "admin", Handlers.put_pool,
        "Create a pool (201), or confirm that it is as described (200).\n"
        "An existing pool that differs is refused with 409, or changed with `update`.",
        m.PoolAnswer, m.PoolBody,
    ),
    Endpoint(
        "PATCH", POOL, "changePool", "admin", Handlers.change_pool,
        "Change settings; those that are not named stay.\n"
        'They are sent flat, `{"holdout": 0.2}`, or as PUT has them, `{"settings": {"holdout": 0.2}}`.',
        m.PoolAnswer, dict[str, Any],
    ),
    Endpoint(
        "PUT", ACTION, "putAction", "admin", Handlers.put_action,
        "Add an action, or replace its row.\n"
        "A new action starts from what was learnt about its states. Another row for an existing action is refused "
        "with 409, unless `reweight` is set.",
        m.ActionAnswer, m.ActionBody,
    ),
    Endpoint(
        "DELETE", ACTION, "retireAction", "admin", Handlers.retire_action,
        "Retire an action.\nOutcomes of its earlier decisions are still learnt. The last action cannot be retired.",
        m.ActionAnswer,
    ),
    Endpoint(
        "POST", f"{POOL}/expire", "expire", "admin", Handlers.expire,
        "Expire overdue decisions now.\nThe service does so by itself. Refused with 422 in a pool without `window`.",
        m.ExpiryAnswer,
    ),
    Endpoint(
        "GET", f"{POOL}/rows", "rows", "admin", Handlers.rows,
        "Export decisions as JSON lines.\n"
        "`after` is the largest cursor seen before: only decisions that changed since are sent. Upsert by ticket.",
        None, media="application/jsonl",
    ),
    Endpoint("GET", "/healthz", "health", "", None, "Whether the process is up.", m.HealthAnswer),
    Endpoint(
        "GET", "/readyz", "readiness", "", None,
        "Whether requests are answered without delay: the store answers and the learners are compiled.", m.HealthAnswer,
    ),
    Endpoint("GET", "/metrics", "metrics", "read", None, "Metrics for Prometheus.", None, media="text/plain"),
    Endpoint("GET", "/schema", "schema", "", None, "This document.", dict[str, Any]),
)  # fmt: skip
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


@cache
def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(body: bytes, kind: Any) -> Any:
    """Validate a body; NaN and Infinity are refused, since they are not JSON."""
    try:
        return decoder_of(kind).decode(body)
    except msgspec.ValidationError as error:
        raise Refused(422, f"body: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(400, f"body: is not JSON ({error})") from None


TEXT = {"type": "string", "minLength": 1}
PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("The pool's name.", {**TEXT, "maxLength": 64, "pattern": "^[A-Za-z0-9_.-]+$"}),
    "ticket": ("The decision's ticket, percent-encoded.", {**TEXT, "maxLength": 200}),
    "action": ("The action's label, percent-encoded; as JSON where it is not text.", {**TEXT, "maxLength": 200}),
}
AFTER = {
    "name": "after", "in": "query", "description": "A cursor of an earlier row.",
    "schema": {"type": "integer", "minimum": 0},
}  # fmt: skip


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    used = [kind for each in ENDPOINTS for kind in (*_each(each.answer), *_each(each.body))]
    kinds = list(dict.fromkeys([m.ErrorAnswer, *used]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    _add_constraints(components)
    named = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        parameters = [_parameter(name) for name in re.findall(r"{(\w+)}", endpoint.path)]
        at = paths.setdefault(endpoint.path, {"parameters": parameters} if parameters else {})
        at[endpoint.method.lower()] = _operation(endpoint, named)
    refused = {"application/json": {"schema": named[m.ErrorAnswer]}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "statepool", "version": __version__, "description": "Bandits with delayed outcomes."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {str(code): {"description": why, "content": refused} for code, why in REFUSALS.items()},
        },
        "security": [{"key": []}, {}],
    }


def _each(kind: Any) -> tuple[Any, ...]:
    return kind if isinstance(kind, tuple) else () if kind is None else (kind,)


def _operation(endpoint: Endpoint, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    summary, _, more = endpoint.says.partition("\n")
    answers = [schemas[kind] for kind in _each(endpoint.answer)]
    schema = {"oneOf": answers} if len(answers) > 1 else answers[0] if answers else {"type": "string"}
    fine: dict[str, Any] = {"description": summary, "content": {endpoint.media: {"schema": schema}}}
    if endpoint.links:
        ticket = "$response.body#/ticket" if endpoint.name == "decide" else "$request.path.ticket"
        parameters = {"name": "$request.path.name", "ticket": ticket}
        fine["links"] = {name: {"operationId": name, "parameters": parameters} for name in endpoint.links}
    responses = {"200": fine, **{str(code): {"$ref": f"#/components/responses/{code}"} for code in REFUSALS}}
    if endpoint.name == "putPool":
        responses["201"] = fine
    told: dict[str, Any] = {"operationId": endpoint.name, "summary": summary, "responses": responses}
    if more:
        told["description"] = more
    if endpoint.body is not None:
        bodies = [schemas[kind] for kind in _each(endpoint.body)]
        content = {"application/json": {"schema": {"anyOf": bodies} if len(bodies) > 1 else bodies[0]}}
        told["requestBody"] = {"required": endpoint.body_required, "content": content}
    if endpoint.name == "rows":
        told["parameters"] = [AFTER]
    if not endpoint.need:
        told["security"] = []
    return told


def _parameter(name: str) -> dict[str, Any]:
    says, schema = PARAMETERS[name]
    return {"name": name, "in": "path", "required": True, "description": says, "schema": schema}


def _add_constraints(components: dict[str, Any]) -> None:
    """What msgspec's types cannot say: which fields exclude each other."""
    names = ("ticket", "count", "tickets", "requests")
    pairs = [*combinations(names, 2), ("context", "requests"), ("candidates", "requests")]
    components["DecisionBody"]["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}
    components["OutcomeBody"].update(minProperties=1, maxProperties=1)
    components["OutcomeReport"].update(minProperties=2, maxProperties=2)
