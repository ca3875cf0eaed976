"""What is measured, and the board and the rules that read it; what is logged when things go wrong."""

import json
import logging
import re
import shutil
import subprocess
import threading
import time
from io import StringIO
from pathlib import Path

import pytest
import yaml

from live.service.clients import DECISIONS, POOL
from statepool.live.service import chores
from statepool.live.service import pools as workers
from statepool.live.service.logs import JSONHandler

DEPLOY = Path(__file__).parents[3] / "deploy"


def samples(client):
    lines = client.get("/metrics").text.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_each_promise_has_a_number(client):
    made = [client.post(DECISIONS).json() for _ in range(3)]
    client.put(f"{DECISIONS}/{made[0]['ticket']}/state", json={"state": "click"})
    client.put(f"{DECISIONS}/{made[0]['ticket']}/outcome", json={"loss": 0.5})
    client.put(f"{DECISIONS}/{made[0]['ticket']}/outcome", json={"loss": 0.7})
    client.put(f"{DECISIONS}/none/outcome", json={"loss": 0.7})
    found = {name: float(value) for name, value in samples(client).items()}
    assert found['statepool_decisions_total{pool="home"}'] == 3
    assert found['statepool_pending{pool="home"}'] == 2
    assert 0 <= found['statepool_oldest_pending_age_seconds{pool="home"}'] < 600
    assert found['statepool_journal_events_total{pool="home"}'] == 1 + 1 + 3 + 2
    assert found['statepool_versions_made_total{pool="home"}'] == 1
    assert found['statepool_fold_lag_events{pool="home"}'] == 0
    assert found['statepool_refusals_total{reason="conflict"}'] == 1
    assert found['statepool_refusals_total{reason="unknown"}'] == 1
    assert found['statepool_batch_seconds_count{phase="commit"}'] >= 5
    assert found["statepool_batch_events_sum"] == 6
    assert 0 <= found['statepool_version_age_seconds{pool="home"}'] < 600


def names_of(expression):
    return set(re.findall(r"\bstatepool_\w+", expression))


def test_the_board_and_the_rules_ask_for_what_there_is(start, tmp_path):
    from statepool.live.anchors import FileAnchors

    client = start(anchors=FileAnchors(tmp_path / "anchors"), anchor_every=0.01)
    ticket = client.post(DECISIONS).json()["ticket"]
    client.put(f"{DECISIONS}/{ticket}/outcome", json={"loss": 0.5})
    client.get("/nowhere")
    deadline = time.monotonic() + 60
    while "statepool_anchor_age_seconds" not in samples(client):
        assert time.monotonic() < deadline
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


def test_an_idle_pool_has_no_thread_and_no_fold(start, monkeypatch):
    monkeypatch.setattr(workers, "THREAD_SECONDS", 0.05)
    monkeypatch.setattr(chores, "IDLE_SECONDS", 0.3)
    monkeypatch.setattr(chores, "IDLE_EVERY", 0.05)
    client = start()
    for number in range(20):
        client.put(f"/v1/pools/p{number}", json=POOL)
    first = client.post("/v1/pools/p3/decisions", json={"ticket": "t"}).json()
    pool = client.app.pools.get("p3")
    deadline = time.monotonic() + 60
    while client.app.pools.workers() or any(t.name.startswith("pool ") for t in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert pool._journal.pool_state is None
    assert client.post("/v1/pools/p3/decisions", json={"ticket": "t"}).json() == first
    samples(client)
    assert [worker.pool.name for worker in client.app.pools.workers()] == ["p3"], "a scrape opens no pool"


def test_what_libraries_log_is_one_line_of_json():
    stream = StringIO()
    logger = logging.Logger("library")
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
