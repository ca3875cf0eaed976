"""Sessions of the dashboard: in signed cookies, shared by all processes of a store, gone with their key."""

import time

import pytest

from statepool.live.service.keys import add_key, drop_key
from statepool.live.service.site import COOKIE, SECONDS


@pytest.fixture
def key(database):
    return add_key(database, "boss", "admin")


def enter(client, key, base="http://localhost"):
    entered = client.post(f"{base}/login", data={"key": key})
    assert entered.status_code == 303
    return entered.headers["set-cookie"]


def cookie_of(header):
    return header.split(";")[0].removeprefix(f"{COOKIE}=")


def sees(client, cookie):
    client._http.cookies.clear()
    return client.get("/", headers={"cookie": f"{COOKIE}={cookie}"}).status_code == 200


def test_a_cookie_that_was_not_signed_here_is_worth_nothing(start, key):
    client = start(None)
    cookie = cookie_of(enter(client, key))
    assert sees(client, cookie)
    content, _, rest = cookie.partition(".")
    assert not sees(client, content)
    assert not sees(client, f"{content}A.{rest}")
    assert not sees(client, cookie[:-2])
    assert not sees(client, key)


def test_every_process_knows_the_sessions_of_the_others(start, key):
    one, two = start(None), start(None)
    assert sees(two, cookie_of(enter(one, key)))


def test_a_session_ends_with_its_key(start, key, database):
    client = start(None)
    cookie = cookie_of(enter(client, key))
    other = add_key(database, "other", "admin")
    kept = cookie_of(enter(start(None), other))
    drop_key(database, "boss")
    client.app.gate.reload()
    assert not sees(client, cookie)
    assert sees(client, kept)
    add_key(database, "boss", "admin")  # another key of that name opens none of the old sessions
    client.app.gate.reload()
    assert not sees(client, cookie)


def test_a_session_ends_by_itself(start, key, monkeypatch):
    client = start(None)
    cookie = cookie_of(enter(client, key))
    later = time.time() + SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert not sees(client, cookie)


def test_the_cookie_is_for_pages_of_this_site_and_secure_where_the_page_is(start, key):
    client = start(None)
    plain = enter(client, key).lower()
    assert "httponly" in plain
    assert "samesite=strict" in plain
    assert "secure" not in plain, "a browser would not keep it over HTTP"
    assert "secure" in enter(client, key, "https://localhost").lower()
    page = client.get("/login")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
