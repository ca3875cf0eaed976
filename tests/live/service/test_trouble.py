"""Stores that are full and pools that are damaged: what is said, to whom, how often; and that the others go on."""

import asyncio
import io
import json
import threading
import time
from pathlib import Path

import apsw
import pytest

from live.places import ask, change
from live.service.clients import DECISIONS, POOL, until
from live.service.servers import serving
from statepool.live.pool import Pool
from statepool.live.service import chores
from statepool.live.service.health import Health
from statepool.live.service.logs import RequestLog
from statepool.live.stores.sqlite_file import Connection


@pytest.fixture
def full_disk(monkeypatch):
    """While it is set, nothing more can be written to SQLite's files; reading goes on."""
    full = threading.Event()
    execute, executemany = apsw.Connection.execute, apsw.Connection.executemany

    def refuse(sql):
        if full.is_set() and sql.lstrip().upper().startswith(("INSERT", "UPDATE", "REPLACE", "DELETE")):
            raise apsw.FullError("database or disk is full")

    def execute_unless_full(self, sql, *values):
        refuse(sql)
        return execute(self, sql, *values)

    def executemany_unless_full(self, sql, *values):
        refuse(sql)
        return executemany(self, sql, *values)

    monkeypatch.setattr(Connection, "execute", execute_unless_full)
    monkeypatch.setattr(Connection, "executemany", executemany_unless_full)
    return full


def test_a_full_disk_is_not_ready_and_is_again_when_there_is_room(full_disk, start, monkeypatch, capsys):
    monkeypatch.setattr(chores, "RECOVER_EVERY", 0.05)
    stream = io.StringIO()
    client = start(log=RequestLog(stream))
    client.put("/v1/pools/idle", json=POOL)
    assert client.get("/readyz").json() == {"status": "ready"}
    full_disk.set()
    for number in range(20):
        assert client.post(DECISIONS, json={"ticket": str(number)}).status_code == 503
    answer = client.get("/readyz")
    assert answer.status_code == 503, "another pool that nobody asked cannot be written to either"
    assert "pool 'home': " in answer.json()["error"]
    assert "full" in answer.json()["error"]
    full_disk.clear()
    until(lambda: client.get("/readyz").json() == {"status": "ready"})  # nobody decides meanwhile
    assert client.post(DECISIONS).status_code == 200
    client.stop()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    refused = [line for line in lines if line.get("status") == 503 and line["method"] == "POST"]
    assert len(refused) == 20
    assert all(len(json.dumps(line)) < 400 and "full" in line["error"] for line in refused)
    told = [line["trouble"] for line in lines if "trouble" in line]
    assert len(told) == 2, "once when it began, once when it ended"
    assert told[1] is None
    assert "Traceback" not in capsys.readouterr().err


def test_a_quiet_service_tells_of_trouble_once_and_of_no_refusal(url, tmp_path):
    """As of a full disk; here the journal ends in an event that does not follow from the one before it."""
    file = tmp_path / "map.json"
    file.write_text(json.dumps(POOL))
    with serving("--store", url, "--map", str(file), "--quiet") as served:
        assert served.post(DECISIONS).status_code == 200
        change(url, "UPDATE events SET hash = zeroblob(32) WHERE seq = (SELECT max(seq) FROM events)")
        change(url, "UPDATE pools SET hash = zeroblob(32)")
        statuses = {served.post(DECISIONS).status_code for _ in range(10)}
        assert statuses == {503}
        assert served.get("/readyz").status_code == 503
        assert served.end(15) == 0
    lines = [json.loads(line) for line in served.said[1:]]
    assert [line for line in lines if "path" in line] == []
    assert [bool(line["trouble"]) for line in lines if "trouble" in line] == [True], lines
    assert len("".join(served.said[1:])) < 800


def damage(url, name):
    pool = f"pool = (SELECT id FROM pools WHERE name = '{name}')"
    change(url, f"UPDATE events SET body = zeroblob(9) WHERE seq = 1 AND {pool}")
    change(url, f"DELETE FROM snapshots WHERE {pool}")


def make(url, name, **settings):
    pool = Pool.open(url, name, POOL["P"], POOL["actions"], POOL["states"], **settings)
    pool.decide()
    pool.close()


def test_one_damaged_pool_does_not_stop_the_chores_of_the_others(start, url):
    for name in ("bad", "good"):
        make(url, name, expire_after=0.01, default_loss=1.0)
    damage(url, "bad")
    client = start(None, expire_every=0.05)
    good = client.app.pools.get("good")
    until(lambda: good.n_pending == 0)
    until(lambda: "bad" in client.app.health.troubles)
    until(lambda: "good" in client.app.health.well)
    ready = client.get("/readyz")
    assert (ready.status_code, list(ready.json()["trouble"])) == (200, ["bad"])
    lines = client.get("/metrics").text.splitlines()
    assert 'statepool_pool_up{pool="bad"} 0.0' in lines
    assert 'statepool_pool_up{pool="good"} 1.0' in lines
    assert 'statepool_events_total{kind="expiry",pool="good"} 1.0' in lines
    page = client.get("/")
    assert page.status_code == 200
    assert "damaged" in page.text
    assert "/pools/good" in page.text
    assert client.get("/pools/good").status_code == 200
    assert client.get("/pools/bad").status_code == 503
    assert client.post("/v1/pools/good/decisions").status_code == 200
    assert client.post("/v1/pools/bad/decisions").status_code == 503


def test_a_mistake_of_ours_in_a_chore_is_told_to_the_operator_once(start, url, monkeypatch, capsys):
    def fail(*_):
        raise KeyError("secret")

    make(url, "home")
    monkeypatch.setattr(Pool, "warm_up", fail)
    monkeypatch.setattr(Pool, "snapshot", fail)
    monkeypatch.setattr(chores, "RECOVER_EVERY", 0.02)
    client = start(None)
    until(lambda: client.get("/readyz").status_code == 503)
    assert "secret" not in client.get("/readyz").text
    time.sleep(0.2)
    assert capsys.readouterr().err.count("KeyError: 'secret'") == 1
    monkeypatch.undo()


def test_a_chore_that_is_stopped_as_its_answer_comes_stops():
    """Else it goes on for ever, and the service waits for it."""

    async def cancel_as_the_probe_answers():
        health = Health(None, print)
        health._probe, health._probed_at = asyncio.get_running_loop().create_future(), time.monotonic()
        task = asyncio.create_task(health.store_trouble())
        await asyncio.sleep(0)
        health._probe.set_result(None)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_as_the_probe_answers())


def test_nothing_waits_in_a_way_that_swallows_a_cancellation():
    sources = Path(chores.__file__).parents[1].rglob("*.py")
    assert not [source.name for source in sources if "asyncio.wait_for(" in source.read_text()]


def test_a_service_whose_only_pool_is_damaged_is_not_ready(start, url):
    make(url, "bad")
    damage(url, "bad")
    client = start(None)
    until(lambda: client.get("/readyz").status_code == 503)
    assert "pool 'bad': " in client.get("/readyz").json()["error"]


def test_an_expiry_that_fails_is_told_until_expiry_works(start, url, monkeypatch):
    """That snapshots can be written says nothing of it; nor does it keep anybody from deciding."""
    monkeypatch.setattr(chores, "RECOVER_EVERY", 0.02)
    make(url, "home", expire_after=0.01, default_loss=1.0)
    [(number, ticket)] = ask(url, "SELECT play, ticket FROM pending")
    change(url, "UPDATE pending SET ticket = 'nobody'")
    stream = io.StringIO()
    client = start(None, expire_every=0.05, log=RequestLog(stream))
    until(lambda: client.app.health.well == {"home"})
    until(lambda: "home" in client.app.health.troubles)
    for _ in range(25):
        time.sleep(0.02)
        ready = client.get("/readyz")
        assert (ready.status_code, list(ready.json().get("trouble", ()))) == (200, ["home"])
    lines = client.get("/metrics").text.splitlines()
    assert 'statepool_pool_up{pool="home"} 0.0' in lines
    assert 'statepool_decisions_total{pool="home"} 1.0' in lines, "what is known of it is told all the same"
    assert client.post(DECISIONS).status_code == 200
    change(url, f"UPDATE pending SET ticket = '{ticket}' WHERE play = {number}")
    until(lambda: client.get("/readyz").json() == {"status": "ready"})
    client.stop()
    told = [line["trouble"] for line in map(json.loads, stream.getvalue().splitlines()) if "trouble" in line]
    assert (len(told), "nobody" in told[0], told[1]) == (2, True, None)


def test_a_pool_that_hangs_holds_up_no_other_chore(start, url):
    for name in ("good", "hung"):
        make(url, name, expire_after=0.01, default_loss=1.0)
    client = start(None, expire_every=0.05)
    until(lambda: "hung" in client.app.health.well)
    hung, good = client.app.pools.get("hung"), client.app.pools.get("good")
    with hung._journal._turns.lock:
        good.decide()
        until(lambda: good.n_pending == 0)


def test_a_pool_that_hangs_is_named_before_its_callers_are_told(start, monkeypatch):
    monkeypatch.setattr(chores, "RECOVER_EVERY", 0.05)
    monkeypatch.setattr(chores, "LONGEST_BATCH", 0.2)
    client = start()
    client.put("/v1/pools/other", json=POOL)
    worker = client.app.pools.open_worker("home")
    with client.app.pools.get("home")._journal._turns.lock:
        waiting = threading.Thread(target=client.post, args=(DECISIONS,))
        waiting.start()
        until(lambda: "home" in client.get("/readyz").json().get("trouble", {}))
        assert worker.seconds_busy() > 0.2
    waiting.join()
    until(lambda: client.get("/readyz").json() == {"status": "ready"})


def test_a_summary_is_of_one_moment(start, monkeypatch):
    """Whoever reads holds the pool's state still: a decision that comes meanwhile waits for its turn."""
    client = start()
    pool = client.app.pools.get("home")
    taken = []
    read_status = Pool._read_status

    def watch(self, pool_state):
        taken.append(pool._journal._lock.locked())
        return read_status(self, pool_state)

    monkeypatch.setattr(Pool, "_read_status", watch)
    assert client.get("/v1/pools/home").status_code == 200
    assert taken == [True]
