"""The page about HTTP, written from the OpenAPI document: each call with its fields and their meaning."""

import json
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
LABEL = {"string", "integer", "number", "boolean", "array"}
"""The types that a label may have, which are too many to repeat in every row."""
INTRO = """# HTTP

A running service has all of this at `/schema` (OpenAPI 3.1), for generators of clients. Bodies and answers are JSON.
[The service](../service.md#who-may-ask) says which key may ask for what. A *label* names an action, a state or a
context: text, a number, true or false, or an array of those. A *table* is an array of rows of numbers. A **bold** field
must be sent. Fields inside others are written `states[].ticket`.

A refusal is `{"error": "one sentence"}`, with a status of 400 or more.
"""


def write_page(document: Schema) -> str:
    """The whole page, one section for each call."""
    parts = [INTRO]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                parts += _call(document, f"{method.upper()} {path}", operation)
    return "\n\n".join(parts) + "\n"


def _call(document: Schema, title: str, operation: Schema) -> Iterator[str]:
    yield f"## {title}"
    yield " ".join(filter(None, (operation["summary"], operation.get("description"))))
    body = operation.get("requestBody")
    [(media, answer)] = operation["responses"]["200"]["content"].items()
    if body:
        sent = body["content"]["application/json"]["schema"]
        yield from _fields(document, "Body" if body.get("required") else "Body (may be left out)", sent)
    if media == "application/json":
        yield from _fields(document, "Answer", answer["schema"])
    else:
        yield f"**Answer**: `{media}`."


def _fields(document: Schema, title: str, schema: Schema) -> Iterator[str]:
    for place, option in enumerate(schema.get("oneOf", schema.get("anyOf", [schema]))):
        found = _found(document, option)
        if found.get("title") == "Settings":
            yield "**Or.** [The settings](#settings-of-a-pool) themselves."
            continue
        rows = list(_rows(document, found, ""))
        yield f"**{title if place == 0 else 'Or'}.** {_cell(found.get('description', ''))}".rstrip()
        if rows:
            yield _table("field", rows)


def _rows(document: Schema, schema: Schema, before: str) -> Iterator[str]:
    """A row for each field, followed by those of the fields inside it."""
    for name, field in schema.get("properties", {}).items():
        shown = f"`{before}{name}`"
        needed = name in schema.get("required", []) and "Answer" not in schema.get("title", "")
        more = " See [the settings of a pool](#settings-of-a-pool)." if _is_settings(document, field) else ""
        meaning = field.get("description", "") + more
        yield _row(f"**{shown}**" if needed else shown, _type(document, field), meaning, field)
        inner, ending = _inner(document, field)
        if inner and not more:
            yield from _rows(document, inner, f"{before}{name}{ending}.")


def _inner(document: Schema, field: Schema) -> tuple[Schema | None, str]:
    """What has fields of its own inside a field, and how its name goes on."""
    for each in field.get("anyOf", [field]):
        if each.get("type") == "array" and "$ref" in each.get("items", {}):
            return _found(document, each["items"]), "[]"
        if "$ref" in each:
            return _found(document, each), ""
    return None, ""


def _is_settings(document: Schema, field: Schema) -> bool:
    return "$ref" in field and _found(document, field).get("title") == "Settings"


def _found(document: Schema, schema: Schema) -> Schema:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def _type(document: Schema, schema: Schema) -> str:
    options = schema.get("anyOf")
    if options:
        kinds = {each.get("type") for each in options}
        if kinds >= LABEL:
            return "label or null" if "null" in kinds else "label"
        return " or ".join(dict.fromkeys(_type(document, each) for each in options))
    kind = _found(document, schema).get("type", "anything")
    if kind == "array" and isinstance(schema.get("items"), dict):
        inner = _type(document, schema["items"])
        return "table" if inner == "array of number" else f"array of {inner}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of ({_type(document, schema['additionalProperties'])})"
    return {"string": "text", "integer": "whole number"}.get(kind, str(kind))


def range_of(schema: Schema) -> str:
    """The limits and the default of a field, as sentences to come after what it means."""
    low, over, high = (_number(schema.get(each)) for each in ("minimum", "exclusiveMinimum", "maximum"))
    said = []
    if low:
        said.append(f"From {low} to {high}." if high else f"At least {low}.")
    elif over:
        said.append(f"More than {over}" + (f", at most {high}." if high else "."))
    for what, least, most in (("characters", "minLength", "maxLength"), ("entries", "minItems", "maxItems")):
        if most in schema:
            few, many = schema.get(least, 0), schema[most]
            said.append(f"{many:,} {what}." if few == many else f"{few:,} to {many:,} {what}.")
    if schema.get("default") not in (None, {}, []):
        said.append(f"Default: `{json.dumps(schema['default'])}`.")
    return "".join(f" {each}" for each in said)


def _number(limit: float | None) -> str:
    return "" if limit is None else f"{int(limit) if limit == int(limit) else limit:,}"


def _row(field: str, kind: str, meaning: str, schema: Schema) -> str:
    return f"| {field} | {kind} | {_cell(meaning)}{range_of(schema)} |"


def _table(title: str, rows: list[str]) -> str:
    return "\n".join([f"| {title} | type | meaning |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
