"""Sessions of the dashboard: random, in the store as a hash, gone with their key."""

import hashlib
import hmac
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from live.places import raw_sqlite
from live.service.clients import Client
from statepool.live.service import create_app, sessions
from statepool.live.service.keys import add_key, digest_of
from statepool.live.service.sessions import COOKIE
from statepool.live.stores import open_store


@pytest.fixture
def key(url):
    store = open_store(url)
    made = add_key(store, "boss", "admin")
    store.close()
    return made


def enter(client, key, **headers):
    entered = client.post("/login", data={"key": key}, headers=headers)
    assert entered.status_code == 303
    return entered.headers["set-cookie"]


def cookie_of(header):
    return header.split(";")[0].removeprefix(f"{COOKIE}=")


def sees(client, cookie):
    client._http.cookies.clear()
    return client.get("/", headers={"cookie": f"{COOKIE}={cookie}"}).status_code == 200


def test_nothing_in_the_store_leads_to_a_session(start, key, url):
    client = start(None)
    cookie = cookie_of(enter(client, key))
    assert sees(client, cookie)
    with closing(raw_sqlite(url)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        kept = [value for table in tables for row in database.execute(f"SELECT * FROM {table}") for value in row]
    texts = {value if isinstance(value, str) else value.hex() for value in kept if isinstance(value, str | bytes)}
    assert cookie not in texts
    guesses = texts | {digest_of(text) for text in texts}
    guesses |= {hmac.new(text.encode(), b"dashboard", hashlib.sha256).hexdigest() for text in texts}
    assert not any(sees(client, guess) for guess in guesses)


def test_two_sessions_of_a_key_are_different_and_every_process_knows_both(start, key):
    one, two = start(None), start(None)
    cookies = {cookie_of(enter(one, key)) for _ in range(3)}
    assert len(cookies) == 3
    assert all(sees(two, cookie) for cookie in cookies)


def test_a_session_ends_with_its_key(start, key, url):
    client = start(None)
    cookie = cookie_of(enter(client, key))
    store = open_store(url)
    other = add_key(store, "other", "admin")
    kept = cookie_of(enter(start(None), other))
    store.drop_key("boss")
    client.app.keys.reload()
    assert not sees(client, cookie)
    assert sees(client, kept)
    add_key(store, "boss", "admin")  # another key of that name opens none of the old sessions
    client.app.keys.reload()
    assert not sees(client, cookie)
    assert store.session(digest_of(cookie)) is None
    store.close()


def test_a_session_ends_by_itself(start, key, url, monkeypatch):
    client = start(None)
    cookie = cookie_of(enter(client, key))
    later = time.time() + sessions.SECONDS + 1
    monkeypatch.setattr(sessions.time, "time", lambda: later)
    assert not sees(client, cookie)
    enter(client, key)
    store = open_store(url)
    assert store.session(digest_of(cookie)) is None, "those that have ended are forgotten"
    store.close()


def test_the_cookie_is_for_pages_of_this_site_and_for_encrypted_ones_only_there(start, key):
    client = start(None)
    plain = enter(client, key)
    assert "HttpOnly" in plain
    assert "SameSite=strict" in plain
    assert "Secure" not in plain, "a browser would not keep it over HTTP"
    assert "Secure" in enter(client, key, **{"x-forwarded-proto": "https"})
    page = client.get("/login")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_sessions_in_a_store(place):
    store = place.store()
    store.add_key(f"{place.name} a", f"{place.name} hash", "admin")
    store.add_session(f"{place.name} one", f"{place.name} hash", int(time.time()) + 100)
    store.add_session(f"{place.name} old", f"{place.name} hash", int(time.time()) - 100)
    assert store.session(f"{place.name} one")[0] == f"{place.name} hash"
    store.add_session(f"{place.name} two", "another", int(time.time()) + 100)
    assert store.session(f"{place.name} old") is None
    assert store.drop_key(f"{place.name} a")
    assert not store.drop_key(f"{place.name} a")
    assert store.session(f"{place.name} one") is None
    assert store.session(f"{place.name} two")[0] == "another"


def test_files_are_their_owners(tmp_path):
    file = tmp_path / "pools.db"
    client = Client(create_app(open_store(f"sqlite:///{file}")))
    client.get("/v1/pools")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    client.stop()
    assert modes == dict.fromkeys(("pools.db", "pools.db-wal", "pools.db-shm"), 0o600)


def test_a_file_that_the_world_could_read_is_closed_to_it(tmp_path):
    file = tmp_path / "pools.db"
    open_store(f"sqlite:///{file}").close()
    Path(file).chmod(0o664)
    open_store(f"sqlite:///{file}").close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o660, "a group that was let in stays"
