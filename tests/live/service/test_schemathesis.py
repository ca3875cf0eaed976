"""Schemathesis against the OpenAPI document: whatever it sends, no 5xx, and answers are as the document says."""

import threading
import time

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from live.service.clients import DECISIONS, POOL
from statepool.live.database import Database
from statepool.live.service import Service


def no_traceback(context, response, case):
    assert "Traceback" not in response.text


CHECKS = [no_traceback, not_a_server_error, status_code_conformance, response_schema_conformance]
EXAMPLES = settings(
    max_examples=25, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A real server in a thread: Schemathesis calls an ASGI application in a new event loop each time."""
    store = Database(f"sqlite:///{tmp_path_factory.mktemp('store') / 'pools.db'}")
    config = uvicorn.Config(Service(store), port=0, log_level="error", access_log=False, ws="none", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    httpx.put(f"{address}/v1/pools/home", json=POOL).raise_for_status()
    httpx.post(f"{address}{DECISIONS}", json={"ticket": "t"}, timeout=60).raise_for_status()
    yield address
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def schema(address):
    loaded = schemathesis.openapi.from_url(f"{address}/schema")
    for path, operations in loaded.raw_schema["paths"].items():
        for parameter in operations.get("parameters", []):
            if parameter["name"] == "name" and path != "/v1/pools/{name}":
                parameter["schema"] = {"enum": ["home", "away"]}  # else hardly a pool would be met
    states = loaded.raw_schema["components"]["schemas"]["StateBody"]["properties"]
    states["state"] = {"enum": [*POOL["states"], "elsewhere", 7]}
    losses = loaded.raw_schema["components"]["schemas"]["OutcomeBody"]["properties"]
    losses["loss"] = {"enum": [0, 0.5, 1, 7, -1e300]}
    return loaded


def test_every_operation(schema):
    for result in schema.get_all_operations():

        @EXAMPLES
        @given(case=result.ok().as_strategy())
        def attack(case):
            case.call_and_validate(checks=CHECKS)

        attack()
