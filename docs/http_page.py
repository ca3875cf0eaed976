"""The page about HTTP, written from the OpenAPI document: each call with its fields, their meaning and an example."""

import json
import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
LABEL = {"string", "integer", "number", "boolean", "array"}
"""The types that a label may have, which are too many to repeat in every row."""
INTRO = """# HTTP

A running service has all of this at `/openapi.json` (OpenAPI 3.1), for generators of clients. Bodies and answers are
JSON. Which key may ask for what: [the service](../service.md#what-a-key-can-do). A *label* names an action, a state or
a context: text, a number, true or false, or an array of those. A *table* is an array of rows of numbers. A **bold**
field must be sent. Fields inside others are written `states[].ticket`.

A refusal is `{"error": "one sentence"}`:

| status | why |
|---|---|
"""


LONG = 10
"""An answer of more fields than this is told once."""


def write_page(told: Schema) -> str:
    """The whole page, one section for each call."""
    first: dict[str, str] = {}
    refusals = told["components"]["responses"].items()
    parts = [INTRO + "\n".join(f"| {status} | {each['description']} |" for status, each in refusals)]
    for path, item in told["paths"].items():
        inside = item.get("parameters", [])
        calls = [(method, each) for method, each in item.items() if method != "parameters"]
        parts += [
            part for method, each in calls for part in _call(told, first, f"{method.upper()} {path}", inside, each)
        ]
    return "\n\n".join(parts) + "\n"


def _call(told: Schema, first: dict[str, str], title: str, inside: list[Schema], operation: Schema) -> Iterator[str]:
    yield f"## {title}"
    yield " ".join(filter(None, (operation["summary"], operation.get("description"))))
    if inside:
        rows = [_row(f"**`{each['name']}`**", "text", each["description"], each["schema"]) for each in inside]
        yield _table("in the path", rows)
    body = operation.get("requestBody")
    [(media, answer)] = operation["responses"]["200"]["content"].items()
    if body:
        sent = body["content"]["application/json"]
        yield from _fields(told, "Body" if body["required"] else "Body (may be left out)", sent["schema"])
    there = first.setdefault(answer["schema"].get("$ref", title), title)
    if media != "application/json":
        yield f"**Answer**: `{media}`."
    elif there != title and len(_found(told, answer["schema"])["properties"]) > LONG:
        yield f"**Answer.** As that of [{there}](#{_anchor(there)})."
    else:
        yield from _fields(told, "Answer", answer["schema"])
    for name, example in answer["examples"].items():
        if body:
            yield f"*Example: {name}.* Sent:"
            yield _code(sent["examples"][name]["value"])
            yield "Answered:"
        else:
            yield f"*Example: {name}.* Answered:"
        yield _code(example["value"])


def _fields(told: Schema, title: str, schema: Schema) -> Iterator[str]:
    options = schema.get("oneOf", [schema])
    for place, option in enumerate(options):
        found = _found(told, option)
        if found["title"] == "Settings":
            yield "**Or.** [The settings](settings.md) themselves."
            continue
        yield f"**{title if place == 0 else 'Or'}.** {_cell(found['description'])}"
        yield _table("field", list(_rows(told, found, "")))


def _rows(told: Schema, schema: Schema, before: str) -> Iterator[str]:
    """A row for each field, followed by those of the fields inside it."""
    for name, field in schema.get("properties", {}).items():
        shown = f"`{before}{name}`"
        needed = name in schema.get("required", []) and "Answer" not in schema["title"]
        more = " See [the settings of a pool](settings.md)." if _is_settings(told, field) else ""
        yield _row(f"**{shown}**" if needed else shown, _type(told, field), field["description"] + more, field)
        inner, ending = _inner(told, field)
        if inner and not more:
            yield from _rows(told, inner, f"{before}{name}{ending}.")


def _inner(told: Schema, field: Schema) -> tuple[Schema | None, str]:
    """What has fields of its own inside a field, and how its name goes on."""
    for each in field.get("anyOf", [field]):
        if each.get("type") == "array" and "$ref" in each.get("items", {}):
            return _found(told, each["items"]), "[]"
        if "$ref" in each:
            return _found(told, each), ""
    return None, ""


def _is_settings(told: Schema, field: Schema) -> bool:
    return "$ref" in field and _found(told, field).get("title") == "Settings"


def _found(told: Schema, schema: Schema) -> Schema:
    name = schema.get("$ref", "").rpartition("/")[2]
    return told["components"]["schemas"][name] if name else schema


def _type(told: Schema, schema: Schema) -> str:
    options = schema.get("anyOf")
    if options:
        kinds = {each.get("type") for each in options}
        if kinds >= LABEL:
            return "label or null" if "null" in kinds else "label"
        return " or ".join(dict.fromkeys(_type(told, each) for each in options))
    kind = _found(told, schema).get("type", "anything")
    if kind == "array" and isinstance(schema.get("items"), dict):
        inner = _type(told, schema["items"])
        return "table" if inner == "array of number" else f"array of {inner}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of ({_type(told, schema['additionalProperties'])})"
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


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def _table(title: str, rows: list[str]) -> str:
    return "\n".join([f"| {title} | type | meaning |", "|---|---|---|", *rows])


def _code(value: Any) -> str:
    if value is None:
        return "(nothing)"
    return f"```text\n{value.rstrip()}\n```" if isinstance(value, str) else f"```json\n{_wide(value)}\n```"


def _wide(value: Any, indent: str = "") -> str:
    """JSON with a line for each field, and on one line what fits on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= 90 or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _wide(each, inner) for each in value) + f"\n{indent}]"
    fields = (f"{inner}{json.dumps(name)}: {_wide(each, inner)}" for name, each in value.items())
    return "{\n" + ",\n".join(fields) + f"\n{indent}}}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
