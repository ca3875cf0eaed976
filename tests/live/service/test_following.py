"""A follower shows what others write, and writes nothing."""

import io
import json

from live.places import ask, change
from live.service.clients import DECISIONS, POOL, Client, until
from statepool.live.service import chores, create_app
from statepool.live.service.keys import add_key
from statepool.live.service.logs import RequestLog
from statepool.live.stores import open_store


def everything(url):
    tables = ("pools", "events", "pending", "snapshots", "keys", "calls", "sessions", "probes")
    return [ask(url, f"SELECT * FROM {table}") for table in tables]


def test_a_follower_shows_everything_and_writes_nothing(start, url):
    client = start()
    made = [client.post(DECISIONS).json() for _ in range(3)]
    follower = Client(create_app(open_store(url), follow=True))
    try:
        before = everything(url)
        assert follower.get("/v1/pools/home").json()["decisions"] == 3
        assert len(follower.get("/v1/pools/home/rows").text.splitlines()) == 3
        assert 'statepool_decisions_total{pool="home"} 3.0' in follower.get("/metrics").text
        assert [follower.get(address).status_code for address in ("/", "/pools/home", "/readyz", "/healthz")] == [
            200
        ] * 4
        for method, address, body in (
            ("POST", DECISIONS, None), ("PUT", f"{DECISIONS}/{made[0]['ticket']}/outcome", {"loss": 0.5}),
            ("PUT", "/v1/pools/new", POOL), ("PATCH", "/v1/pools/home", {"refresh": 3}),
            ("DELETE", "/v1/pools/home/actions/tea", None), ("POST", "/v1/pools/home/expire", None),
        ):  # fmt: skip
            answer = follower.request(method, address, json=body)
            assert (answer.status_code, "follows" in answer.json()["error"]) == (405, True), (method, address)
        assert everything(url) == before
        client.post(DECISIONS)
        assert follower.get("/v1/pools/home").json()["decisions"] == 4
        before = everything(url)
    finally:
        follower.stop()
    assert everything(url) == before


def test_rows_that_a_follower_gives_away_are_in_its_log(start, url):
    """It writes nothing to the store, where `keys calls` would find it."""
    start()
    store, stream = open_store(url), io.StringIO()
    boss = {"authorization": f"Bearer {add_key(store, 'boss', 'admin')}"}
    follower = Client(create_app(store, follow=True, log=RequestLog(stream, with_requests=False)))
    try:
        assert follower.get("/v1/pools/home/rows", headers=boss).status_code == 200
    finally:
        follower.stop()
    [line] = map(json.loads, stream.getvalue().splitlines())
    assert {name: line[name] for name in ("call", "who", "from", "status")} == {
        "call": "GET /v1/pools/home/rows", "who": "boss", "from": "127.0.0.1", "status": 200,
    }  # fmt: skip


def test_a_follower_gets_out_of_trouble(start, url, monkeypatch):
    monkeypatch.setattr(chores, "RECOVER_EVERY", 0.02)
    start().post(DECISIONS)
    [[digest]] = ask(url, "SELECT hash FROM pools")
    follower = Client(create_app(open_store(url), follow=True))
    try:
        until(lambda: follower.app.health.well == {"home"})
        change(url, "UPDATE pools SET hash = zeroblob(32)")
        assert 'statepool_pool_up{pool="home"} 0.0' in follower.get("/metrics").text
        change(url, f"UPDATE pools SET hash = x'{digest.hex()}'")
        until(lambda: follower.get("/readyz").json() == {"status": "ready"})
    finally:
        follower.stop()
