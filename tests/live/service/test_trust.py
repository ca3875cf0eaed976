"""Keys that end, keys for some pools, renewed keys, notes of what administrators did, and headers of every page."""

import json
import threading
import time
from io import StringIO

import pytest

from command_line import statepool
from live.service.clients import POOL, until
from statepool.live.anchors import Anchors, FileAnchors
from statepool.live.errors import StoreUnavailable
from statepool.live.service.keys import OLD, add_key, drop_key, renew_key
from statepool.live.service.logs import RequestLog
from statepool.live.stores import open_store


def bearer(key):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def boss(url):
    store = open_store(url)
    key = add_key(store, "boss", "admin")
    store.close()
    return bearer(key)


def with_store(url, work):
    store = open_store(url)
    try:
        return work(store)
    finally:
        store.close()


def test_a_key_for_some_pools_sees_no_others(url, start, boss):
    client = start(None)
    for name in ("home", "shop"):
        assert client.put(f"/v1/pools/{name}", json=POOL, headers=boss).status_code == 201
    scoped = {
        role: bearer(with_store(url, lambda s, r=role: add_key(s, r, r, pools=["shop"])))
        for role in ("decide", "admin")
    }
    client.app.keys.reload()
    for mine in scoped.values():
        assert client.get("/v1/pools", headers=mine).json() == {"pools": ["shop"]}
        assert client.post("/v1/pools/shop/decisions", headers=mine).status_code == 200
        for method, address in (
            ("POST", "/v1/pools/home/decisions"), ("GET", "/v1/pools/home"), ("PATCH", "/v1/pools/home"),
            ("GET", "/metrics"), ("GET", "/v1/pools/home/decisions/t"), ("PUT", "/v1/pools/new"),
        ):  # fmt: skip
            answer = client.request(method, address, headers=mine)
            assert answer.status_code == 403, (method, address, answer.text)
    assert client.patch("/v1/pools/shop", json={"refresh": 5}, headers=scoped["admin"]).status_code == 200
    assert client.get("/", headers=scoped["admin"]).status_code == 303  # the dashboard shows all pools


def test_a_key_ends_and_is_renewed(url, start, boss):
    client = start(None)
    client.put("/v1/pools/home", json=POOL, headers=boss)
    ended = with_store(url, lambda s: add_key(s, "old", "decide", lasts=10, now=time.time() - 11))
    first = with_store(url, lambda s: add_key(s, "shop", "decide", pools=["home"]))
    second = with_store(url, lambda s: renew_key(s, "shop", overlap=1000))
    client.app.keys.reload()

    def status(key):
        return client.post("/v1/pools/home/decisions", headers=bearer(key)).status_code

    assert (status(ended), status(first), status(second)) == (401, 200, 200)
    with pytest.raises(ValueError, match="is still good, and would end now"):
        with_store(url, lambda s: renew_key(s, "shop"))
    third = with_store(url, lambda s: renew_key(s, "shop", overlap=0))
    client.app.keys.reload()
    assert (status(first), status(second), status(third)) == (401, 401, 200)
    with_store(url, lambda s: renew_key(s, "shop"))
    with_store(url, lambda s: drop_key(s, "shop"))
    client.app.keys.reload()
    assert status(third) == 401, "whoever drops a key has locked out all that have it, also one from before"
    with pytest.raises(ValueError, match="none named 'nobody'"):
        with_store(url, lambda s: renew_key(s, "nobody"))
    for bad in ({"lasts": -1}, {"pools": ["no such/name"]}, {"lasts": float("inf")}):
        with pytest.raises(ValueError, match="expected"):
            with_store(url, lambda s, bad=bad: add_key(s, "new", "decide", **bad))
    with pytest.raises(ValueError, match=r"expected one that does not end in ' \(before\)'"):
        with_store(url, lambda s: add_key(s, "shop" + OLD, "decide"))


def test_what_administrators_do_is_noted(url, start, boss):
    client = start(None)
    client.put("/v1/pools/home", json=POOL, headers=boss)
    client.patch("/v1/pools/home", json={"refresh": 7}, headers=boss)
    client.patch("/v1/pools/home", json={"refresh": -7}, headers=boss)
    client.get("/v1/pools/home/rows", headers=boss)
    client.get("/metrics", headers=boss)
    client.get("/v1/pools/home", headers=boss)
    client.delete("/v1/pools/home/actions/tea", headers=boss)
    calls = with_store(url, lambda s: s.calls(100))
    assert [(call.who, call.did, call.status) for call in calls] == [
        ("boss", "PUT /v1/pools/home", 201), ("boss", "PATCH /v1/pools/home", 200),
        ("boss", "PATCH /v1/pools/home", 422), ("boss", "GET /v1/pools/home/rows", 200),
        ("boss", "DELETE /v1/pools/home/actions/tea", 200),
    ]  # fmt: skip
    assert "refresh" in calls[2].said


def test_every_page_refuses_frames_and_guesses(start, client):
    for address in (
        "/",
        "/pools/home",
        "/login",
        "/nowhere",
        "/openapi.json",
        "/v1/pools",
        "/healthz",
        "/static/style.css",
    ):
        headers = client.get(address).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"], address
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff"), address
        assert len(headers.get_list("content-security-policy")) == 1, address


def test_no_more_pools_than_are_allowed(start):
    client = start(most_pools=2)
    assert client.put("/v1/pools/two", json=POOL).status_code == 201
    refused = client.put("/v1/pools/three", json=POOL)
    assert refused.status_code == 429
    assert "2 pools" in refused.json()["error"]
    assert client.put("/v1/pools/two", json=POOL).status_code == 200


def test_heads_are_noted_outside_while_it_runs(start, tmp_path):
    file = tmp_path / "anchors.jsonl"
    client = start(anchors=FileAnchors(file), anchor_every=0.01)
    made = [client.post("/v1/pools/home/decisions").json() for _ in range(3)]
    deadline = time.monotonic() + 60
    while not file.exists() or json.loads(file.read_text().splitlines()[-1])["seq"] < len(made) + 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len({line["hash"] for line in lines}) == len(lines), "a head that has not moved is noted once"


class Broken(Anchors):
    """A place that never worked."""

    def __init__(self, error):
        self.error, self.asked = error, threading.Event()

    def add(self, anchors):
        self.asked.set()
        raise self.error

    def look(self):
        raise self.error

    def read(self, pool):
        raise self.error


@pytest.mark.parametrize("error", [StoreUnavailable("no answer"), KeyError("no answer")])
def test_a_place_that_never_worked_has_an_age_and_a_reason(start, error):
    start().stop()  # with no pool there is nothing to note, and the place is not asked
    stream, place = StringIO(), Broken(error)
    began = time.time()
    client = start(anchors=place, anchor_every=0.01, log=RequestLog(stream))
    assert place.asked.wait(60)
    ages = [line for line in client.get("/metrics").text.splitlines() if line.startswith("statepool_anchor_age")]
    assert 0 <= float(ages[0].split()[1]) <= time.time() - began
    client.stop()
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    [trouble] = [line["trouble"] for line in told if line.get("pool") == "(anchors)"]
    assert "no answer" in trouble


def test_a_place_that_is_gone_is_told_though_no_pool_moves(start, tmp_path):
    stream, file = StringIO(), tmp_path / "anchors.jsonl"
    client = start(anchors=FileAnchors(file), anchor_every=0.01, log=RequestLog(stream))
    until(file.exists)
    file.rename(tmp_path / "elsewhere")
    until(lambda: client.app.health.anchor_trouble is not None)
    since = client.app.health.anchored_at
    time.sleep(0.1)
    assert client.app.health.anchored_at == since, "its age grows until it is back"
    (tmp_path / "elsewhere").rename(file)
    until(lambda: client.app.health.anchor_trouble is None)
    client.stop()
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    gone, back = [line["trouble"] for line in told if line.get("pool") == "(anchors)"]
    assert (str(file) in gone, back) == (True, None)


def test_who_asked_for_no_anchors_has_no_age(start):
    assert "statepool_anchor_age" not in start().get("/metrics").text


def test_the_commands(url, tmp_path, start):
    start().stop()
    file = str(tmp_path / "anchors.jsonl")
    made = statepool("keys", "add", "shop", "--role", "decide", "--expires", "90d", "--pool", "home", "--store", url)
    assert (made.stdout[:3], made.stderr) == ("sp_", "")
    early = statepool("keys", "add", "early", "--role", "decide", "--pool", "hme", "--store", url)
    assert (early.stdout[:3], "no pool 'hme' in this store yet" in early.stderr) == ("sp_", True), early.stderr
    assert statepool("keys", "drop", "early", "--store", url).returncode == 0
    refused = statepool("keys", "renew", "shop", "--overlap", "2h", "--store", url)
    assert (refused.returncode, "'shop' has an end" in refused.stderr) == (2, True), refused.stderr
    assert "expires: is '0'" in statepool("keys", "renew", "shop", "--expires", "0", "--store", url).stderr
    renewed = statepool("keys", "renew", "shop", "--expires", "never", "--overlap", "2h", "--store", url)
    assert renewed.stdout.startswith("sp_"), renewed.stderr
    listed = statepool("keys", "list", "--store", url).stdout.splitlines()
    assert [line.split("\t")[0] for line in listed] == ["shop", "shop (before)"]
    assert all(line.endswith("\thome") for line in listed)
    calls = statepool("keys", "calls", "--store", url).stdout
    assert "keys add shop" in calls
    assert "keys renew shop" in calls
    noted = statepool("anchor", url, file)
    assert noted.stdout.startswith("home\t1\t"), noted.stderr
    assert "1 notes of the chain" in statepool("replay", url, "home", "--anchors", file).stdout
    (tmp_path / "anchors.jsonl").write_text(json.dumps({"time": "t", "pool": "home", "seq": 1, "hash": "00"}))
    assert statepool("replay", url, "home", "--anchors", file).returncode == 1
    for bad in (
        ("keys", "add", "x", "--role", "decide", "--expires", "soon", "--store", url), ("anchor", url, "ftp://x"),
        ("serve", "--anchor", "ftp://x", "--store", url), ("serve", "--max-pools", "0", "--store", url),
        ("keys", "renew", "nobody", "--store", url), ("replay", url, "home", "--anchors", str(tmp_path / "none")),
    ):  # fmt: skip
        done = statepool(*bad)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (bad, done.stderr)
