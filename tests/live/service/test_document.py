"""The OpenAPI document says what the service does: it is written from the types that read and write."""

import re

import jsonschema_rs
import msgspec
import pytest

from live.service.clients import DECISIONS
from statepool.live.service.routes import ENDPOINTS, document

ROWS = {"tea": [0.9, 0.1]}
CONTEXTS = {
    "actions": ["tea", "coffee"],
    "states": ["left", "click"],
    "contexts": ["new"],
    "P": {"new": [[0.9, 0.1], [0.5, 0.5]]},
}


def validator(name):
    schemas = document()["components"]["schemas"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    return jsonschema_rs.Draft202012Validator(schema)


def operations():
    return [each for item in document()["paths"].values() for name, each in item.items() if name != "parameters"]


def test_every_schema_is_there_and_used():
    text = msgspec.json.encode(document()).decode()
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert named == set(document()["components"]["schemas"])


def test_every_field_says_what_it_means():
    bare = [
        f"{name}.{field}" for name, schema in document()["components"]["schemas"].items()
        for field, told in schema["properties"].items() if not told.get("description")
    ]  # fmt: skip
    assert not bare


def test_every_field_that_may_be_null_says_what_null_means():
    schemas = document()["components"]["schemas"].items()
    fields = {f"{name}.{field}": told for name, each in schemas for field, told in each["properties"].items()}
    nullable = [name for name, told in fields.items() if {"type": "null"} in told.get("anyOf", [])]
    assert {"PoolBody.prior", "TicketAnswer.state", "PoolBody.P"} <= set(nullable)
    assert [name for name in nullable if not re.search(r"\b[Nn]ull\b", fields[name]["description"])] == []
    assert [name for name, told in fields.items() if "None" in told["description"]] == []


def test_every_parameter_says_what_it_means():
    inside = [each for item in document()["paths"].values() for each in item.get("parameters", [])]
    assert inside
    assert all(each["description"] for each in inside)


def test_every_route_is_in_the_document(start):
    assert start(None).get("/schema").json() == msgspec.json.decode(msgspec.json.encode(document()))
    assert {each["operationId"] for each in operations()} == {endpoint.handler.__name__ for endpoint in ENDPOINTS}


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({"context": "new"}, True),
        ({"ticket": "t", "context": "new"}, True),
        ({"count": 2, "context": "new"}, True),
        ({"ticket": "t", "count": 2, "context": "new"}, False),
        ({"context": "new", "candidates": ROWS}, True),
        ({"ticket": None, "candidates": [{"action": "tea", "row": [0.9, 0.1]}], "count": 1}, True),
        ({"ticket": ""}, False),
    ],
)
def test_what_may_be_asked_together(start, body, fits):
    client = start()
    client.put("/v1/pools/crowd", json=CONTEXTS)
    answer = client.post(DECISIONS.replace("home", "crowd"), json=body)
    assert validator("DecisionBody").is_valid(body) >= fits
    assert answer.status_code == (200 if fits else 422)
    answered = "ErrorAnswer" if not fits else "Decision" if "ticket" in answer.json() else "DecisionsAnswer"
    validator(answered).validate(answer.json())


def test_what_is_known_of_a_ticket(start):
    client = start()
    client.put("/v1/pools/crowd", json=CONTEXTS)
    of_pool = DECISIONS.replace("home", "crowd")
    client.post(of_pool, json={"ticket": "t", "context": "new"})
    client.put(f"{of_pool}/t/state", json={"state": "click"})
    known = client.get(f"{of_pool}/t").json()
    assert known.keys() == document()["components"]["schemas"]["TicketAnswer"]["properties"].keys()
    assert (known["context"], known["state"], known["resolved_at"]) == ("new", "click", None)
    validator("TicketAnswer").validate(known)
