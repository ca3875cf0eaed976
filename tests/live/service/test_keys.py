"""Bearer keys, roles, and the dashboard's door."""

import pytest

from live.service.clients import DECISIONS, POOL
from statepool.live.service.keys import ROLES, add_key, digest_of, drop_key, list_keys


@pytest.fixture
def keys(database):
    made = {role: add_key(database, f"the {role}", role) for role in ROLES}
    return {role: {"authorization": f"Bearer {key}"} for role, key in made.items()}


def test_each_role_may_do_its_part_and_no_more(keys, start):
    client = start(None)
    assert client.put("/v1/pools/home", json=POOL, headers=keys["admin"]).status_code == 201
    client.post(DECISIONS, json={"ticket": "t"}, headers=keys["admin"])
    asked = {
        ("POST", DECISIONS): {"decide", "write"},
        ("PUT", f"{DECISIONS}/t/state"): {"report", "write"},
        ("PUT", f"{DECISIONS}/t/outcome"): {"report", "write"},
        ("GET", "/v1/pools"): {"read", "decide", "report", "write"},
        ("GET", "/v1/pools/home"): {"read", "decide", "report", "write"},
        ("GET", f"{DECISIONS}/t"): {"read", "decide", "report", "write"},
        ("PUT", "/v1/pools/home"): set(),
        ("PATCH", "/v1/pools/home"): set(),
        ("PUT", "/v1/pools/home/actions/a"): set(),
        ("DELETE", "/v1/pools/home/actions/a"): set(),
        ("GET", "/v1/pools/home/rows"): set(),
        ("GET", "/metrics"): {"read", "decide", "report", "write"},
    }
    for (method, address), allowed in asked.items():
        assert client.request(method, address).status_code == 401, address
        for role in ("read", "decide", "report", "write"):
            answer = client.request(method, address, headers=keys[role])
            assert (answer.status_code != 403) == (role in allowed), (address, role)
            if not allowed:
                assert answer.json()["error"].endswith(f"has the role {role}, expected admin"), address
        assert client.request(method, address, headers=keys["admin"]).status_code not in (401, 403), address


def test_what_needs_no_key(keys, start):
    client = start(None)
    client.wait_until_ready()
    for address in ("/healthz", "/readyz", "/schema", "/login"):
        assert client.get(address).status_code == 200, address


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer nonsense", "Basic eDp5", "Bearer \xff", "sp_x"])
def test_a_key_that_is_not_known(keys, start, header):
    answer = start(None).post(DECISIONS, headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert set(answer.json()) == {"error"}


def test_only_hashes_are_stored(keys, database):
    made = {header["authorization"].removeprefix("Bearer ") for header in keys.values()}
    assert {key.hash for key in list_keys(database)} == {digest_of(key) for key in made}


def test_a_service_that_saw_a_key_stays_closed(start, database):
    client = start()
    assert client.get("/v1/pools").status_code == 200
    key = add_key(database, "first", "decide")
    client.app.gate.reload()
    assert client.get("/v1/pools").status_code == 401
    assert client.get("/v1/pools", headers={"authorization": f"bearer {key}"}).status_code == 200
    drop_key(database, "first")
    client.app.gate.reload()
    assert client.get("/v1/pools", headers={"authorization": f"bearer {key}"}).status_code == 401


def test_the_dashboard_opens_with_an_admins_key(keys, start):
    client = start(None)
    door = client.get("/")
    assert (door.status_code, door.headers["location"]) == (303, "/login")
    assert client.get("/pools/home").status_code == 303
    wrong = keys["report"]["authorization"].removeprefix("Bearer ")
    assert client.post("/login", data={"key": wrong}).status_code == 401
    assert client.post("/login", content=b"x" * 5000).status_code == 401
    right = keys["admin"]["authorization"].removeprefix("Bearer ")
    entered = client.post("/login", data={"key": right})
    cookie = entered.headers["set-cookie"]
    assert entered.status_code == 303
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert right not in cookie
    assert client.get("/").status_code == 200, "httpx keeps the cookie"
    assert client.get("/", headers={**keys["admin"], "cookie": ""}).status_code == 200
    assert client.get("/v1/pools").status_code == 401, "the cookie is for pages only"


def test_names_and_roles_are_checked(database):
    for name, role in (("", "admin"), ("x" * 65, "admin"), ("a\n", "admin"), ("a", "king")):
        with pytest.raises(ValueError, match=r"^(name|role): "):
            add_key(database, name, role)
    add_key(database, "a", "admin")
    with pytest.raises(ValueError, match="already"):
        add_key(database, "a", "admin")
