"""Keys that expire, keys for some pools, renewed keys, and the headers of every page."""

import pytest

from command_line import statepool
from live.service.clients import POOL
from statepool.live.database import Database
from statepool.live.service.keys import OLD, add_key, drop_key, renew_key


def bearer(key):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def boss(database):
    return bearer(add_key(database, "boss", "admin"))


def with_store(url, work):
    with Database(url) as database:
        return work(database)


def test_a_key_for_some_pools_sees_no_others(url, start, boss):
    client = start(None)
    for name in ("home", "shop"):
        assert client.put(f"/v1/pools/{name}", json=POOL, headers=boss).status_code == 201
    scoped = {
        role: bearer(with_store(url, lambda s, r=role: add_key(s, r, r, pools=["shop"])))
        for role in ("decide", "admin")
    }
    client.app.gate.reload()
    for mine in scoped.values():
        assert client.get("/v1/pools", headers=mine).json() == {"pools": ["shop"]}
        assert client.post("/v1/pools/shop/decisions", headers=mine).status_code == 200
        for method, address in (
            ("POST", "/v1/pools/home/decisions"), ("GET", "/v1/pools/home"), ("PATCH", "/v1/pools/home"),
            ("GET", "/metrics"), ("GET", "/v1/pools/home/decisions/t"), ("PUT", "/v1/pools/new"),
        ):  # fmt: skip
            answer = client.request(method, address, headers=mine)
            assert answer.status_code == 403, (method, address, answer.text)
    assert client.patch("/v1/pools/shop", json={"update_every": 5}, headers=scoped["admin"]).status_code == 200
    assert client.get("/", headers=scoped["admin"]).status_code == 303  # the dashboard shows all pools


def test_a_key_ends_and_is_renewed(url, start, boss):
    client = start(None)
    client.put("/v1/pools/home", json=POOL, headers=boss)
    ended = with_store(url, lambda s: add_key(s, "old", "decide", lasts=0))
    first = with_store(url, lambda s: add_key(s, "shop", "decide", pools=["home"]))
    second = with_store(url, lambda s: renew_key(s, "shop", overlap=1000))
    client.app.gate.reload()

    def status(key):
        return client.post("/v1/pools/home/decisions", headers=bearer(key)).status_code

    assert (status(ended), status(first), status(second)) == (401, 200, 200)
    third = with_store(url, lambda s: renew_key(s, "shop", overlap=0))
    client.app.gate.reload()
    assert (status(first), status(second), status(third)) == (401, 401, 200)
    with_store(url, lambda s: renew_key(s, "shop"))
    with_store(url, lambda s: drop_key(s, "shop"))
    client.app.gate.reload()
    assert status(third) == 401, "whoever drops a key has locked out all that have it, also one from before"
    with pytest.raises(ValueError, match="none named 'nobody'"):
        with_store(url, lambda s: renew_key(s, "nobody"))
    for bad in ({"lasts": -1}, {"pools": ["no such/name"]}, {"lasts": float("inf")}):
        with pytest.raises(ValueError, match="expected"):
            with_store(url, lambda s, bad=bad: add_key(s, "new", "decide", **bad))
    with pytest.raises(ValueError, match=r"that do not end in ' \(before\)'"):
        with_store(url, lambda s: add_key(s, "shop" + OLD, "decide"))


def test_every_page_refuses_frames_and_guesses(start, client):
    for address in (
        "/",
        "/pools/home",
        "/login",
        "/nowhere",
        "/schema",
        "/v1/pools",
        "/healthz",
        "/static/style.css",
    ):
        headers = client.get(address).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"], address
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff"), address
        assert len(headers.get_list("content-security-policy")) == 1, address


def test_the_commands(url, start):
    start().stop()
    made = statepool("keys", "add", "shop", "--role", "decide", "--expires", "90d", "--pool", "home", "--store", url)
    assert (made.stdout[:3], made.stderr) == ("sp_", "")
    early = statepool("keys", "add", "early", "--role", "decide", "--pool", "hme", "--store", url)
    assert (early.stdout[:3], "no pool 'hme' in this store yet" in early.stderr) == ("sp_", True), early.stderr
    assert statepool("keys", "drop", "early", "--store", url).returncode == 0
    refused = statepool("keys", "renew", "shop", "--overlap", "2h", "--store", url)
    assert (refused.returncode, "--expires" in refused.stderr) == (2, True), refused.stderr
    assert "expires: is '0'" in statepool("keys", "renew", "shop", "--expires", "0", "--store", url).stderr
    renewed = statepool("keys", "renew", "shop", "--expires", "never", "--overlap", "2h", "--store", url)
    assert renewed.stdout.startswith("sp_"), renewed.stderr
    listed = statepool("keys", "list", "--store", url).stdout.splitlines()
    assert [line.split("\t")[0] for line in listed] == ["shop", "shop (before)"]
    assert all(line.endswith("\thome") for line in listed)
    for bad in (
        ("keys", "add", "x", "--role", "decide", "--expires", "soon", "--store", url),
        ("keys", "add", "x", "--role", "king", "--store", url),
        ("keys", "renew", "nobody", "--expires", "never", "--store", url),
    ):  # fmt: skip
        done = statepool(*bad)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (bad, done.stderr)
