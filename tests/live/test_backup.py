"""Backups hold what was acknowledged before they began; a bad file, or a full place, changes nothing."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing

import apsw
import psycopg
import pytest

import statepool as sp
from command_line import statepool
from live.backups import take_under_load
from live.killed import moments
from live.places import COLUMNS, SQLitePlace, ask, fold_of, raw_events
from live.test_restored import play
from statepool.live.backup import backup, restore
from statepool.live.compaction import compact
from statepool.live.errors import StoreUnavailable
from statepool.live.service.keys import add_key
from statepool.live.stores import open_store, sqlite_file


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_backups_under_load_hold_all_that_was_acknowledged(kind, request, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "PAGES_AT_ONCE", 1)  # writers come between any two
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


@pytest.mark.parametrize(
    "case", ["none", "text", "damaged", "later", "foreign", "there", "wal", "folder", "empty", "no tables", "cut short"]
)
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
    elif case == "empty":
        file.write_bytes(b"")
    elif case == "no tables":
        file.unlink()
        ask(f"sqlite:///{file}", "CREATE TABLE t (x); DROP TABLE t")
    elif case == "cut short":
        os.truncate(file, file.stat().st_size // 2 + 100)
    elif case == "there":
        target.write_text("something")
    elif case == "wal":
        (tmp_path / "restored.db-wal").write_text("of another database")
    before = sorted(os.listdir(tmp_path))
    url = f"sqlite:///{tmp_path}/no/where.db" if case == "folder" else f"sqlite:///{target}"
    done = statepool("restore", str(file), url, "--verify")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("statepool: ")
    assert "not an error" not in done.stderr
    if case in ("none", "text", "later", "foreign", "empty", "no tables", "cut short"):
        assert str(file) in done.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_backup_that_finds_no_room_leaves_nothing(sqlite, tmp_path, monkeypatch):
    play(sqlite.make(), 5)
    (tmp_path / "to").mkdir()
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StoreUnavailable, match="No space left"):
        backup(sqlite.url, tmp_path / "to" / "b.db")
    assert os.listdir(tmp_path / "to") == []


class FullDisk(apsw.VFS):
    """SQLite's way to its files, with no room for some of them."""

    def __init__(self, part: str) -> None:
        super().__init__("full", base="unix", makedefault=True)
        self.part = part

    def xOpen(self, name, flags):  # noqa: N802
        return FullFile(self.part, name, flags)


class FullFile(apsw.VFSFile):
    def __init__(self, part, name, flags):
        super().__init__("unix", name, flags)
        self._is_full = part in (name.filename() if isinstance(name, apsw.URIFilename) else name or "")

    def xWrite(self, data, offset):  # noqa: N802
        if self._is_full:
            raise apsw.FullError("no room")
        super().xWrite(data, offset)


def test_a_full_disk_is_told_of_the_side_that_is_full(place, tmp_path):
    play(place.make(), 5)
    (tmp_path / "to").mkdir()
    disk = FullDisk(".b.db-")
    try:
        done = statepool("backup", place.url, tmp_path / "to" / "b.db")
    finally:
        disk.unregister()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{tmp_path}/to/b.db cannot be written: No space left on device" in done.stderr
    assert os.listdir(tmp_path / "to") == []


def test_a_backup_that_is_told_to_stop_leaves_nothing(sqlite, tmp_path):
    sqlite.make().decide_many(50_000)
    sqlite.close()
    (tmp_path / "to").mkdir()
    command = [sys.executable, "-m", "statepool", "backup", sqlite.url, tmp_path / "to" / "b.db", "--verify"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not os.listdir(tmp_path / "to"):
            assert process.poll() is None, "it ended too soon"
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        complaint = process.communicate(timeout=60)[1]
    assert (process.returncode, complaint) == (130, "")
    assert os.listdir(tmp_path / "to") == []


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_folder_that_may_not_be_written_is_told(sqlite, tmp_path, monkeypatch, command):
    play(sqlite.make(), 5)
    backup(sqlite.url, tmp_path / "b.db")
    monkeypatch.setattr(
        tempfile, "mkstemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    given = (
        (sqlite.url, tmp_path / "x.db") if command == "backup" else (tmp_path / "b.db", f"sqlite:///{tmp_path}/x.db")
    )
    done = statepool(command, *given)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{tmp_path}/x.db cannot be written: Permission denied" in done.stderr


def test_a_limit_of_the_system_is_told(sqlite, tmp_path):
    play(sqlite.make(), 30)
    sqlite.close()
    (tmp_path / "to").mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        done = statepool("backup", sqlite.url, tmp_path / "to" / "b.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "b.db cannot be written: File too large" in done.stderr
    assert os.listdir(tmp_path / "to") == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_restoration_that_finds_a_fault_puts_nothing_there(sqlite, request, tmp_path, kind):
    """Every hash is right, and still the tables are not what the journal says."""
    sqlite.make().decide_many(5)
    file, target = tmp_path / "b.db", f"sqlite:///{tmp_path}/restored.db"
    backup(sqlite.url, file)
    ask(f"sqlite:///{file}", "DELETE FROM pending WHERE play = 2")
    if kind == "postgres":
        target = request.getfixturevalue("server").emptied()
    before = sorted(os.listdir(tmp_path))
    done = statepool("restore", file, target, "--verify")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
    assert "found a fault" in done.stderr
    assert "nothing was restored" in done.stderr
    assert sorted(os.listdir(tmp_path)) == before
    if kind == "postgres":
        assert not has_tables(target)


def has_tables(database):
    with psycopg.connect(database) as connection:
        return bool(connection.execute("SELECT FROM pg_namespace WHERE nspname = 'statepool'").fetchall())


def test_an_empty_database_is_not_backed_up(server, tmp_path):
    database = server.emptied()
    done = statepool("backup", database, tmp_path / "b.db", "--verify")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
    assert "holds no pools of statepool" in done.stderr
    assert os.listdir(tmp_path) == []
    assert not has_tables(database)


def test_a_store_without_pools_is_copied_and_nothing_agrees(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/pool.db")
    add_key(store, "boss", "admin")
    store.close()
    copied = statepool("backup", f"sqlite:///{tmp_path}/pool.db", tmp_path / "b.db", "--verify")
    restored = statepool("restore", tmp_path / "b.db", f"sqlite:///{tmp_path}/r.db", "--verify")
    for done in (copied, restored):
        assert done.returncode == 0, done.stderr
        assert "no pool" in done.stdout
        assert "agrees" not in done.stdout
    assert ask(f"sqlite:///{tmp_path}/r.db", "SELECT name FROM keys") == [("boss",)]
    done = statepool("backup", f"sqlite:///{tmp_path}/r.db", tmp_path / "c.db", "--verify", "--json")
    assert json.loads(done.stdout)["agrees"] is None


@pytest.mark.parametrize("verify", [(), ("--verify",)])
def test_a_backup_names_a_segment_that_is_missing_and_is_kept(sqlite, tmp_path, verify):
    pool = sqlite.make()
    play(pool, 30)
    compact(pool._journal.store, sqlite.name, 0.0, str(tmp_path / "s"), 1)
    [segment] = (tmp_path / "s").iterdir()
    segment.rename(tmp_path / segment.name)
    done = statepool("backup", sqlite.url, tmp_path / "b.db", *verify)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"FAULT: segment {segment.name} is not in {tmp_path}/s" in done.stdout
    (tmp_path / segment.name).rename(segment)
    [restored] = restore(tmp_path / "b.db", f"sqlite:///{tmp_path}/r.db", verify=True)
    assert (restored.head.seq, restored.faults) == (121, ())


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_reading_a_backup_changes_nothing_of_it(sqlite, tmp_path, mode):
    """Also of one that an earlier release has replayed, and left in WAL mode, once it is restored."""
    play(sqlite.make(), 5)
    folder, target = tmp_path / "from", f"sqlite:///{tmp_path}/r.db"
    folder.mkdir()
    backup(sqlite.url, folder / "b.db")
    with closing(apsw.Connection(str(folder / "b.db"))) as connection:
        connection.pragma("journal_mode", mode)
    file, url = folder / "b.db", f"sqlite:///{folder}/b.db"
    file.chmod(0o444)
    before = [(each.name, each.stat().st_mode, each.read_bytes()) for each in folder.iterdir()]
    assert len(before) == 1
    reading = [("replay", url, sqlite.name), ("keys", "list", "--store", url), ("backup", url, tmp_path / "again.db")]
    for command in (*(reading if mode == "delete" else ()), ("restore", file, target, "--verify")):
        done = statepool(*command)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert [(each.name, each.stat().st_mode, each.read_bytes()) for each in folder.iterdir()] == before
    assert raw_events(target, sqlite.name) == sqlite.events()


def test_a_store_in_use_is_restored_with_what_is_in_its_wal(sqlite, tmp_path):
    """It is no backup, and is never taken for one that nobody writes to; also through a link."""
    with closing(sqlite.make()) as pool:
        play(pool, 5)
        (tmp_path / "link.db").symlink_to(sqlite.path)
        for file in (sqlite.path, tmp_path / "link.db"):
            [held] = restore(file, f"sqlite:///{tmp_path}/{file.name}-restored.db", verify=True)
            assert held.head.hash == sqlite.events()[-1][-1]


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


def test_what_was_not_replayed_does_not_agree(sqlite, tmp_path):
    play(sqlite.make(), 5)
    for verify, agrees in (((), None), (("--verify",), True)):
        (tmp_path / "b.db").unlink(missing_ok=True)
        (tmp_path / "r.db").unlink(missing_ok=True)
        copied = statepool("backup", sqlite.url, tmp_path / "b.db", "--json", *verify)
        restored = statepool("restore", tmp_path / "b.db", f"sqlite:///{tmp_path}/r.db", "--json", *verify)
        for done in (copied, restored):
            found = json.loads(done.stdout)
            assert (done.returncode, found["verified"], found["agrees"]) == (0, bool(verify), agrees)


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_url_where_a_path_belongs_is_told(tmp_path, command):
    given = ("sqlite:///copy.db", f"sqlite:///{tmp_path}/store.db")
    done = statepool(command, *(given if command == "restore" else reversed(given)))
    assert done.returncode == 2
    assert "expected a path, not a URL: copy.db" in done.stderr


@pytest.mark.parametrize("kind", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_url_where_a_path_belongs_is_told_without_its_password(tmp_path, kind):
    url, path = f"{kind}://me:secret@host/pools", f"sqlite:///{tmp_path}/x.db"
    for given in (("restore", url, path), ("backup", path, url)):
        done = statepool(*given)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "expected a path, not a URL" in done.stderr
        assert ("secret" in done.stderr, "host" in done.stderr) == (False, False)
