"""What only SQLite does: power loss, refusals, errors of the disk, and no reading of more than is asked for."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from journals import decide, write
from power import Disk, Platter

from statepool.live.errors import StoreUnavailable
from statepool.live.events import Decided, encode
from statepool.live.stores import sqlite, sqlite_file, sqlite_place
from statepool.live.stores.sqlite import SQLiteStore
from statepool.live.stores.sqlite_file import Synchronous
from statepool.live.stores.sqlite_place import check_version, file_system
from statepool.live.stores.store import Entry, Head, Overdue

CARRY = bytes(120_000)  # thirty pages a batch, so that a checkpoint comes by itself


class Client:
    """Who writes, and its own record: how far the disk was when each batch was acknowledged."""

    def __init__(self, folder: Path, synchronous: Synchronous) -> None:
        self.disk = Disk(f"disk of {folder}")
        self.acknowledged: list[tuple[int, str]] = []
        for batches in (3, 40, 3):  # closing in between checkpoints and deletes the WAL
            store = SQLiteStore(folder / "pool.db", synchronous, self.disk.name)
            store.ensure("home")
            for _ in range(batches):
                self.decide(store)
            store.close()

    def decide(self, store: SQLiteStore) -> None:
        with store.batch("home") as batch:
            seq = batch.head().seq + 1
            ticket = f"ticket {seq}"
            body = encode(Decided(seq, ticket, seq - 1, 1, 0, 0.5, False, carry=CARRY))
            entry, opened = Entry(seq, "decision", ticket, seq - 1, body, b""), Overdue(seq - 1, ticket, seq)
            batch.append([entry], Head(seq, b"", seq), [opened])
        self.acknowledged.append((len(self.disk.steps), ticket))


def tickets_left(folder: Path) -> list[str]:
    """What a store finds on the disk, which must be whole and fit to go on with."""
    store = SQLiteStore(folder / "pool.db")
    store.ensure("home")
    with store.view("home") as view:
        entries = list(view.entries())
        assert [entry.seq for entry in entries] == list(range(1, view.head().seq + 1))
        assert (
            [overdue.number for overdue in view.pending()] == list(range(view.n_pending())) == list(range(len(entries)))
        )
    decide(store, "after the power came back")
    store.close()
    return [str(entry.ticket) for entry in entries]


def count_lost(folder: Path, synchronous: Synchronous, torn: bool = False) -> int:
    """Cut the power at many moments, and count the acknowledged batches that are not there afterwards.

    `torn`: at every other moment, some of what was not synced is there nevertheless.
    """
    (folder / "live").mkdir()
    client = Client(folder / "live", synchronous)
    chance = random.Random(7)
    moments = {moment for moment, _ in client.acknowledged[::2]}
    moments |= set(chance.sample(range(client.acknowledged[0][0], len(client.disk.steps)), 20))
    platter, lost = Platter(), 0
    for moment, step in enumerate([*client.disk.steps, None]):
        if moment in moments:
            left = folder / str(moment)
            left.mkdir()
            platter.lose_power(left, chance if torn and moment % 2 else None)
            lost += len({ticket for at, ticket in client.acknowledged if at <= moment} - set(tickets_left(left)))
        if step is not None:
            platter.take(step)
    return lost


def test_power_loss_takes_nothing_acknowledged(tmp_path: Path) -> None:
    assert count_lost(tmp_path, "FULL", torn=True) == 0


def test_power_loss_with_synchronous_off_is_caught(tmp_path: Path) -> None:
    """Mutant "synchronous=OFF": the test above is able to fail."""
    assert count_lost(tmp_path, "OFF") > 0


def test_power_loss_with_synchronous_normal_is_caught(tmp_path: Path) -> None:
    assert count_lost(tmp_path, "NORMAL") > 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "pool.db")
    store.ensure("home")
    yield store
    store.close()


def count(store: SQLiteStore) -> int:
    with store.view("home") as view:
        return len(list(view.entries()))


def test_every_connection_syncs(store: SQLiteStore) -> None:
    count(store)
    assert store._file.writer is not None
    for connection in (store._file.writer, *store._file.readers):
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("journal_mode") == "wal"


def test_a_sync_that_fails_is_no_acknowledgement(tmp_path: Path) -> None:
    disk = Disk("disk that breaks")
    store = SQLiteStore(tmp_path / "pool.db", vfs=disk.name)
    store.ensure("home")
    decide(store, "before")
    disk.broken = True
    with pytest.raises(StoreUnavailable, match="cannot be used at present"):
        decide(store, "during")
    disk.broken = False
    assert count(store) == 1
    assert decide(store, "during")[0].seq == 2
    store.close()


def test_a_full_disk_keeps_nothing_of_the_batch(store: SQLiteStore) -> None:
    decide(store, "a")
    assert store._file.writer is not None
    store._file.writer.pragma("max_page_count", 1)
    with pytest.raises(StoreUnavailable, match="full"):
        decide(store, *map(str, range(1000)))
    assert count(store) == 1
    assert decide(store, "b")[0].seq == 2


def test_a_file_that_stays_locked_is_unavailable(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "PATIENCE", 0.05)
    other = apsw.Connection(store._path)
    other.execute("BEGIN IMMEDIATE")
    impatient = SQLiteStore(store._path)
    with pytest.raises(StoreUnavailable, match="locked"):
        decide(impatient, "a")
    assert count(impatient) == 0
    other.execute("ROLLBACK")
    assert decide(impatient, "a")[0].seq == 1
    impatient.close()
    other.close()


def places(sql: str) -> int:
    """How many values a statement takes."""
    return max(map(int, re.findall(r"\?(\d)", sql)), default=sql.count("?"))


def test_nothing_scans_the_journal(store: SQLiteStore) -> None:
    write(store, ("catalogue", None, None), ("decision", "a", None))
    asked: list[str] = []
    count(store)
    store._file.readers[0].exec_trace = lambda cursor, sql, values: asked.append(sql) or True
    with store.view("home") as view:
        view.catalogue()
        list(view.entries(after=1))
        view.bodies(["a"])
        view.bodies_of([0])
        view.linked(1)
        view.pending()
        view.pending(before=9)
        view.pending(before=9, limit=0)
        view.n_pending()
        view.snapshot()
    store._file.readers[0].exec_trace = None
    selects = [sql for sql in asked if sql.strip().startswith("SELECT")]
    assert len(selects) == 13
    for sql in selects:
        plan = [row[-1] for row in store._file.readers[0].execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * places(sql))]
        assert not [line for line in plan if line.startswith("SCAN")], sql
        assert "TEMP B-TREE" not in str(plan), sql


def test_old_versions_are_refused() -> None:
    check_version("3.51.3")
    check_version("3.100.0")
    for version in ("3.51.2", "3.40.1", "3.9.9"):
        with pytest.raises(ValueError, match=r"too old: 3\.51\.3"):
            check_version(version)


MOUNTS = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:30 / /home rw - nfs4 server:/home rw
31 27 0:31 / /home/me/my\040disk rw master:3 - xfs /dev/vdb rw
32 27 0:32 / /covered rw - cifs //server/share rw
33 27 0:33 / /covered rw - ext4 /dev/vdc rw
""".strip()


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/homes", "ext4"),
        ("/home", "nfs4"),
        ("/home/me", "nfs4"),
        ("/home/me/my disk/a", "xfs"),
        ("/covered", "ext4"),
    ],
)
def test_the_mount_of_a_folder(folder: str, kind: str) -> None:
    assert file_system(folder, MOUNTS) == kind


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("30 27 0:30 / / rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(sqlite_place, "MOUNTS", mounts)
    with pytest.raises(ValueError, match=r"network file system \(nfs4\)"):
        SQLiteStore(tmp_path / "pool.db")
    assert not (tmp_path / "pool.db").exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        SQLiteStore(tmp_path / "missing" / "pool.db")


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database " * 1000)
    with pytest.raises(ValueError, match="not a SQLite file"):
        SQLiteStore(tmp_path / "text.db")
    with pytest.raises(ValueError, match="not a SQLite file"):
        SQLiteStore(tmp_path)


def test_the_database_of_something_else_is_refused(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE events (id)")
    other.close()
    with pytest.raises(ValueError, match="something else"):
        SQLiteStore(tmp_path / "other.db")


def test_tables_of_a_later_version_are_refused(store: SQLiteStore) -> None:
    assert store._file.writer is not None
    store._file.writer.execute("INSERT INTO migrations VALUES (999)")
    with pytest.raises(ValueError, match="version 999, made by a later statepool"):
        SQLiteStore(store._path)


def test_migrations_go_on_from_where_the_file_is(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(store, "a")
    known = sqlite.steps("sqlite")
    broken, mended = (999, "CREATE TABLE later (x); nonsense"), (999, "CREATE TABLE later (x)")
    monkeypatch.setattr(sqlite, "steps", lambda kind: [*known, broken])
    with pytest.raises(StoreUnavailable, match="syntax error"):
        SQLiteStore(store._path)
    monkeypatch.setattr(sqlite, "steps", lambda kind: [*known, mended])
    for _ in range(2):
        later = SQLiteStore(store._path)
        assert count(later) == 1
        assert later._file.writer is not None
        assert list(later._file.writer.execute("SELECT count(*) FROM later")) == [(0,)]
        later.close()
