"""The OpenAPI 3.1 document: bodies from their msgspec types, the rest written here, links from a decision to what
may follow it."""

from functools import cache
from typing import Any

import msgspec

from statepool import __version__
from statepool.live.service.bodies import (
    ActionBody,
    DecisionBody,
    OutcomeBody,
    OutcomesBody,
    PoolBody,
    SettingsBody,
    StateBody,
    StatesBody,
)
from statepool.live.settings import Settings

REF = "#/components/schemas/{name}"
LABEL: dict[str, Any] = {
    "description": "Text, a number, a truth value, or an array of these (a tuple).",
    "type": ["string", "number", "boolean", "array"],
}
NUMBER: dict[str, Any] = {"type": "number"}
WHOLE: dict[str, Any] = {"type": "integer"}
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
SUMMARY = "What a pool adds up to."
OPTIONAL_LABEL = {**LABEL, "type": [*LABEL["type"], "null"]}
MOMENT = {"type": ["string", "null"], "format": "date-time"}


@cache
def document() -> dict[str, Any]:
    """The document as plain data."""
    _, bodies = msgspec.json.schema_components(
        [DecisionBody, StateBody, StatesBody, OutcomeBody, OutcomesBody, PoolBody, SettingsBody, ActionBody, Settings],
        ref_template=REF,
    )
    bodies["DecisionBody"]["maxProperties"] = 1
    bodies["OutcomeBody"].update(minProperties=1, maxProperties=1)
    for name in ("PoolBody", "SettingsBody"):
        bodies[name]["properties"]["settings"] = {"$ref": REF.format(name="Settings")}
    _loosen(bodies["Settings"]["properties"])
    bodies["OutcomeOfTicket"].update(minProperties=2, maxProperties=2)
    return {
        "openapi": "3.1.0",
        "info": {"title": "statepool", "version": __version__, "description": "Decide now, learn when it is known."},
        "paths": _paths(),
        "components": {
            "schemas": {**bodies, **_answers()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {str(status): _refused(why) for status, why in REFUSALS.items()},
        },
        "security": [{"key": []}, {}],
    }


def _loosen(settings: dict[str, Any]) -> None:
    """What is left out stays as it is, so nothing has a default here; shares may be an object by action as well."""
    for schema in settings.values():
        schema.pop("default", None)
    bounds = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
    settings["shares"] = {"anyOf": [settings["shares"], {"type": "object", "additionalProperties": bounds}]}
    settings["holdout_action"] = OPTIONAL_LABEL


def _paths() -> dict[str, Any]:
    pool, ticket = "/v1/pools/{name}", "/v1/pools/{name}/decisions/{ticket}"
    action = f"{pool}/actions/{{action}}"
    return {
        "/v1/pools": {"get": _operation("listPools", "The names of the pools.", "Names")},
        pool: {
            "parameters": [_in_path("name")],
            "get": _operation("showPool", SUMMARY, "Pool"),
            "put": _operation("putPool", "Make a pool, or make sure that it is there.", "Pool", "PoolBody", also=201),
            "patch": _operation("changePool", "Other settings from now on.", "Pool", "SettingsBody"),
        },
        f"{pool}/decisions": {
            "parameters": [_in_path("name")],
            "post": _operation(
                "decide", "An action to play, on disk before it is told. The same ticket gets the same answer.",
                "Decided", "DecisionBody", body_needed=False, links=_links("$response.body#/ticket"),
            ),
        },
        ticket: {
            "parameters": [_in_path("name"), _in_path("ticket")],
            "get": _operation("showTicket", "What is known of a ticket.", "Ticket"),
        },
        f"{ticket}/state": {
            "parameters": [_in_path("name"), _in_path("ticket")],
            "put": _operation("putState", "The state that was seen.", "Seen", "StateBody", links=_after("putOutcome")),
        },
        f"{ticket}/outcome": {
            "parameters": [_in_path("name"), _in_path("ticket")],
            "put": _operation(
                "putOutcome", "The outcome, before or after the state.", "Resolved", "OutcomeBody",
                links=_after("putState"),
            ),
        },
        f"{pool}/states": {
            "parameters": [_in_path("name")],
            "put": _operation("putStates", "The states of many tickets.", "Reported", "StatesBody"),
        },
        f"{pool}/outcomes": {
            "parameters": [_in_path("name")],
            "put": _operation("putOutcomes", "The outcomes of many tickets.", "Reported", "OutcomesBody"),
        },
        action: {
            "parameters": [_in_path("name"), _in_path("action")],
            "put": _operation("putAction", "Add an action, or give it another row.", "Action", "ActionBody"),
            "delete": _operation("retireAction", "Play an action no more.", "Action"),
        },
        f"{pool}/expire": {
            "parameters": [_in_path("name")],
            "post": _operation("expire", "Give overdue decisions the default loss.", "Expired"),
        },
        f"{pool}/rows": {
            "parameters": [_in_path("name")],
            "get": _operation("rows", "One JSON line a decision.", None, media="application/jsonl"),
        },
        "/healthz": {"get": _operation("health", "The process is up.", "Status", keyless=True)},
        "/readyz": {"get": _operation("readiness", "It can be written; who is in trouble.", "Status", keyless=True)},
        "/metrics": {"get": _operation("metrics", "For Prometheus.", None, media="text/plain")},
    }  # fmt: skip


def _operation(
    name: str,
    says: str,
    answer: str | None,
    body: str | None = None,
    *,
    also: int | None = None,
    body_needed: bool = True,
    links: dict[str, Any] | None = None,
    media: str = "application/json",
    keyless: bool = False,
) -> dict[str, Any]:
    schema = {"$ref": REF.format(name=answer)} if answer else TEXT
    fine: dict[str, Any] = {"description": says, "content": {media: {"schema": schema}}}
    if links:
        fine["links"] = links
    responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in REFUSALS}
    operation: dict[str, Any] = {"operationId": name, "summary": says, "responses": {"200": fine, **responses}}
    if also:
        operation["responses"][str(also)] = fine
    if body:
        content = {"application/json": {"schema": {"$ref": REF.format(name=body)}}}
        operation["requestBody"] = {"required": body_needed, "content": content}
    if keyless:
        operation["security"] = []
    return operation


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
    return {"description": why, "content": {"application/json": {"schema": {"$ref": REF.format(name="Error")}}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _answers() -> dict[str, Any]:
    decision = _object(ticket=TEXT, action=LABEL, probability={**NUMBER, "minimum": 0, "maximum": 1})
    arm = _object(count=WHOLE, mean={"type": ["number", "null"]}, error={"type": ["number", "null"]})
    refused = _object(ticket=TEXT, status=WHOLE, error=TEXT)
    lift = {"oneOf": [_object(value=NUMBER, low=NUMBER, high=NUMBER), {"type": "null"}]}
    counts = _object(**dict.fromkeys(("state", "outcome", "expiry", "correction", "impossible"), WHOLE))
    return {
        "Error": _object(error=TEXT),
        "Names": _object(pools={"type": "array", "items": TEXT}),
        "Pool": _object(
            name=TEXT, actions=WHOLE, states={"type": "array", "items": LABEL}, plays=WHOLE, pending=WHOLE,
            version=WHOLE, counts=counts, learner={"type": "object"}, settings={"type": "object"},
            losses=_object(learner=arm, holdout=arm), lift=lift,
        ),
        "Decided": {"oneOf": [decision, _object(decisions={"type": "array", "items": decision})]},
        "Ticket": _object(
            ticket=TEXT, action=LABEL, probability=NUMBER, state=OPTIONAL_LABEL, loss={"type": ["number", "null"]},
            decided_at=MOMENT, observed_at=MOMENT, resolved_at=MOMENT, held={"type": "boolean"},
            expired={"type": "boolean"}, version=WHOLE,
        ),
        "Seen": _object(ticket=TEXT, state=LABEL),
        "Resolved": _object(ticket=TEXT),
        "Reported": _object(done=WHOLE, refused={"type": "array", "items": refused}),
        "Action": _object(action=LABEL),
        "Expired": _object(expired=WHOLE),
        "Status": _object(status=TEXT),
    }  # fmt: skip
