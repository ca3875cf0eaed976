"""The OpenAPI 3.1 document, written from the table of routes."""

import re
from functools import cache
from itertools import combinations
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec

from statepool import __version__
from statepool.live.service import messages as m
from statepool.live.service.routes import ENDPOINTS, TICKET, Endpoint

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
    """The whole document."""
    used = [kind for each in ENDPOINTS for kind in (*_each(each.answer), *_each(each.body))]
    kinds = list(dict.fromkeys([m.ErrorAnswer, *used]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    _add_constraints(components)
    named = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        parameters = [
            {"name": name, "in": "path", "required": True, "description": PARAMETERS[name][0],
             "schema": PARAMETERS[name][1]}
            for name in re.findall(r"{(\w+)}", endpoint.path)
        ]  # fmt: skip
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
    return get_args(kind) if get_origin(kind) is UnionType else () if kind is None else (kind,)


def _operation(endpoint: Endpoint, schemas: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    summary, more = endpoint.says
    answers = [schemas[kind] for kind in _each(endpoint.answer)]
    schema = {"oneOf": answers} if len(answers) > 1 else answers[0] if answers else {"type": "string"}
    fine: dict[str, Any] = {"description": summary, "content": {endpoint.media: {"schema": schema}}}
    if endpoint.name in ("decide", "putState", "putOutcome"):
        ticket = "$response.body#/ticket" if endpoint.name == "decide" else "$request.path.ticket"
        parameters = {"name": "$request.path.name", "ticket": ticket}
        following = {each.name for each in ENDPOINTS if each.path.startswith(TICKET)} - {endpoint.name}
        fine["links"] = {name: {"operationId": name, "parameters": parameters} for name in sorted(following)}
    responses = {"200": fine, **{str(code): {"$ref": f"#/components/responses/{code}"} for code in REFUSALS}}
    if endpoint.name == "putPool":
        responses["201"] = fine
    operation: dict[str, Any] = {"operationId": endpoint.name, "summary": summary, "responses": responses}
    if more:
        operation["description"] = more
    if endpoint.body is not None:
        content = {"application/json": {"schema": schemas[endpoint.body]}}
        operation["requestBody"] = {"required": endpoint.body_required, "content": content}
    if endpoint.name == "rows":
        operation["parameters"] = [AFTER]
    if not endpoint.need:
        operation["security"] = []
    return operation


def _add_constraints(components: dict[str, Any]) -> None:
    """What msgspec's types cannot say: which fields exclude each other."""
    names = ("ticket", "count", "tickets", "requests")
    pairs = [*combinations(names, 2), ("context", "requests"), ("candidates", "requests")]
    components["DecisionBody"]["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}
    components["OutcomeBody"].update(minProperties=1, maxProperties=1)
    components["OutcomeReport"].update(minProperties=2, maxProperties=2)
