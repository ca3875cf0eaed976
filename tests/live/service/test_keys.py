"""Bearer keys, roles, and the dashboard's door."""

import json
from contextlib import closing
from io import StringIO

import pytest

from live.service.clients import DECISIONS, POOL
from statepool.live.errors import StoreUnavailable
from statepool.live.service import chores
from statepool.live.service.keys import ROLES, add_key, digest_of
from statepool.live.service.logs import RequestLog
from statepool.live.stores import open_store


@pytest.fixture
def keys(url):
    store = open_store(url)
    made = {role: add_key(store, f"the {role}", role) for role in ROLES}
    store.close()
    return {role: {"authorization": f"Bearer {key}"} for role, key in made.items()}


def test_each_role_may_do_its_part_and_no_more(keys, start):
    client = start(None)
    assert client.put("/v1/pools/home", json=POOL, headers=keys["admin"]).status_code == 201
    client.post(DECISIONS, json={"ticket": "t"}, headers=keys["admin"])
    asked = {
        ("POST", DECISIONS): {"decide"},
        ("PUT", f"{DECISIONS}/t/state"): {"report"},
        ("PUT", f"{DECISIONS}/t/outcome"): {"report"},
        ("GET", "/v1/pools"): {"read", "decide", "report"},
        ("GET", "/v1/pools/home"): {"read", "decide", "report"},
        ("GET", f"{DECISIONS}/t"): {"read", "decide", "report"},
        ("PUT", "/v1/pools/home"): set(),
        ("PATCH", "/v1/pools/home"): set(),
        ("PUT", "/v1/pools/home/actions/a"): set(),
        ("DELETE", "/v1/pools/home/actions/a"): set(),
        ("POST", "/v1/pools/home/expire"): set(),
        ("GET", "/v1/pools/home/rows"): set(),
        ("GET", "/metrics"): {"read", "decide", "report"},
    }
    for (method, address), allowed in asked.items():
        assert client.request(method, address).status_code == 401, address
        for role in ("read", "decide", "report"):
            answer = client.request(method, address, headers=keys[role])
            assert (answer.status_code != 403) == (role in allowed), (address, role)
            if not allowed:
                assert answer.json()["error"].endswith(f"has the role {role}, expected admin"), address
        assert client.request(method, address, headers=keys["admin"]).status_code not in (401, 403), address


def test_what_needs_no_key(keys, start):
    client = start(None)
    for address in ("/healthz", "/readyz", "/openapi.json", "/login"):
        assert client.get(address).status_code == 200, address


def test_who_has_no_key_is_told_that_there_is_trouble_and_not_where(keys, start, url, monkeypatch):
    monkeypatch.setattr(chores, "RECOVER_EVERY", 60.0)
    stream = StringIO()
    client = start(None, log=RequestLog(stream))
    with closing(open_store(url)) as store:
        stranger, mine = {}, {"authorization": f"Bearer {add_key(store, 'mine', 'read', pools=['other'])}"}
    for name in ("home", "other"):
        assert client.put(f"/v1/pools/{name}", json=POOL, headers=keys["admin"]).status_code == 201
    client.app.keys.reload()
    told = {"status": "ready", "trouble": {"home": "segment 1 in /secret is missing"}}
    client.app.health.note("home", StoreUnavailable(told["trouble"]["home"]))
    assert client.get("/readyz", headers=stranger).json() == {"status": "ready", "kind": "pools"}
    assert client.get("/readyz", headers=mine).json() == {"status": "ready"}
    for role in ("read", "decide", "report", "admin"):
        assert client.get("/readyz", headers=keys[role]).json() == told
    client.app.health.note("other", StoreUnavailable("segment 2 in /secret is missing"))
    for headers, words in ((stranger, "not ready: no pool works"), (mine, "not ready"), (keys["read"], "/secret")):
        answer = client.get("/readyz", headers=headers)
        assert (answer.status_code, words in answer.json()["error"]) == (503, True)
        assert ("secret" in answer.text or "home" in answer.text) == (headers is keys["read"])
    client.app.pools.store.close()
    assert "the store does not answer" in client.get("/readyz").json()["error"]
    assert "closed" in client.get("/readyz", headers=keys["read"]).json()["error"]
    client.stop()
    errors = [json.loads(line).get("error", "") for line in stream.getvalue().splitlines()]
    assert sum("/secret" in error for error in errors) == 3, "the log has it, whoever asked"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer nonsense", "Basic eDp5", "Bearer \xff", "sp_x"])
def test_a_key_that_is_not_known(keys, start, header):
    answer = start(None).post(DECISIONS, headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert set(answer.json()) == {"error"}


def test_only_hashes_are_kept(keys, url):
    store = open_store(url)
    told = {header["authorization"].removeprefix("Bearer ") for header in keys.values()}
    kept = store.keys()
    assert {key.hash for key in kept} == {digest_of(key) for key in told}
    store.close()


def test_a_service_that_saw_a_key_stays_closed(start, url):
    client = start()
    assert client.get("/v1/pools").status_code == 200
    store = open_store(url)
    key = add_key(store, "first", "decide")
    client.app.keys.reload()
    assert client.get("/v1/pools").status_code == 401
    assert client.get("/v1/pools", headers={"authorization": f"bearer {key}"}).status_code == 200
    store.drop_key("first")
    store.close()
    client.app.keys.reload()
    assert client.get("/v1/pools", headers={"authorization": f"bearer {key}"}).status_code == 401


def test_the_dashboard_opens_with_an_admins_key(keys, start):
    client = start(None)
    door = client.get("/")
    assert (door.status_code, door.headers["location"]) == (303, "/login")
    assert client.get("/pools/home").status_code == 303
    wrong = keys["report"]["authorization"].removeprefix("Bearer ")
    assert client.post("/login", data={"key": wrong}).status_code == 401
    assert client.post("/login", content=b"x" * 5000).status_code == 413
    right = keys["admin"]["authorization"].removeprefix("Bearer ")
    entered = client.post("/login", data={"key": right})
    cookie = entered.headers["set-cookie"]
    assert entered.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert right not in cookie
    assert client.get("/").status_code == 200, "httpx keeps the cookie"
    assert client.get("/", headers={**keys["admin"], "cookie": ""}).status_code == 200
    assert client.get("/v1/pools").status_code == 401, "the cookie is for pages only"


def test_names_and_roles_are_checked(url):
    store = open_store(url)
    for name, role in (("", "admin"), ("x" * 65, "admin"), ("a\n", "admin"), ("a", "king")):
        with pytest.raises(ValueError, match=r"^(name|role): "):
            add_key(store, name, role)
    add_key(store, "a", "admin")
    with pytest.raises(ValueError, match="already"):
        add_key(store, "a", "admin")
    store.close()
