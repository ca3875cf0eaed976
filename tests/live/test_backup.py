"""Backups hold what was acknowledged before they began; a bad file, or a full place, changes nothing."""

import json
import os

import pytest

import statepool as sp
from command_line import statepool
from live.backups import take_under_load
from live.killed import moments
from live.places import COLUMNS, SQLitePlace, ask, fold_of, raw_events
from live.test_restored import play
from statepool.live.backup import backup, restore
from statepool.live.errors import StoreUnavailable
from statepool.live.service.keys import add_key
from statepool.live.stores import open_store


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_backups_under_load_hold_all_that_was_acknowledged(kind, request, tmp_path):
    url = f"sqlite:///{tmp_path}/pool.db" if kind == "sqlite" else request.getfixturevalue("server").emptied()
    targets = [f"sqlite:///{tmp_path}/restored-{n}.db" for n in range(3)]
    taken = take_under_load(url, "home", tmp_path, moments(3, longest=0.1, seed=3), targets)
    assert len(taken[-1][0]) > len(taken[0][0]) > 0, "nothing was said meanwhile"


def held_rows(url):
    tables = {"pools": "name", "events": "pool, seq", "pending": "pool, play", "snapshots": "pool", "keys": "name"}
    return {table: ask(url, f"SELECT {columns(table)} FROM %s{table} ORDER BY {by}") for table, by in tables.items()}


def columns(table):
    """The servers' table of events has them in another order, which takes less room there."""
    return f"pool, {COLUMNS}" if table == "events" else "*"


def filled(url):
    store = open_store(url)
    add_key(store, "boss", "admin")
    for name in ("home", "shop"):
        pool = sp.Pool.open(store, name, P=[[0.5, 0.5], [0.2, 0.8]], actions=["a", "b"], states=["x", "y"], seed=1)
        pool.decide_many(5)
        pool.snapshot()
    store.ensure("unborn")
    store.add_session("hash of a session", "hash of a key", 10**10)
    store.close()


def test_a_backup_goes_from_any_store_into_any_other(server, tmp_path):
    """File, database, file again: every row as it was; sessions stay behind."""
    filled(f"sqlite:///{tmp_path}/pool.db")
    first, second, database = tmp_path / "1.db", tmp_path / "2.db", server.emptied()
    backup(f"sqlite:///{tmp_path}/pool.db", first)
    restore(first, database)
    backup(database, second, verify=True)
    rows = held_rows(f"sqlite:///{tmp_path}/pool.db")
    assert len(rows["events"]) == 14
    assert held_rows(f"sqlite:///{first}") == held_rows(database) == held_rows(f"sqlite:///{second}") == rows
    assert ask(f"sqlite:///{first}", "SELECT count(*) FROM sessions") == [(0,)]
    assert os.stat(first).st_mode & 0o777 == os.stat(second).st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="holds pools or keys already"):
        restore(first, database)
    store = open_store(database)
    try:
        store.ensure("another")  # the database's own numbers go on after those that were restored
        assert "another" in store.pools()
    finally:
        store.close()


def test_a_restored_pool_goes_on(sqlite, tmp_path):
    pool = sqlite.make()
    play(pool, 20)
    backup(sqlite.url, tmp_path / "b.db")
    copy = SQLitePlace(tmp_path / "restored.db")
    copy.name = sqlite.name
    restore(tmp_path / "b.db", copy.url)
    with copy.open() as restored:
        play(restored, 20)
    assert raw_events(copy.url, copy.name)[:61] == sqlite.events()[:61]
    fold_of(copy.events())


def damaged(file, body):
    """One byte of an event, where no page is any worse for it."""
    data = bytearray(file.read_bytes())
    place = data.index(body)
    while place >= 0:  # a page that was split may still hold an old copy
        data[place + len(body) // 2] ^= 1
        place = data.find(body)
    file.write_bytes(data)


@pytest.mark.parametrize("case", ["none", "text", "damaged", "later", "foreign", "there", "wal", "folder"])
def test_a_bad_file_is_refused_in_one_sentence(sqlite, tmp_path, case):
    play(sqlite.make(), 30)
    file, target = tmp_path / "b.db", tmp_path / "restored.db"
    backup(sqlite.url, file)
    if case == "none":
        file.unlink()
    elif case == "text":
        file.write_text("not a database, but long enough to be read as one" * 100)
    elif case == "damaged":
        damaged(file, sqlite.events()[40][-2])
    elif case == "later":
        ask(f"sqlite:///{file}", "INSERT INTO migrations VALUES (999)")
    elif case == "foreign":
        ask(f"sqlite:///{file}", "DROP TABLE migrations")
    elif case == "there":
        target.write_text("something")
    elif case == "wal":
        (tmp_path / "restored.db-wal").write_text("of another database")
    before = sorted(os.listdir(tmp_path))
    url = f"sqlite:///{tmp_path}/no/where.db" if case == "folder" else f"sqlite:///{target}"
    done = statepool("restore", str(file), url)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("statepool: ")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_backup_that_finds_no_room_leaves_nothing(sqlite, tmp_path, monkeypatch):
    play(sqlite.make(), 5)
    (tmp_path / "to").mkdir()
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StoreUnavailable, match="No space left"):
        backup(sqlite.url, tmp_path / "to" / "b.db")
    assert os.listdir(tmp_path / "to") == []


def test_the_commands(sqlite, tmp_path):
    play(sqlite.make(), 5)
    file = tmp_path / "b.db"
    done = statepool("backup", sqlite.url, str(file), "--verify", "--json")
    assert done.returncode == 0, done.stderr
    [copied] = json.loads(done.stdout)["pools"]
    assert copied == copied | {"hash": sqlite.events()[-1][-1].hex(), "decisions": 5, "faults": []}
    done = statepool("restore", str(file), f"sqlite:///{tmp_path}/r.db", "--verify")
    assert done.returncode == 0, done.stderr
    assert copied["hash"] in done.stdout


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_url_where_a_path_belongs_is_told(tmp_path, command):
    given = ("sqlite:///copy.db", f"sqlite:///{tmp_path}/store.db")
    done = statepool(command, *(given if command == "restore" else reversed(given)))
    assert done.returncode == 2
    assert "expected a path, not a URL: copy.db" in done.stderr
