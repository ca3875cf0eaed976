"""What is measured, and the board and the rules that read it; what is logged when things go wrong."""

import json
import logging
import re
import shutil
import subprocess
import threading
import time
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
import yaml

from live.service.clients import DECISIONS, POOL
from statepool.live.pool import Pool
from statepool.live.service import chores, keys
from statepool.live.service import pools as workers
from statepool.live.service.logs import JSONHandler
from statepool.live.service.metrics import OF_THE_STORE
from statepool.live.service.tickets import DECISIONS as ROUTE
from statepool.live.stores import open_store

DEPLOY = Path(__file__).parents[3] / "deploy"


def samples(client, headers=None):
    lines = client.get("/metrics", headers=headers).text.splitlines()
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


def test_each_report_of_several_that_is_refused_is_counted(client):
    ticket = client.post(DECISIONS).json()["ticket"]
    told = [{"ticket": ticket, "loss": 0.5}, {"ticket": ticket, "loss": 0.7}, {"ticket": "none", "loss": 0.5}]
    answer = client.put("/v1/pools/home/outcomes", json={"outcomes": told})
    assert [each["status"] for each in answer.json()["refused"]] == [409, 404]
    found = samples(client)
    assert found['statepool_refusals_total{reason="conflict"}'] == "1.0"
    assert found['statepool_refusals_total{reason="unknown"}'] == "1.0"


def test_a_store_that_is_away_leaves_out_what_only_it_knows(start, url, monkeypatch):
    """Also after the time for which keys that were read are believed: this is when somebody looks."""
    Pool.open(url, "home", POOL["P"], POOL["actions"], POOL["states"]).close()
    with closing(open_store(url)) as store:
        watcher, decider = ({"authorization": f"Bearer {keys.add_key(store, r, r)}"} for r in ("read", "decide"))
    client = start(None)
    assert client.post(DECISIONS, headers=decider).status_code == 200
    before = samples(client, watcher)
    assert (before["statepool_store_up"], before['statepool_pool_up{pool="home"}']) == ("1.0", "1.0")
    client.app.pools.store.close()
    assert client.post(DECISIONS, headers=decider).status_code == 503
    monkeypatch.setattr(keys, "OLDEST", 0.0)
    assert client.get("/v1/pools", headers=watcher).status_code == 503, "nobody is let in any more"
    assert client.get("/metrics").status_code == 401
    found = samples(client, watcher)
    assert (found["statepool_store_up"], found['statepool_pool_up{pool="home"}']) == ("0.0", "0.0")
    assert found['statepool_refusals_total{reason="unavailable"}'] == "2.0"
    assert 'statepool_decisions_total{pool="home"}' not in found


def test_what_is_one_workers_own_says_which(start):
    client = start(worker="2")
    client.post(DECISIONS)
    found = samples(client)
    assert found['statepool_decisions_total{pool="home"}'] == "1.0", "the store's, whoever tells it"
    assert found[f'statepool_requests_total{{route="{ROUTE}",status="200",worker="2"}}'] == "1.0"
    assert found['statepool_pool_up{pool="home",worker="2"}'] == "1.0"
    alike = {name.partition("{")[0] for name in found if 'worker="2"' not in name}
    assert {name.removesuffix("_total") for name in alike} <= OF_THE_STORE


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


def test_no_sum_counts_what_is_the_stores_once_for_each_process():
    told = (DEPLOY / "grafana.json").read_text() + (DEPLOY / "alerts.yml").read_text()
    summed = re.findall(r"\bsum(?: by \([^)]*\))? ?\((?:rate\(|increase\()?(statepool_\w+)", told)
    assert "statepool_requests_total" in summed
    assert {name.removesuffix("_total") for name in summed} & OF_THE_STORE == set()


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
