"""The OpenAPI 3.1 document: what is sent and answered from the msgspec types that read and write it, the addresses
written here, links from a decision to what may follow it."""

from functools import cache
from itertools import combinations
from typing import Any

import msgspec

from statepool import __version__
from statepool.live.service.answers import (
    ANSWERS,
    ActionAnswer,
    DecisionAnswer,
    DecisionsAnswer,
    ExpiryAnswer,
    HealthAnswer,
    NamesAnswer,
    OutcomeAnswer,
    PoolAnswer,
    ReportsAnswer,
    StateAnswer,
    TicketAnswer,
)
from statepool.live.service.bodies import (
    BODIES,
    ActionBody,
    DecisionBody,
    Label,
    OutcomeBody,
    OutcomesBody,
    PoolBody,
    SettingsBody,
    StateBody,
    StatesBody,
)
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
    _, schemas = msgspec.json.schema_components([*BODIES, *ANSWERS, Settings], ref_template=REF)
    for name, pairs in EXCLUSIVE.items():
        schemas[name]["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}
    schemas["OutcomeBody"].update(minProperties=1, maxProperties=1)
    schemas["OutcomeOfTicket"].update(minProperties=2, maxProperties=2)
    for name in ("PoolBody", "SettingsBody"):
        schemas[name]["properties"]["settings"] = _ref(Settings)
    _loosen(schemas["Settings"]["properties"])
    return schemas


def _ref(kind: type) -> dict[str, Any]:
    return {"$ref": REF.format(name=kind.__name__)}


def _loosen(settings: dict[str, Any]) -> None:
    """What is left out stays as it is, so nothing has a default here; shares may be an object by action as well."""
    for schema in settings.values():
        schema.pop("default", None)
    bounds = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
    settings["shares"] = {"anyOf": [settings["shares"], {"type": "object", "additionalProperties": bounds}]}
    settings["holdout_action"] = msgspec.json.schema(Label | None)


def _paths() -> dict[str, Any]:
    pool, ticket = "/v1/pools/{name}", "/v1/pools/{name}/decisions/{ticket}"
    action = f"{pool}/actions/{{action}}"
    return {
        "/v1/pools": {"get": _operation("listPools", "The names of the pools.", NamesAnswer)},
        pool: {
            "parameters": [_in_path("name")],
            "get": _operation("showPool", "What a pool adds up to.", PoolAnswer),
            "put": _operation("putPool", "Make a pool, or make sure that it is there.", PoolAnswer, PoolBody, also=201),
            "patch": _operation("changePool", "Other settings from now on.", PoolAnswer, SettingsBody),
        },
        f"{pool}/decisions": {
            "parameters": [_in_path("name")],
            "post": _operation(
                "decide", "An action to play, on disk before it is told. The same ticket gets the same answer.",
                (DecisionAnswer, DecisionsAnswer), DecisionBody, body_needed=False,
                links=_links("$response.body#/ticket"),
            ),
        },
        ticket: {
            "parameters": [_in_path("name"), _in_path("ticket")],
            "get": _operation("showTicket", "What is known of a ticket.", TicketAnswer),
        },
        f"{ticket}/state": {
            "parameters": [_in_path("name"), _in_path("ticket")],
            "put": _operation(
                "putState", "The state that was seen.", StateAnswer, StateBody, links=_after("putOutcome")
            ),
        },
        f"{ticket}/outcome": {
            "parameters": [_in_path("name"), _in_path("ticket")],
            "put": _operation(
                "putOutcome", "The outcome, before or after the state.", OutcomeAnswer, OutcomeBody,
                links=_after("putState"),
            ),
        },
        f"{pool}/states": {
            "parameters": [_in_path("name")],
            "put": _operation("putStates", "The states of many tickets.", ReportsAnswer, StatesBody),
        },
        f"{pool}/outcomes": {
            "parameters": [_in_path("name")],
            "put": _operation("putOutcomes", "The outcomes of many tickets.", ReportsAnswer, OutcomesBody),
        },
        action: {
            "parameters": [_in_path("name"), _in_path("action")],
            "put": _operation("putAction", "Add an action, or give it another row.", ActionAnswer, ActionBody),
            "delete": _operation("retireAction", "Play an action no more.", ActionAnswer),
        },
        f"{pool}/expire": {
            "parameters": [_in_path("name")],
            "post": _operation("expire", "Give overdue decisions the default loss.", ExpiryAnswer),
        },
        f"{pool}/rows": {
            "parameters": [_in_path("name")],
            "get": _operation("rows", "One JSON line a decision.", None, media="application/jsonl"),
        },
        "/healthz": {"get": _operation("health", "The process is up.", HealthAnswer, keyless=True)},
        "/readyz": {"get": _operation("readiness", "Whether it can be written.", HealthAnswer, keyless=True)},
        "/metrics": {"get": _operation("metrics", "For Prometheus.", None, media="text/plain")},
    }  # fmt: skip


def _operation(
    name: str,
    says: str,
    answer: type | tuple[type, type] | None,
    body: type | None = None,
    *,
    also: int | None = None,
    body_needed: bool = True,
    links: dict[str, Any] | None = None,
    media: str = "application/json",
    keyless: bool = False,
) -> dict[str, Any]:
    fine: dict[str, Any] = {"description": says, "content": {media: {"schema": _schema(answer)}}}
    if links:
        fine["links"] = links
    responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in REFUSALS}
    operation: dict[str, Any] = {"operationId": name, "summary": says, "responses": {"200": fine, **responses}}
    if also:
        operation["responses"][str(also)] = fine
    if body:
        content = {"application/json": {"schema": _ref(body)}}
        operation["requestBody"] = {"required": body_needed, "content": content}
    if keyless:
        operation["security"] = []
    return operation


def _schema(answer: type | tuple[type, type] | None) -> dict[str, Any]:
    if answer is None:
        return TEXT
    return {"oneOf": [_ref(each) for each in answer]} if isinstance(answer, tuple) else _ref(answer)


def _in_path(name: str) -> dict[str, Any]:
    longest = {"name": 64, "ticket": 200, "action": 200}[name]
    pattern = {"pattern": "^[A-Za-z0-9_.-]+$"} if name == "name" else {}
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {**TEXT, "minLength": 1, "maxLength": longest} | pattern,
    }


def _links(ticket: str) -> dict[str, Any]:
    parameters = {"name": "$request.path.name", "ticket": ticket}
    return {name: {"operationId": name, "parameters": parameters} for name in ("putState", "putOutcome", "showTicket")}


def _after(name: str) -> dict[str, Any]:
    parameters = {"name": "$request.path.name", "ticket": "$request.path.ticket"}
    return {each: {"operationId": each, "parameters": parameters} for each in (name, "showTicket")}


def _refused(why: str) -> dict[str, Any]:
    return {"description": why, "content": {"application/json": {"schema": _ref(ErrorAnswer)}}}
