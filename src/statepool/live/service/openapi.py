"""The OpenAPI 3.1 document: what is sent and answered from the msgspec types that read and write it, the addresses
written here, links from a decision to what may follow it."""

import re
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from statepool import __version__
from statepool.live.service import answers, bodies
from statepool.live.service.examples import EXAMPLES
from statepool.live.service.refusals import ErrorAnswer
from statepool.live.settings import Settings

REF = "#/components/schemas/{name}"
NUMBER: dict[str, Any] = {"type": "number"}
TEXT: dict[str, Any] = {"type": "string"}

REFUSALS = {
    400: "The body is not JSON.",
    401: "No key, or one that is not known.",
    403: "The key's role does not allow this, or the request comes from another site.",
    404: "No such pool, ticket or action.",
    405: "This method is not for this address.",
    409: "It contradicts what is there; nothing was changed.",
    413: "The body is too large.",
    422: "Something in the request is not as expected.",
    429: "Too many requests or decisions, or too many tickets of a key's own that wait for an outcome.",
    503: "The store does not answer at present; repeating the request is harmless.",
}
EXCLUSIVE = {
    "DecisionBody": [
        *combinations(("ticket", "count", "tickets", "requests"), 2),
        ("context", "candidates"),
        ("context", "requests"),
        ("candidates", "requests"),
    ],
    "RequestBody": [("context", "candidates")],
}
"""What a body must not have together."""


@cache
def document() -> dict[str, Any]:
    """The document as plain data."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "statepool", "version": __version__, "description": "Decide now, learn when it is known."},
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {str(status): _refused(why) for status, why in REFUSALS.items()},
        },
        "security": [{"key": []}, {}],
    }


def _schemas() -> dict[str, Any]:
    """The schemas of all bodies and answers; what their types cannot say is added."""
    _, schemas = msgspec.json.schema_components([*bodies.BODIES, *answers.ANSWERS, Settings], ref_template=REF)
    for name, pairs in EXCLUSIVE.items():
        schemas[name]["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}
    schemas["OutcomeBody"].update(minProperties=1, maxProperties=1)
    schemas["OutcomeOfTicket"].update(minProperties=2, maxProperties=2)
    for name in ("PoolBody", "SettingsBody"):
        told = schemas[name]["properties"]["settings"]["description"]
        schemas[name]["properties"]["settings"] = {**_ref(Settings), "description": told}
    _loosen(schemas["Settings"]["properties"])
    return schemas


def _ref(kind: type) -> dict[str, Any]:
    return {"$ref": REF.format(name=kind.__name__)}


def _loosen(settings: dict[str, Any]) -> None:
    """What is left out stays as it is, so nothing has a default here; shares may be an object by action as well."""
    for schema in settings.values():
        schema.pop("default", None)
        schema["description"] = schema["description"].replace("None:", "null:")
    bounds = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
    by_action = {"type": "object", "additionalProperties": bounds}
    told = {name: settings[name].pop("description") for name in ("shares", "holdout_action")}
    settings["shares"] = {"description": told["shares"], "anyOf": [settings["shares"], by_action]}
    settings["holdout_action"] = {"description": told["holdout_action"], **msgspec.json.schema(bodies.Label | None)}


class Operation(NamedTuple):
    """What is done at an address; `says` is a summary and, on a line of its own, what else there is to know."""

    method: str
    path: str
    name: str
    says: str
    answer: type | tuple[type, type] | None
    body: type | tuple[type, type] | None = None
    also: int | None = None
    body_needed: bool = True
    links: dict[str, Any] | None = None
    media: str = "application/json"
    keyless: bool = False

    def told(self) -> dict[str, Any]:
        summary, _, more = self.says.partition("\n")
        answered = {"schema": _schema(self.answer), "examples": self._examples("answer")}
        fine: dict[str, Any] = {"description": summary, "content": {self.media: answered}}
        if self.links:
            fine["links"] = self.links
        responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in REFUSALS}
        operation: dict[str, Any] = {"operationId": self.name, "summary": summary}
        if more:
            operation["description"] = more
        operation["responses"] = {"200": fine, **responses}
        if self.also:
            operation["responses"][str(self.also)] = fine
        if self.body:
            content = {"application/json": {"schema": _schema(self.body), "examples": self._examples("body")}}
            operation["requestBody"] = {"required": self.body_needed, "content": content}
        if self.keyless:
            operation["security"] = []
        return operation

    def _examples(self, part: str) -> dict[str, Any]:
        return {example.title: {"value": getattr(example, part)} for example in EXAMPLES[self.name]}


def _paths() -> dict[str, Any]:
    """The operations by address, with what an address holds."""
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        named = [_in_path(name) for name in re.findall(r"{(\w+)}", each.path)]
        paths.setdefault(each.path, {"parameters": named} if named else {})[each.method] = each.told()
    return paths


def _links(ticket: str, *names: str) -> dict[str, Any]:
    """What may follow about a ticket."""
    parameters = {"name": "$request.path.name", "ticket": ticket}
    return {name: {"operationId": name, "parameters": parameters} for name in names}


POOL = "/v1/pools/{name}"
TICKET = f"{POOL}/decisions/{{ticket}}"
ACTION = f"{POOL}/actions/{{action}}"
OPERATIONS = (
    Operation("get", "/v1/pools", "listPools", "The names of the pools.", answers.NamesAnswer),
    Operation(
        "get", POOL, "showPool",
        "What a pool adds up to: its settings, what has come, what the learner is worth.\n"
        "All numbers are of one moment. `losses` and `lift` compare the learner with the holdout, and start anew when "
        "the holdout changes.",
        answers.PoolAnswer,
    ),
    Operation(
        "put", POOL, "putPool",
        "Make a pool (201), or make sure that it is there as described (200).\n"
        "Repeating it is harmless. A pool that is there and differs is refused with 409, or changed with `update`.",
        answers.PoolAnswer, bodies.PoolBody, also=201,
    ),
    Operation(
        "patch", POOL, "changePool",
        "Other settings from now on; those that are not named stay.\n"
        'The body holds them flat, `{"holdout": 0.2}`, or as PUT has them, `{"settings": {"holdout": 0.2}}`. '
        "After a change of `holdout` or `holdout_action` the comparison (`losses`, `lift`) starts anew: only "
        "decisions made from then on count.",
        answers.PoolAnswer, (bodies.SettingsBody, Settings),
    ),
    Operation(
        "post", f"{POOL}/decisions", "decide",
        "An action to play, on disk before it is told.\n"
        "The same ticket gets the same answer, so that a call without an answer may be repeated. One decision is "
        "answered by itself; `count`, `tickets` and `requests` are answered as `decisions`, and are made all or none: "
        "where one is refused, none is decided.",
        (answers.DecisionAnswer, answers.DecisionsAnswer), bodies.DecisionBody, body_needed=False,
        links=_links("$response.body#/ticket", "putState", "putOutcome", "showTicket"),
    ),
    Operation("get", TICKET, "showTicket", "What is known of a ticket.", answers.TicketAnswer),
    Operation(
        "put", f"{TICKET}/state", "putState",
        "The state that was seen after a decision.\n"
        "Repeating it is harmless; another state for the same ticket is refused with 409.",
        answers.StateAnswer, bodies.StateBody, links=_links("$request.path.ticket", "putOutcome", "showTicket"),
    ),
    Operation(
        "put", f"{TICKET}/outcome", "putOutcome",
        "The outcome of a decision, before or after its state.\n"
        "It teaches once both are there. Repeating it is harmless; another outcome is refused with 409, unless the one "
        "before was the default loss of a decision that expired.",
        answers.OutcomeAnswer, bodies.OutcomeBody, links=_links("$request.path.ticket", "putState", "showTicket"),
    ),
    Operation(
        "put", f"{POOL}/states", "putStates",
        "The states of many tickets.\nEach is done or refused by itself, and the answer says which were refused.",
        answers.ReportsAnswer, bodies.StatesBody,
    ),
    Operation(
        "put", f"{POOL}/outcomes", "putOutcomes",
        "The outcomes of many tickets.\nEach is done or refused by itself, and the answer says which were refused.",
        answers.ReportsAnswer, bodies.OutcomesBody,
    ),
    Operation(
        "put", ACTION, "putAction",
        "Add an action, or give it another row.\n"
        "A new action starts with all that was learnt about its states. One that is there is refused another row with "
        "409, unless `reweight` asks for it.",
        answers.ActionAnswer, bodies.ActionBody,
    ),
    Operation(
        "delete", ACTION, "retireAction",
        "Play an action no more.\nOutcomes of decisions that played it still teach. The last one cannot go.",
        answers.ActionAnswer,
    ),
    Operation(
        "post", f"{POOL}/expire", "expire",
        "Give overdue decisions the default loss.\n"
        "The service does so by itself every while; this does it now. Refused with 422 in a pool without "
        "`expire_after`.",
        answers.ExpiryAnswer,
    ),
    Operation(
        "get", f"{POOL}/rows", "rows",
        "Every decision, one JSON line each, the oldest first.\nThe fields are those of a ticket.",
        None, media="application/jsonl",
    ),
    Operation("get", "/healthz", "health", "The process is up, whatever else.", answers.HealthAnswer, keyless=True),
    Operation(
        "get", "/readyz", "readiness",
        "Whether it can be written; 503 if not.\n"
        "With a key, and on a service that has none, it names the pools that are in trouble, and why; without a key it "
        "says only that there is trouble, and of which kind.",
        answers.HealthAnswer, keyless=True,
    ),
    Operation(
        "get", "/metrics", "metrics",
        "Counts and times for Prometheus.\n"
        "It takes a key of any role that is for all pools. While the store is away, what only the store knows is left "
        "out.",
        None, media="text/plain",
    ),
)  # fmt: skip


def _schema(kind: type | tuple[type, type] | None) -> dict[str, Any]:
    if kind is None:
        return TEXT
    return {"oneOf": [_ref(each) for each in kind]} if isinstance(kind, tuple) else _ref(kind)


IN_PATH: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("The pool's name.", {"maxLength": 64, "pattern": "^[A-Za-z0-9_.-]+$"}),
    "ticket": ("The decision's ticket, percent-encoded.", {"maxLength": 200}),
    "action": ("The action's label; written as JSON or text where it is no text.", {"maxLength": 200}),
}


def _in_path(name: str) -> dict[str, Any]:
    says, limits = IN_PATH[name]
    schema = {**TEXT, "minLength": 1, **limits}
    return {"name": name, "in": "path", "required": True, "description": says, "schema": schema}


def _refused(why: str) -> dict[str, Any]:
    return {"description": why, "content": {"application/json": {"schema": _ref(ErrorAnswer)}}}
