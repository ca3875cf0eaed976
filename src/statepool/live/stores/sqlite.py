"""A store in one SQLite file: WAL, every commit synced, one writer at a time; other processes may share the file."""

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import apsw

from statepool.live.errors import Conflict, StoreUnavailable
from statepool.live.events import Kind
from statepool.live.stores.migrations import steps
from statepool.live.stores.store import Batch, Entry, Head, Overdue, Store, View, check_gapless, check_linked

OLDEST = (3, 51, 3)  # before it, a checkpoint beside a writer could corrupt a WAL database
NETWORKS = (  # file systems whose locks and shared memory do not hold between machines
    *("afs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gfs2", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2"),
    *("smb2", "smb3", "smbfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
)
MOUNTS = Path("/proc/self/mountinfo")
PATIENCE = 60.0  # seconds that a batch waits for other processes
PIECE = 1000  # events read at once
IDLE_READERS = 4
COLUMNS = "seq, kind, ticket, play, at, body, hash"

Synchronous = Literal["OFF", "NORMAL", "FULL", "EXTRA"]


@contextmanager
def _errors() -> Iterator[None]:
    """SQLite's errors as the package's."""
    try:
        yield
    except apsw.ConstraintError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_UNIQUE:
            raise Conflict("this ticket already has an event of this kind: nothing of the batch was kept") from error
        raise ValueError(f"SQLite refused an event: {error}") from error
    except apsw.BusyError as error:
        raise StoreUnavailable(f"other processes kept the SQLite file locked for {PATIENCE:.0f} seconds") from error
    except apsw.Error as error:
        raise StoreUnavailable(f"the SQLite file cannot be used at present: {error}") from error


class SQLiteView(View):
    """One transaction of a connection; `over` once that has ended."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        self._connection = connection
        self.over = False
        rows = self._ask("SELECT id, seq, hash, plays, epoch FROM pools WHERE name = ?", name)
        if not rows:
            raise ValueError(f"this store has no pool {name!r}")
        self._pool: int = rows[0][0]
        self._head = Head(*rows[0][1:])

    def _ask(self, sql: str, *values: Any) -> list[Any]:
        if self.over:
            raise ValueError("this reading of the store has ended")
        with _errors():
            return self._connection.execute(sql, values).fetchall()

    def head(self) -> Head:
        return self._head

    def entries(self, after: int = 0, without: Kind | None = None) -> Iterator[Entry]:
        sql = f"SELECT {COLUMNS} FROM events WHERE pool = ? AND seq > ? AND kind IS NOT ? ORDER BY seq LIMIT ?"
        while rows := self._ask(sql, self._pool, after, without, PIECE):
            yield from map(Entry._make, rows)
            after = rows[-1][0]

    def catalogue(self) -> list[int]:
        sql = "SELECT seq FROM events WHERE pool = ? AND kind = 'catalogue' ORDER BY seq"
        return [seq for (seq,) in self._ask(sql, self._pool)]

    def linked(self, seq: int) -> tuple[bytes, Entry]:
        sql = f"SELECT {COLUMNS} FROM events WHERE pool = ? AND seq BETWEEN ? AND ? ORDER BY seq"
        return check_linked(seq, self._ask(sql, self._pool, seq - 1, seq))

    def bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        known: dict[str, dict[Kind, bytes]] = {}
        # Without statistics SQLite would read the whole pool, as the primary key begins with it too.
        sql = "SELECT kind, body FROM events INDEXED BY events_ticket WHERE pool = ? AND ticket = ?"
        for ticket in tickets:
            rows = self._ask(sql, self._pool, ticket)
            if rows:
                known[ticket] = dict(rows)
        return known

    def pending(self, before: int | None = None, limit: int | None = None) -> list[Overdue]:
        sql = "SELECT play, ticket, at FROM pending"
        most = -1 if limit is None else limit
        if before is None:
            rows = self._ask(f"{sql} WHERE pool = ? ORDER BY play LIMIT ?", self._pool, most)
            return [Overdue(*row) for row in rows]
        # By time as long as few are overdue; else the first by play are near the start of the table.
        by_time = f"{sql} INDEXED BY pending_at WHERE pool = ? AND at < ? LIMIT ?"
        rows = self._ask(by_time, self._pool, before, most if limit is None else limit + 1)
        if limit is not None and len(rows) > limit:
            by_play = f"{sql} NOT INDEXED WHERE pool = ? AND at < ? ORDER BY play LIMIT ?"
            rows = self._ask(by_play, self._pool, before, limit)
        return sorted(Overdue(*row) for row in rows)

    def n_pending(self) -> int:
        return self._ask("SELECT pending FROM pools WHERE id = ?", self._pool)[0][0]

    def snapshot(self) -> tuple[int, bytes] | None:
        rows = self._ask("SELECT seq, body FROM snapshots WHERE pool = ?", self._pool)
        return rows[0] if rows else None

    def damage(self) -> list[str]:
        found = [line for (line,) in self._ask("PRAGMA integrity_check")]
        return [] if found == ["ok"] else [f"SQLite finds: {line}" for line in found]


class SQLiteBatch(SQLiteView, Batch):
    """The writer's transaction; once a statement has failed, nothing of it can be kept (`failure`)."""

    failure: Exception | None = None

    def _write(self, work: Callable[[], Any]) -> None:
        if self.over:
            raise ValueError("this batch has ended")
        try:
            with _errors():
                work()
        except Exception as error:
            self.failure = error
            raise

    def append(self, entries: Sequence[Entry], head: Head) -> None:
        check_gapless(self._head, entries, head)
        self._write(lambda: self._append(entries, head, head.plays - self._head.plays))
        self._head = head

    def _append(self, entries: Sequence[Entry], head: Head, opened: int) -> None:
        ask, pool, last = self._connection.execute, self._pool, self._head.seq
        # The pool's number is written out so that an entry binds as it is.
        self._connection.executemany(f"INSERT INTO events VALUES ({pool}, ?, ?, ?, ?, ?, ?, ?)", entries)
        if opened:
            sql = "SELECT pool, play, ticket, at FROM events WHERE pool = ? AND seq > ? AND kind = 'decision'"
            ask(f"INSERT INTO pending {sql}", (pool, last))
        ended = [(pool, entry.play) for entry in entries if entry.kind in ("outcome", "expiry")]
        before = self._connection.total_changes()
        self._connection.executemany("DELETE FROM pending WHERE pool = ? AND play = ?", ended)
        change = opened - (self._connection.total_changes() - before)
        sql = "UPDATE pools SET seq = ?, hash = ?, plays = ?, epoch = ?, pending = pending + ? WHERE id = ?"
        ask(sql, (*head, change, pool))

    def save_snapshot(self, seq: int, blob: bytes) -> None:
        values = (self._pool, seq, blob)
        self._write(lambda: self._connection.execute("REPLACE INTO snapshots VALUES (?, ?, ?)", values))


class SQLiteStore(Store):
    """`synchronous` below FULL loses acknowledged batches when the power fails; `vfs` is for tests of that."""

    def __init__(self, path: str | os.PathLike[str], synchronous: Synchronous = "FULL", vfs: str | None = None) -> None:
        check_version(apsw.sqlite_lib_version())
        self._path = os.path.realpath(path)
        self._synchronous = synchronous
        self._vfs = vfs
        self._lock = threading.Lock()  # one writer of this process; BEGIN IMMEDIATE: one of all
        self._writer: apsw.Connection | None = None
        self._readers: list[apsw.Connection] = []
        self._closed = False
        check_folder(os.path.dirname(self._path))
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            self._writer = self._connect()
            self._migrate(self._writer)
        except (apsw.CantOpenError, apsw.NotADBError, apsw.ReadOnlyError) as error:
            raise ValueError(f"{self._path} is not a SQLite file that can be written: {error}") from error
        except apsw.Error as error:
            raise StoreUnavailable(f"{self._path} cannot be opened: {error}") from error

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self._path, vfs=self._vfs)
        connection.set_busy_handler(_patience())
        _to_wal(connection)
        connection.pragma("synchronous", self._synchronous)
        connection.pragma("fullfsync", True)  # on macOS, a plain fsync leaves data in the drive's cache
        connection.pragma("checkpoint_fullfsync", True)
        return connection

    def _migrate(self, connection: apsw.Connection) -> None:
        todo = steps("sqlite")
        if self._version(connection, todo[-1][0]) == todo[-1][0]:
            return
        with self._writing() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY) STRICT")
            done = self._version(connection, todo[-1][0])
            for number, sql in todo:
                if number > done:
                    connection.execute(sql)
                    connection.execute("INSERT INTO migrations VALUES (?)", (number,))

    def _version(self, connection: apsw.Connection, newest: int) -> int:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        if not tables:
            return 0
        if "migrations" not in tables:
            raise ValueError(f"{self._path} is a SQLite database of something else")
        version = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").get
        if version > newest:
            raise ValueError(
                f"{self._path} has tables of version {version}, made by a later statepool; known: {newest}"
            )
        return version

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """A transaction of the one writer: committed at the end, rolled back on any exception."""
        with self._lock:
            self._check_open()
            try:
                with _errors():
                    self._writer = self._writer or self._connect()
                    self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                with _errors():
                    self._writer.execute("COMMIT")
            except BaseException as error:
                self._roll_back(anew=isinstance(error, StoreUnavailable))
                raise

    def _roll_back(self, anew: bool) -> None:
        """After an I/O error nothing that the connection remembers is to be trusted: the next batch opens `anew`."""
        if self._writer is None:
            return
        with suppress(apsw.Error):
            self._writer.execute("ROLLBACK")
        if anew or self._writer.in_transaction:
            self._writer.close(force=True)
            self._writer = None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    @contextmanager
    def batch(self, name: str) -> Iterator[Batch]:
        with self._writing() as connection:
            batch = SQLiteBatch(connection, name)
            try:
                yield batch
            finally:
                batch.over = True
            if batch.failure is not None:
                raise batch.failure

    @contextmanager
    def view(self, name: str) -> Iterator[View]:
        with self._reading() as connection:
            view = SQLiteView(connection, name)
            try:
                yield view
            finally:
                view.over = True

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """A connection of one's own, so that a long reading holds up nobody."""
        self._check_open()
        with _errors():
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect()
            connection.execute("BEGIN")
        try:
            yield connection
        finally:
            with suppress(apsw.Error):
                connection.execute("ROLLBACK")
            if self._closed or connection.in_transaction or len(self._readers) >= IDLE_READERS:
                connection.close(force=True)
            else:
                self._readers.append(connection)

    def pools(self) -> list[str]:
        with self._reading() as connection, _errors():
            return sorted(name for (name,) in connection.execute("SELECT name FROM pools"))

    def ensure(self, name: str) -> None:
        if name in self.pools():
            return
        with self._writing() as connection, _errors():
            connection.execute("INSERT INTO pools (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))

    def keys(self) -> list[tuple[str, str, str]]:
        with self._reading() as connection, _errors():
            return list(connection.execute("SELECT name, hash, role FROM keys ORDER BY name"))

    def add_key(self, name: str, digest: str, role: str) -> None:
        with self._writing() as connection, _errors():
            connection.execute("INSERT INTO keys VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (name, digest, role))
            if not connection.changes():
                raise ValueError(f"there is a key named {name!r} already")

    def drop_key(self, name: str) -> bool:
        with self._writing() as connection, _errors():
            connection.execute("DELETE FROM keys WHERE name = ?", (name,))
            return connection.changes() > 0

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._readers:
                self._readers.pop().close(force=True)
            if self._writer is not None:
                self._writer.close(force=True)
            self._writer = None


def _patience() -> Callable[[int], bool]:
    """Ask again often: SQLite's own timeout sleeps longer each time, and a busy process would starve the others."""
    deadline = 0.0

    def wait(tries: int) -> bool:
        nonlocal deadline
        if not tries:
            deadline = time.monotonic() + PATIENCE
        time.sleep(random.uniform(0.0002, 0.002))
        return time.monotonic() < deadline

    return wait


def _to_wal(connection: apsw.Connection) -> None:
    """Processes that open a new file together get in each other's way here, and the busy timeout does not apply."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise ValueError(f"this file cannot be a SQLite database in WAL mode (it stays in mode {mode!r})")


def check_version(version: str) -> None:
    """Refuse a SQLite that is too old."""
    if tuple(map(int, version.split("."))) < OLDEST:
        raise ValueError(f"SQLite {version} is too old: {'.'.join(map(str, OLDEST))} or later is needed")


def check_folder(folder: str) -> None:
    """Refuse a folder that is missing, or on another machine."""
    if not os.path.isdir(folder):
        raise ValueError(f"there is no folder {folder} for the SQLite file")
    kind = file_system(folder, MOUNTS.read_text()) if MOUNTS.exists() else ""
    if kind in NETWORKS:
        raise ValueError(f"{folder} is on a network file system ({kind}), where SQLite is not safe: use a local disk")


def file_system(folder: str, mounts: str) -> str:
    """The kind of the mount that holds a folder; the last one wins where mounts lie on each other."""
    best, kind = "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), left.split()[4])
        if len(point) >= len(best) and (folder + "/").startswith(point.rstrip("/") + "/"):
            best, kind = point, right.split()[0]
    return kind
