"""A store in PostgreSQL, shared by processes and machines: a batch is a transaction under the pool's advisory lock.

A batch takes two round trips: (begin, lock, head), then (all that was appended, commit, flush). The commit does not
wait for the disk, so the lock is free at once; the flush that follows waits until the log is on disk up to there, and
only then does the batch return. Many processes share one flush. What one of them has read of another's batch is flushed
before or with its own, since the log is flushed in order. The tables are in the schema `statepool`.
"""

import hashlib
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from statepool.live.errors import Conflict, StoreUnavailable
from statepool.live.events import Kind
from statepool.live.stores.migrations import steps
from statepool.live.stores.store import Batch, Entry, Head, Overdue, Store, View, check_gapless, check_linked

# psycopg warns on standard error when a server dies; who calls us is told by an exception.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

PIECE = 1000  # events read at once
IDLE_READERS = 4
# A server that is gone is noticed in seconds and not in hours; the URL may say otherwise.
DEFAULTS = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 30_000}
COLUMNS = "seq, kind, ticket, play, at, body, hash"

CHECKS = "SELECT current_setting('fsync'), current_setting('full_page_writes')"
# A writer that hangs with the lock in its hands is cut off, and who waits for it gives up later than that.
SESSION = """
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';
    SET lock_timeout = '60s';
"""
WRITER = f"{SESSION} SET idle_in_transaction_session_timeout = '30s'"

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
QUICK = "SET LOCAL synchronous_commit = off"
# A transaction of its own that writes to the log and, unlike the batch's, waits for the disk.
FLUSH = "SELECT pg_logical_emit_message(true, 'statepool', '')"

# One look at the tickets' index each: `ticket = ANY(…)` reads the whole pool until the table has been analysed.
LOOK_UP = """
    SELECT found.* FROM unnest(%s::text[]) AS wanted (ticket) CROSS JOIN LATERAL (
        SELECT ticket, kind, body FROM statepool.events WHERE pool = %s AND ticket = wanted.ticket OFFSET 0
    ) AS found
"""

# One statement whatever the number of events: they come as one JSON array, which costs the client least.
# What ends in the batch it began in never becomes pending: no part of the statement sees what another one wrote.
APPEND = """
    WITH new AS (
        INSERT INTO statepool.events (pool, seq, kind, ticket, play, at, body, hash)
        SELECT %(pool)s, (e ->> 0)::bigint, e ->> 1, e ->> 2, (e ->> 3)::bigint, (e ->> 4)::bigint,
               decode(e ->> 5, 'base64'), decode(e ->> 6, 'base64')
        FROM json_array_elements(%(entries)s::json) AS e
        RETURNING kind, ticket, play, at
    ), ended AS (
        SELECT play FROM new WHERE kind IN ('outcome', 'expiry')
    ), opened AS (
        INSERT INTO statepool.pending (pool, play, ticket, at)
        SELECT %(pool)s, play, ticket, at FROM new
        WHERE kind = 'decision' AND NOT EXISTS (SELECT FROM ended WHERE ended.play = new.play)
        RETURNING 1
    ), closed AS (
        DELETE FROM statepool.pending USING ended
        WHERE pending.pool = %(pool)s AND pending.play = ended.play
        RETURNING 1
    )
    UPDATE statepool.pools
    SET seq = %(seq)s, hash = %(hash)s, plays = %(plays)s, epoch = %(epoch)s,
        pending = pending + (SELECT count(*) FROM opened) - (SELECT count(*) FROM closed)
    WHERE id = %(pool)s
"""

Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[Any, ...]
Statement = tuple[str, dict[str, Any]]


@contextmanager
def _errors() -> Iterator[None]:
    """PostgreSQL's errors as the package's."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "events_ticket":
            raise Conflict("this ticket already has an event of this kind: nothing of the batch was kept") from error
        raise StoreUnavailable(f"another writer was in the way: {_line(error)}") from error
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise ValueError(f"PostgreSQL refused an event: {_line(error)}") from error
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL did not answer: {_line(error)}") from error


def _line(error: psycopg.Error) -> str:
    return str(error).partition("\n")[0]


class PostgresView(View):
    """One transaction of a connection; `over` once that has ended."""

    def __init__(self, connection: Connection, pool: int, head: Head) -> None:
        self._connection = connection
        self._pool = pool
        self._head = head
        self.over = False

    def _ask(self, sql: str, *values: Any) -> list[Row]:
        if self.over:
            raise ValueError("this reading of the store has ended")
        with _errors():
            return self._connection.execute(sql, values, binary=True).fetchall()

    def head(self) -> Head:
        return self._head

    def entries(self, after: int = 0, without: Kind | None = None) -> Iterator[Entry]:
        sql = (
            f"SELECT {COLUMNS} FROM statepool.events WHERE pool = %s AND seq > %s AND kind <> %s ORDER BY seq LIMIT %s"
        )
        while rows := self._ask(sql, self._pool, after, without or "", PIECE):
            yield from map(Entry._make, rows)
            after = rows[-1][0]

    def catalogue(self) -> list[int]:
        sql = "SELECT seq FROM statepool.events WHERE pool = %s AND kind = 'catalogue' ORDER BY seq"
        return [seq for (seq,) in self._ask(sql, self._pool)]

    def linked(self, seq: int) -> tuple[bytes, Entry]:
        sql = f"SELECT {COLUMNS} FROM statepool.events WHERE pool = %s AND seq BETWEEN %s AND %s ORDER BY seq"
        return check_linked(seq, self._ask(sql, self._pool, seq - 1, seq))

    def bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        known: dict[str, dict[Kind, bytes]] = {}
        for ticket, kind, body in self._ask(LOOK_UP, list(tickets), self._pool) if tickets else []:
            known.setdefault(ticket, {})[kind] = body
        return known

    def pending(self, before: int | None = None, limit: int | None = None) -> list[Overdue]:
        sql = "SELECT play, ticket, at FROM statepool.pending WHERE pool = %s"
        if before is None:
            return [Overdue(*row) for row in self._ask(f"{sql} ORDER BY play LIMIT %s", self._pool, limit)]
        # By time as long as few are overdue; else the first by play are near the start of the table.
        by_time = f"{sql} AND at < %s ORDER BY at LIMIT %s"
        rows = self._ask(by_time, self._pool, before, None if limit is None else limit + 1)
        if limit is not None and len(rows) > limit:
            by_play = f"{sql} AND at + 0 < %s ORDER BY play LIMIT %s"  # + 0: not by the index of times, and a sort
            rows = self._ask(by_play, self._pool, before, limit)
        return sorted(Overdue(*row) for row in rows)

    def n_pending(self) -> int:
        return self._ask("SELECT pending FROM statepool.pools WHERE id = %s", self._pool)[0][0]

    def snapshot(self) -> tuple[int, bytes] | None:
        rows = self._ask("SELECT seq, body FROM statepool.snapshots WHERE pool = %s", self._pool)
        return (rows[0][0], rows[0][1]) if rows else None

    def damage(self) -> list[str]:
        """Nothing to ask; but from here on this reading goes by the indexes, as it would if the tables were large."""
        with _errors():
            self._connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        return []


class PostgresBatch(PostgresView, Batch):
    """The writer's transaction: what is written waits in `_todo` until something is read, or until the commit.

    Once a statement has failed, nothing of the batch can be kept (`failure`).
    """

    def __init__(self, connection: Connection, pool: int, head: Head) -> None:
        super().__init__(connection, pool, head)
        self._todo: list[Statement] = []
        self.failure: Exception | None = None

    def _ask(self, sql: str, *values: Any) -> list[Row]:
        try:
            if self._todo:
                self._send()
            return super()._ask(sql, *values)
        except Exception as error:
            self.failure = self.failure or error
            raise

    def _send(self, *last: Statement) -> None:
        todo, self._todo = [*self._todo, *last], []
        with _errors(), self._connection.pipeline():
            cursors = [self._connection.execute(sql, values) for sql, values in todo]
        # COMMIT after a statement that failed is answered with ROLLBACK, and is no error to PostgreSQL.
        if last and cursors[-len(last)].statusmessage != "COMMIT":
            raise StoreUnavailable("PostgreSQL rolled the batch back")

    def commit(self) -> None:
        if self.failure is not None:
            raise self.failure
        self._send(("COMMIT", {}), (FLUSH, {}))

    def append(self, entries: Sequence[Entry], head: Head) -> None:
        check_gapless(self._head, entries, head)
        text = msgspec.json.encode(entries).decode()
        self._write(APPEND, entries=text, **head._asdict())
        self._head = head

    def save_snapshot(self, seq: int, blob: bytes) -> None:
        sql = """INSERT INTO statepool.snapshots (pool, seq, body) VALUES (%(pool)s, %(seq)s, %(body)s)
                 ON CONFLICT (pool) DO UPDATE SET seq = excluded.seq, body = excluded.body"""
        self._write(sql, seq=seq, body=blob)

    def _write(self, sql: str, **values: Any) -> None:
        if self.over:
            raise ValueError("this batch has ended")
        self._todo.append((sql, {"pool": self._pool, **values}))


class PostgresStore(Store):
    """One connection writes, one batch at a time; readings have connections of their own."""

    def __init__(self, url: str) -> None:
        self._target = _target(url)
        self._lock = threading.Lock()  # one batch of this process on its connection; the advisory lock: one of all
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._closed = False
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def _connect(self, settings: LiteralString) -> Connection:
        connection = psycopg.connect(self._target, autocommit=True)
        try:
            fsync, full_pages = connection.execute(CHECKS).fetchone() or ("", "")
            if "off" in (fsync, full_pages):
                name = "fsync" if fsync == "off" else "full_page_writes"
                raise ValueError(f"this PostgreSQL server runs with {name}=off and loses what it acknowledged")
            connection.execute(settings)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self) -> None:
        todo = steps("postgres")
        with self._reading() as connection, _errors():
            if _version(connection, todo[-1][0]) == todo[-1][0]:
                return
        with self._writing() as connection, _errors():
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_key("migrations"),))
            if not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'statepool'").fetchall():
                connection.execute("CREATE SCHEMA statepool")
            connection.execute("CREATE TABLE IF NOT EXISTS statepool.migrations (version integer PRIMARY KEY)")
            done = _version(connection, todo[-1][0])
            for number, sql in todo:
                if number > done:
                    connection.execute(sql)
                    connection.execute("INSERT INTO statepool.migrations VALUES (%s)", (number,))
            connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """The connection of batches, given back outside of any transaction, or closed if it is in doubt."""
        with self._lock:
            self._check_open()
            try:
                if self._writer is None:
                    with _errors():
                        self._writer = self._connect(WRITER)
                    self.connections += 1
                yield self._writer
            finally:
                self._writer = _rest(self._writer)
                if self._writer is None:
                    self._drop_readers()  # the server was away: they are lost too

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection of one's own, so that a long reading holds up nobody."""
        self._check_open()
        with _errors():
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect(SESSION)
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        if _rest(connection) is None:
            self._drop_readers()
        elif self._closed or len(self._readers) >= IDLE_READERS:
            connection.close()
        else:
            self._readers.append(connection)

    def _drop_readers(self) -> None:
        with suppress(IndexError):
            while True:
                self._readers.pop().close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    def _take(self, connection: Connection, name: str) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_key(f"pool {name}"),))

    @contextmanager
    def batch(self, name: str) -> Iterator[Batch]:
        with self._writing() as connection:
            with _errors(), connection.pipeline():
                connection.execute(BEGIN)
                connection.execute(QUICK)
                self._take(connection, name)
                # A statement of its own: it sees what was committed before the lock was granted.
                cursor = _select_pool(connection, name)
            batch = PostgresBatch(connection, *_pool(cursor, name))
            try:
                yield batch
                batch.commit()
            finally:
                batch.over = True

    @contextmanager
    def view(self, name: str) -> Iterator[View]:
        with self._reading() as connection:
            with _errors(), connection.pipeline():
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor = _select_pool(connection, name)
            view = PostgresView(connection, *_pool(cursor, name))
            try:
                yield view
            finally:
                view.over = True

    def pools(self) -> list[str]:
        with self._reading() as connection, _errors():
            return sorted(name for (name,) in connection.execute("SELECT name FROM statepool.pools"))

    def ensure(self, name: str) -> None:
        if name in self.pools():
            return
        with self._writing() as connection, _errors():
            connection.execute("INSERT INTO statepool.pools (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))

    def keys(self) -> list[tuple[str, str, str]]:
        with self._reading() as connection, _errors():
            rows = connection.execute("SELECT name, hash, role FROM statepool.keys").fetchall()
            return sorted((name, hash_, role) for name, hash_, role in rows)

    def add_key(self, name: str, digest: str, role: str) -> None:
        sql = "INSERT INTO statepool.keys (name, hash, role) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        with self._writing() as connection, _errors():
            if not connection.execute(sql, (name, digest, role)).rowcount:
                raise ValueError(f"there is a key named {name!r} already")

    def drop_key(self, name: str) -> bool:
        with self._writing() as connection, _errors():
            return connection.execute("DELETE FROM statepool.keys WHERE name = %s", (name,)).rowcount > 0

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop_readers()
            if self._writer is not None:
                self._writer.close()
            self._writer = None


def _target(url: str) -> str:
    """The URL with our defaults; what libpq says of a bad one may quote the password, so it is not passed on."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        given = {"host": "@"}
    if "@" in f"{given.get('host')}{given.get('dbname')}" or not str(given.get("port", "0")).replace(",", "").isdigit():
        raise ValueError(
            "this PostgreSQL URL cannot be read: expected postgresql://user:password@host:port/database, "
            "with special characters of the password percent-encoded"
        )
    return make_conninfo(url, **{name: value for name, value in DEFAULTS.items() if name not in given})


def _key(of: str) -> int:
    """The number of an advisory lock; two names that share one would only wait for each other."""
    return int.from_bytes(hashlib.blake2b(f"statepool {of}".encode(), digest_size=8).digest(), signed=True)


def _rest(connection: Connection | None) -> Connection | None:
    """The connection outside of any transaction, or none if that cannot be had."""
    if connection is None or connection.info.transaction_status == TransactionStatus.IDLE:
        return connection
    if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
            return connection
    connection.close()
    return None


def _select_pool(connection: Connection, name: str) -> psycopg.Cursor[Row]:
    sql = "SELECT id, seq, hash, plays, epoch FROM statepool.pools WHERE name = %s"
    return connection.execute(sql, (name,), binary=True)


def _pool(cursor: psycopg.Cursor[Row], name: str) -> tuple[int, Head]:
    row = cursor.fetchone()
    if row is None:
        raise ValueError(f"this store has no pool {name!r}")
    return row[0], Head(*row[1:])


def _version(connection: Connection, newest: int) -> int:
    if connection.execute("SELECT to_regclass('statepool.migrations')").fetchone() == (None,):
        return 0
    version = (connection.execute("SELECT coalesce(max(version), 0) FROM statepool.migrations").fetchone() or (0,))[0]
    if version > newest:
        raise ValueError(f"this database has tables of version {version}, made by a later statepool; known: {newest}")
    return version
