"""The OpenAPI document says what the service does: it is written from the types that read and write."""

import re

import jsonschema_rs
import msgspec
import pytest

from live.service.clients import DECISIONS
from statepool.live.service.openapi import document

ROWS = {"tea": [0.9, 0.1]}
CONTEXTS = {
    "actions": ["tea", "coffee"],
    "states": ["left", "click"],
    "contexts": ["new"],
    "P": {"new": [[0.9, 0.1], [0.5, 0.5]]},
}


def validator(name):
    schemas = document()["components"]["schemas"]
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    )


def test_every_schema_is_there_and_used():
    text = msgspec.json.encode(document()).decode()
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert named == set(document()["components"]["schemas"])


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({"context": "new"}, True),
        ({"ticket": "t", "context": "new"}, True),
        ({"count": 2, "context": "new"}, True),
        ({"requests": [{"ticket": "u", "candidates": ROWS}, {"context": "new"}]}, True),
        ({"ticket": "t", "count": 2, "context": "new"}, False),
        ({"context": "new", "candidates": ROWS}, False),
        ({"requests": [{"context": "new"}], "context": "new"}, False),
        ({"requests": [{"context": "new", "candidates": ROWS}]}, False),
        ({"ticket": ""}, False),
    ],
)
def test_what_may_be_asked_together(start, body, fits):
    client = start()
    client.put("/v1/pools/crowd", json=CONTEXTS)
    answer = client.post(DECISIONS.replace("home", "crowd"), json=body)
    assert validator("DecisionBody").is_valid(body) == fits
    assert answer.status_code == (200 if fits else 422)
    answered = "ErrorAnswer" if not fits else "DecisionAnswer" if "ticket" in answer.json() else "DecisionsAnswer"
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
