"""A store in one SQLite file: WAL, every commit synced, one writer at a time; other processes may share the file."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import apsw

from statepool.live.errors import NoStore, OlderTables, StoreUnavailable
from statepool.live.events import Kind
from statepool.live.luck import number_of
from statepool.live.stores.archive import Archive, is_of
from statepool.live.stores.contents import LEFT_BEHIND, TABLES, Contents, refuse_unless_empty, select
from statepool.live.stores.migrations import steps
from statepool.live.stores.sql_view import COLUMNS, PIECE, SQLView
from statepool.live.stores.sqlite_file import (
    Connection,
    SQLiteFile,
    Synchronous,
    connect_to_look,
    copy_pages,
    errors,
    is_at_rest,
)
from statepool.live.stores.sqlite_people import SQLitePeople
from statepool.live.stores.sqlite_place import check_folder, check_version, keep_private
from statepool.live.stores.store import (
    NUMBERS,
    PROBE_BYTES,
    SILENT,
    Batch,
    Entry,
    Head,
    LaneRow,
    Overdue,
    Sealed,
    Standing,
    Standings,
    View,
    check_announced,
    check_gapless,
    check_replaced,
    entry_of_row,
    kind_of,
    runs_of,
)  # fmt: skip

CATALOGUE = """
    SELECT b.hash, e.seq, e.kind, e.ticket, e.play, e.body, e.hash
    FROM events AS e INDEXED BY events_catalogue LEFT JOIN events AS b ON b.pool = e.pool AND b.seq = e.seq - 1
    WHERE e.pool = ? AND e.kind = 7 AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?
"""

# Without statistics SQLite would read the whole pool, as the primary key begins with it too.
LOOK_UP = """
    SELECT kind, body FROM events INDEXED BY events_play WHERE pool = ?1 AND play = coalesce(
        (SELECT play FROM events INDEXED BY events_ticket WHERE pool = ?1 AND ticket = ?2 AND kind = 0), ?3)
    UNION ALL SELECT 6, body FROM events INDEXED BY events_ticket WHERE pool = ?1 AND ticket = ?2 AND kind = 6
    UNION ALL SELECT 0, body FROM lanes INDEXED BY lanes_ticket WHERE pool = ?1 AND ticket = ?2
"""

# The oldest is the first of an index: one look a pool, however many wait.
STANDINGS = """
    SELECT name, pending, CASE WHEN pending > 0 THEN (
        SELECT min(at) FROM pending INDEXED BY pending_at WHERE pending.pool = pools.id) END, seq, hash, plays, epoch
    FROM pools ORDER BY name
"""


class SQLiteView(SQLView):
    """One transaction of a connection; `over` once that has ended."""

    def __init__(self, connection: Connection, name: str, archive: Archive) -> None:
        self._connection, self._archive = connection, archive
        self.over = False
        rows = self._ask("SELECT id, sealed, seq, hash, plays, epoch FROM pools WHERE name = ?", name)
        if not rows:
            raise ValueError(f"this store has no pool {name!r}")
        self._pool: int = rows[0][0]
        self._n_sealed: int = rows[0][1]
        self._head = Head(*rows[0][2:])

    def _ask(self, sql: str, *values: Any) -> list[Any]:
        if self.over or not self._connection.is_ours:
            raise ValueError("this reading of the store has ended")
        with errors():
            return self._connection.execute(sql, values).fetchall()

    def _read(self, sql: str, *values: Any) -> list[Any]:
        return self._ask(sql.format(""), *values)

    def clock(self) -> int:
        return time.time_ns() // 1000

    def _tail_linked_catalogue(self, after: int, last: int) -> list[Any]:
        return self._ask(CATALOGUE, self._pool, after, last, PIECE)

    def _tail_entries_of(self, number: int) -> list[Entry]:
        sql = f"SELECT {COLUMNS} FROM events INDEXED BY events_play WHERE pool = ? AND play = ?"
        return [entry_of_row(*row) for row in self._ask(sql, self._pool, number)]

    def _tail_bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        numbers = {ticket: number_of(ticket) for ticket in tickets}
        by_number = self._tail_bodies_of([number for number in numbers.values() if number is not None])
        known = {ticket: by_number.get(number, {}) for ticket, number in numbers.items() if number is not None}
        for ticket in numbers:
            if not is_of(ticket, known.get(ticket, {})):
                rows = self._ask(LOOK_UP, self._pool, ticket, numbers[ticket])
                known[ticket] = {kind_of(kind): body for kind, body in rows}
        return {ticket: found for ticket, found in known.items() if found}

    def _tail_bodies_of(self, numbers: Sequence[int]) -> dict[int, dict[Kind, bytes]]:
        sql = "SELECT play, kind, body FROM events INDEXED BY events_play WHERE pool = ? AND play BETWEEN ? AND ?"
        known: dict[int, dict[Kind, bytes]] = {}
        for first, last in runs_of(numbers):
            for number, kind, body in self._ask(sql, self._pool, first, last):
                known.setdefault(number, {})[kind_of(kind)] = body
        return known

    def pending(self, before: int | None = None, limit: int | None = None) -> list[Overdue]:
        sql = "SELECT play, ticket, at FROM pending"
        most = -1 if limit is None else limit
        if before is None:
            rows = self._ask(f"{sql} WHERE pool = ? ORDER BY play LIMIT ?", self._pool, most)
            return [Overdue(*row) for row in rows]
        # By time as long as few are overdue; else the first by number are near the start of the table.
        by_time = f"{sql} INDEXED BY pending_at WHERE pool = ? AND at < ? LIMIT ?"
        rows = self._ask(by_time, self._pool, before, most if limit is None else limit + 1)
        if limit is not None and len(rows) > limit:
            by_number = f"{sql} NOT INDEXED WHERE pool = ? AND at < ? ORDER BY play LIMIT ?"
            rows = self._ask(by_number, self._pool, before, limit)
        return sorted(Overdue(*row) for row in rows)

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
            with errors():
                work()
        except Exception as error:
            self.failure = error
            raise

    def append(self, entries: Sequence[Entry], head: Head, opened: Sequence[Overdue] = ()) -> None:
        check_gapless(self._head, entries, head, opened)
        self._write(lambda: self._append(entries, head, opened))
        self._head = head

    def _append(self, entries: Sequence[Entry], head: Head, opened: Sequence[Overdue]) -> None:
        ask, pool = self._connection.execute, self._pool
        rows = [(each.seq, NUMBERS[each.kind], each.number, each.ticket, each.body, each.hash) for each in entries]
        # The pool's number is written out so that a row binds as it is.
        self._connection.executemany(f"INSERT INTO events VALUES ({pool}, ?, ?, ?, ?, ?, ?)", rows)
        self._connection.executemany(f"INSERT INTO pending VALUES ({pool}, ?, ?, ?)", opened)
        ended = [(pool, entry.number) for entry in entries if entry.kind in ("outcome", "expiry")]
        before = self._connection.total_changes()
        self._connection.executemany("DELETE FROM pending WHERE pool = ? AND play = ?", ended)
        change = len(opened) - (self._connection.total_changes() - before)
        sql = "UPDATE pools SET seq = ?, hash = ?, plays = ?, epoch = ?, pending = pending + ? WHERE id = ?"
        ask(sql, (*head, change, pool))

    def save_snapshot(self, seq: int, blob: bytes) -> None:
        values = (self._pool, seq, blob)
        self._write(lambda: self._connection.execute("REPLACE INTO snapshots VALUES (?, ?, ?)", values))

    def seal(self, segment: Sealed) -> None:
        self._check_next(segment)
        self._fasten(segment.digest)
        values = (self._pool, *segment)
        self._write(lambda: self._connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", values))
        self._write(
            lambda: self._connection.execute("UPDATE pools SET sealed = ? WHERE id = ?", (segment.last, self._pool))
        )
        self._n_sealed = segment.last

    def announce(self, digest: str, place: str) -> None:
        self._loosen(digest, place, self.clock())

    def _loosen(self, *values: Any) -> None:
        sql = "INSERT INTO loose VALUES (?, ?, ?, ?)"
        self._write(lambda: self._connection.execute(sql, (self._pool, *values)))

    def _fasten(self, digest: str) -> None:
        sql, before = "DELETE FROM loose WHERE pool = ? AND digest = ? AND at > 0", self._connection.total_changes()
        self._write(lambda: self._connection.execute(sql, (self._pool, digest)))
        check_announced(digest, self._connection.total_changes() - before)

    def condemn(self, digests: Sequence[str]) -> None:
        sql = "UPDATE loose SET at = -abs(at) WHERE pool = ? AND digest = ?"
        self._write(lambda: self._connection.executemany(sql, [(self._pool, digest) for digest in digests]))

    def drop_loose(self, digests: Sequence[str]) -> None:
        sql = "DELETE FROM loose WHERE pool = ? AND digest = ?"
        self._write(lambda: self._connection.executemany(sql, [(self._pool, digest) for digest in digests]))

    def erase(self, changed: Sequence[Entry]) -> None:
        """What was there is overwritten with zeros (`secure_delete`); the WAL forgets when it is begun anew."""
        self._write(lambda: self._erase(changed))

    def _erase(self, changed: Sequence[Entry]) -> None:
        ask, pool = self._connection.execute, self._pool
        for entry in changed:
            sql = "UPDATE events SET ticket = ?, body = ? WHERE pool = ? AND seq = ?"
            ask(sql, (entry.ticket, entry.body, pool, entry.seq))
            if entry.kind == "decision":
                ask("UPDATE pending SET ticket = ? WHERE pool = ? AND play = ?", (entry.ticket, pool, entry.number))

    def replace_segment(self, old: Sealed, new: Sealed) -> None:
        sql = "UPDATE segments SET digest = ?, place = ?, size = ? WHERE pool = ? AND first = ? AND digest = ?"
        values = (new.digest, new.place, new.size, self._pool, old.first, old.digest)
        before = self._connection.total_changes()
        self._write(lambda: self._connection.execute(sql, values))
        check_replaced(old, self._connection.total_changes() - before)
        if new.digest != old.digest:
            self._fasten(new.digest)
            self._loosen(old.digest, old.place, -self.clock())

    def drop_sealed(self, limit: int) -> int:
        first = self._ask("SELECT min(seq) FROM events WHERE pool = ?", self._pool)[0][0]
        if first is None or first > self._n_sealed:
            return 0
        last, before = min(first + limit - 1, self._n_sealed), self._connection.total_changes()
        sql = "DELETE FROM events WHERE pool = ? AND seq <= ?"
        self._write(lambda: self._connection.execute(sql, (self._pool, last)))
        return self._connection.total_changes() - before

    def lane_rows(self) -> list[LaneRow]:
        return super().lane_rows() if self.n_in_lanes() else []

    def take_over(self, last: Sequence[LaneRow]) -> None:
        self._write(lambda: self._take_over(last))

    def _take_over(self, last: Sequence[LaneRow]) -> None:
        ends = [(self._pool, row.lane, row.place) for row in last]
        self._connection.executemany("DELETE FROM lanes WHERE pool = ? AND lane = ? AND place < ?", ends)
        sql = (
            f"UPDATE lanes SET ticket = NULL, body = x'', at = {self.clock()} WHERE pool = ? AND lane = ? AND place = ?"
        )
        self._connection.executemany(sql, ends)
        sql = "DELETE FROM lanes WHERE pool = ? AND ticket IS NULL AND at < ?"
        self._connection.execute(sql, (self._pool, self.clock() - SILENT))


class SQLiteStore(SQLitePeople):
    """`synchronous` below FULL loses acknowledged batches when the power fails; `vfs` is for tests of that.

    `to_read`: neither the file nor its tables are made or changed; nothing may be written to a file at rest.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        synchronous: Synchronous = "FULL",
        vfs: str | None = None,
        create: bool = True,
        to_read: bool = False,
    ) -> None:
        check_version(apsw.sqlite_lib_version())
        self._path = os.path.realpath(path)
        check_folder(os.path.dirname(self._path))
        # The file may be somebody else's: nothing is changed before it was looked at.
        found, newest = version_of(self._path), steps("sqlite")[-1][0]
        if not found and (to_read or not create):
            raise NoStore(f"{self._path} holds no pools of statepool, expected a file that does: check the path")
        if to_read and found < newest:
            raise OlderTables(self._path, found, newest, "make a backup (`statepool backup` copies them as they are)")
        if not to_read:
            keep_private(self._path)
        self._file = SQLiteFile(self._path, synchronous, vfs, at_rest=to_read and is_at_rest(self._path))
        self._archive = Archive()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        with _opening(self._path):
            if self._file.at_rest:
                return
            self._file.open()
            self._migrate()

    def _migrate(self) -> None:
        todo = steps("sqlite")
        assert self._file.writer is not None
        if _version(self._file.writer, self._path) == todo[-1][0]:
            return
        with self._file.writing() as connection:
            done = _version(connection, self._path)
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY) STRICT")
            for number, sql in todo:
                if number > done:
                    connection.execute(sql)
                    connection.execute("INSERT INTO migrations VALUES (?)", (number,))

    @contextmanager
    def batch(self, name: str) -> Iterator[Batch]:
        with self._file.writing() as connection:
            batch = SQLiteBatch(connection, name, self._archive)
            try:
                yield batch
            finally:
                batch.over = True
            if batch.failure is not None:
                raise batch.failure

    @contextmanager
    def view(self, name: str) -> Iterator[View]:
        with self._file.reading() as connection:
            view = SQLiteView(connection, name, self._archive)
            try:
                yield view
            finally:
                view.over = True

    def pools(self) -> list[str]:
        with self._file.reading() as connection, errors():
            return sorted(name for (name,) in connection.execute("SELECT name FROM pools"))

    def standings(self) -> Standings:
        with self._file.reading() as connection, errors():
            rows: list[Any] = connection.execute(STANDINGS).fetchall()
        found = {name: Standing(Head(*head), pending, oldest) for name, pending, oldest, *head in rows}
        return Standings(time.time_ns() // 1000, found)

    def has(self, name: str) -> bool:
        with self._file.reading() as connection, errors():
            return bool(connection.execute("SELECT count(*) FROM pools WHERE name = ?", (name,)).get)

    def ensure(self, name: str) -> None:
        if self.has(name):
            return
        with self._file.writing() as connection, errors():
            connection.execute("INSERT INTO pools (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))

    def probe(self) -> None:
        with self._file.writing() as connection, errors():
            connection.execute("REPLACE INTO probes VALUES (1, ?)", (os.urandom(PROBE_BYTES),))

    def copy_to(self, path: str) -> None:
        _copy(self._file, path)

    @contextmanager
    def contents(self) -> Iterator[Contents]:
        with self._file.reading() as connection:
            yield Contents(lambda table: iter(connection.execute(select(table))))

    def fill(self, contents: Contents) -> None:
        with self._file.writing() as connection, errors():
            refuse_unless_empty(
                connection.execute("SELECT (SELECT count(*) FROM pools) + (SELECT count(*) FROM keys)").get
            )
            for table, columns in TABLES.items():
                sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
                connection.executemany(sql, contents.rows(table))

    def close(self) -> None:
        self._file.close()


def copy_as_it_is(path: str, to: str) -> None:
    """A store whose tables may be of an earlier release, which they stay, there and in the copy."""
    file = SQLiteFile(path, "FULL", None, at_rest=is_at_rest(path))
    try:
        _copy(file, to)
    finally:
        file.close()


def _copy(file: SQLiteFile, to: str) -> None:
    """By SQLite's own backup."""
    with file.reading() as source, errors():
        copy_pages(source, to)
    with closing(apsw.Connection(to)) as target:
        tables = {name for (name,) in target.execute("SELECT name FROM sqlite_schema")}
        for table in tables.intersection(LEFT_BEHIND):
            target.execute(f"DELETE FROM {table}")


def is_of_this_release(path: str) -> bool:
    return version_of(path) == steps("sqlite")[-1][0]


def version_of(path: str) -> int:
    """The version of the tables in a file, 0 where there are none; the file stays as it is."""
    if not os.path.exists(path):
        return 0
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not a SQLite file")
    with _opening(path):
        try:
            return _look(path)
        except apsw.Error:  # somebody may have written meanwhile, and then there is a WAL
            return _look(path)


def _look(path: str) -> int:
    with closing(connect_to_look(path)) as connection:
        return _version(connection, path)


def _version(connection: Connection, path: str) -> int:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if not tables:
        return 0
    if not {"migrations", "pools"} <= tables:
        raise ValueError(f"{path} is a SQLite database of something else, expected one that statepool made")
    version: int = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").get
    newest = steps("sqlite")[-1][0]
    if version > newest:
        raise ValueError(f"{path} has tables of version {version}, made by a later statepool; known: {newest}")
    return version


@contextmanager
def _opening(path: str) -> Iterator[None]:
    try:
        yield
    except apsw.NotADBError as error:
        raise ValueError(f"{path} is not a SQLite file: {error}") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        raise ValueError(
            f"{path} cannot be opened ({error}), expected a file and a folder that may be written: copy it to one"
        ) from error
    except apsw.Error as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error}") from error
