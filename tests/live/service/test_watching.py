"""What is measured, and the board and the rules that read it; what is logged when things go wrong."""

import json
import logging
import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
import yaml

from live.service.clients import DECISIONS, POOL
from statepool.live.errors import StoreUnavailable
from statepool.live.pool import Pool
from statepool.live.service import keys
from statepool.live.service.monitoring import JSONHandler
from statepool.live.service.routes import DECISIONS as ROUTE

DEPLOY = Path(__file__).parents[3] / "deploy"


def samples(client, headers=None):
    lines = client.get("/metrics", headers=headers).text.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_each_promise_has_a_number(client):
    made = [client.post(DECISIONS).json() for _ in range(3)]
    client.put(f"{DECISIONS}/{made[0]['ticket']}/state", json={"state": "click"})
    client.put(f"{DECISIONS}/{made[0]['ticket']}/outcome", json={"loss": 0.5})
    client.put(f"{DECISIONS}/{made[0]['ticket']}/outcome", json={"loss": 0.7})
    client.put(f"{DECISIONS}/{made[1]['ticket']}/outcome", json={"loss": 7.0})
    client.put(f"{DECISIONS}/none/outcome", json={"loss": 0.7})
    found = {name: float(value) for name, value in samples(client).items()}
    assert found["statepool_store_up"] == 1
    assert found['statepool_decisions_total{pool="home"}'] == 3
    assert found['statepool_pending{pool="home"}'] == 1
    assert 0 <= found['statepool_oldest_pending_age_seconds{pool="home"}'] < 600
    assert found['statepool_reports_total{kind="outcome",pool="home"}'] == 2
    assert found['statepool_reports_total{kind="out_of_bounds",pool="home"}'] == 1
    outcome = f'route="{ROUTE}/{{ticket}}/outcome"'
    for status in (404, 409):
        assert found[f'statepool_requests_total{{{outcome},status="{status}",worker="1"}}'] == 1
    assert 0 <= found['statepool_version_age_seconds{pool="home"}'] < 600
    assert found[f'statepool_requests_total{{route="{ROUTE}",status="200",worker="1"}}'] == 3
    assert found[f'statepool_request_seconds_count{{route="{ROUTE}",worker="1"}}'] == 3


def test_a_store_that_is_away_leaves_out_what_only_it_knows(start, database, monkeypatch):
    Pool.open(database, "home", POOL["P"], POOL["actions"], POOL["states"]).close()
    watcher, decider = ({"authorization": f"Bearer {keys.add_key(database, r, r)}"} for r in ("read", "decide"))
    client = start(None)
    assert client.post(DECISIONS, headers=decider).status_code == 200
    assert samples(client, watcher)["statepool_store_up"] == "1.0"

    def fail(*_):
        raise StoreUnavailable("store: it is away")

    monkeypatch.setattr(database.__class__, "read", fail)
    assert client.get("/v1/pools", headers=watcher).status_code == 503
    assert client.get("/metrics").status_code == 401
    found = samples(client, watcher)
    assert found["statepool_store_up"] == "0.0"
    assert found['statepool_requests_total{route="/v1/pools",status="503",worker="1"}'] == "1.0"
    assert 'statepool_decisions_total{pool="home"}' not in found


def test_what_is_one_workers_own_says_which(start):
    client = start(worker="2")
    client.post(DECISIONS)
    found = samples(client)
    assert found['statepool_decisions_total{pool="home"}'] == "1.0", "the store's, whichever worker answers"
    assert found[f'statepool_requests_total{{route="{ROUTE}",status="200",worker="2"}}'] == "1.0"


def test_one_json_line_per_request(start):
    stream = StringIO()
    client = start(log=stream)
    client.post(DECISIONS, json={"ticket": "secret"})
    client.get("/nowhere/secret")
    client.stop()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["method"], line["path"], line["status"], line["pool"]) for line in lines] == [
        ("PUT", "/v1/pools/{name}", 201, "home"), ("POST", ROUTE, 200, "home"), ("GET", "other", 404, None),
    ]  # fmt: skip
    assert "secret" not in stream.getvalue()


def names_of(expression):
    return set(re.findall(r"\bstatepool_\w+", expression))


def test_the_board_and_the_rules_ask_for_what_there_is(client):
    ticket = client.post(DECISIONS).json()["ticket"]
    client.put(f"{DECISIONS}/{ticket}/outcome", json={"loss": 0.5})
    client.get("/nowhere")
    known = {name.partition("{")[0] for name in samples(client)}
    board = json.loads((DEPLOY / "grafana.json").read_text())
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
    asked = {target["expr"] for panel in board["panels"] for target in panel["targets"]}
    asked |= {rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    used = {name for expression in asked for name in names_of(expression)}
    assert used - known == set()
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_reads_the_rules_and_they_fire_when_they_should(tmp_path):
    for arguments in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts-test.yml")):
        done = subprocess.run(["promtool", *arguments], cwd=DEPLOY, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_libraries_log_is_one_line_of_json():
    stream = StringIO()
    logger = logging.Logger("library", logging.WARNING)
    logger.addHandler(JSONHandler(stream))
    try:
        raise OSError("the disk\nis gone")
    except OSError:
        logger.exception("it\nfailed %d times", 3)
    logger.info("nothing to tell")
    [line] = stream.getvalue().splitlines()
    said = json.loads(line)
    assert (said["level"], said["message"], said["error"]) == (
        "error",
        "it failed 3 times",
        "OSError: the disk is gone",
    )
