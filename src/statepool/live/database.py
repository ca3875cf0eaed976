"""One database of pools: connections, transactions, and the one background thread of a process.

Both databases run the same statements. What differs is here:

    SQLite       one writer at a time. Calls that wait for their turn share the next transaction and its fsync.
    PostgreSQL   every call has its own transaction; a call of one statement runs in autocommit, in one round trip.

Statements that are run all the time become text once (`prepare`).
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from statepool.live.errors import ReadOnly, StoreUnavailable
from statepool.live.tables import POSTGRES_SCHEMA, SCHEMA, Tables, tables_in, view_of

if TYPE_CHECKING:
    from statepool.live.pool import Pool

T = TypeVar("T")
logger = logging.getLogger("statepool.live")

BUSY_SECONDS = 60
"""How long a call waits for SQLite's write lock."""
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '20s'"
TICK = 0.5
"""Seconds between two rounds of the background thread."""
OF_EARLIER_RELEASES = ("events", "lanes", "pools", "snapshots")


class Database:
    """Tables of pools at a URL, shared by all pools of a process.

    Parameters
    ----------
    url : str
        `sqlite:///file.db` or `postgresql://user@host/database`.
    read_only : bool
        Make no tables and change nothing.

    Raises
    ------
    ValueError
        For a URL of another kind, or tables of another release.
    StoreUnavailable
        If the database does not answer.
    """

    def __init__(self, url: str, read_only: bool = False) -> None:
        self.url, self.read_only = _parse(url), read_only
        self.is_postgres = self.url.get_backend_name() == "postgresql"
        plain = self.url.set(drivername=self.url.get_backend_name())
        self.shown_url = plain.render_as_string(hide_password=True)
        self.schema = POSTGRES_SCHEMA if self.is_postgres else None
        self.tables: Tables = tables_in(self.schema)
        self.path = None if self.is_postgres else Path(str(self.url.database))
        if self.path is not None and read_only and not self.path.exists():
            raise ValueError(f"url: {self.shown_url} is not there, expected a file with pools")
        self.engine = _engine(self.url, self.is_postgres, read_only)
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        snapshots = {"isolation_level": "REPEATABLE READ"} if self.is_postgres else {}
        self._snapshots = self.engine.execution_options(**snapshots)
        self._turn = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._writer: sa.Connection | None = None
        self._file: int | None = None
        self._opening = threading.Lock()
        self._background = _Background()
        try:
            self._check_tables()
        except BaseException:
            self._disconnect()
            raise

    def insert(self, table: sa.Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return postgresql.insert(table) if self.is_postgres else sqlite.insert(table)

    def prepare(self, statement: sa.sql.expression.ClauseElement) -> str:
        """The text of a statement, with named parameters, for `exec_driver_sql`."""
        return str(statement.compile(dialect=self.engine.dialect))

    def now(self) -> sa.ColumnElement[float]:
        """The time of the database, or the parameter `at` where it is not None."""
        at: sa.BindParameter[float] = sa.bindparam("at", type_=sa.Double())
        if self.is_postgres:
            return sa.func.coalesce(at, sa.extract("epoch", sa.func.clock_timestamp()), type_=sa.Double())
        return at

    def time(self, connection: sa.Connection | None = None) -> float:
        """The time of the database, asked by a connection of the caller's or by another."""
        if not self.is_postgres:
            return time.time()
        if connection is None:
            with self.read() as connection:
                return self.time(connection)
        return float(connection.execute(sa.select(sa.extract("epoch", sa.func.clock_timestamp()))).scalar_one())

    @contextmanager
    def read(self, stream: bool = False) -> Iterator[sa.Connection]:
        """A connection that sees one moment of the database; `stream` reads large results in pieces."""
        if self._file is not None:
            self._check_file()
        with self._explained(), self._snapshots.connect() as connection:
            yield connection.execution_options(stream_results=True, yield_per=10_000) if stream else connection

    @contextmanager
    def autocommit(self) -> Iterator[sa.Connection]:
        """A connection without transactions, for statements that allow none."""
        with self._explained(), self._autocommit.connect() as connection:
            yield connection

    def write(self, job: Callable[[sa.Connection], T], one_statement: bool = False) -> T:
        """Run `job` in a transaction that is durable when this returns.

        On SQLite the transaction may be shared with other calls; a job that raises ValueError is undone alone. On
        PostgreSQL a lost connection is tried again once, so a job must be repeatable.
        """
        if self.read_only:
            raise ReadOnly(f"url: {self.shown_url} was opened for reading only")
        with self._explained():
            if not self.is_postgres:
                return self._run_in_turn(job)
            try:
                return self._run_alone(job, one_statement)
            except sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                return self._run_alone(job, one_statement)

    def _run_alone(self, job: Callable[[sa.Connection], T], one_statement: bool) -> T:
        if one_statement:
            with self._autocommit.connect() as connection:
                return job(connection)
        with self.engine.begin() as connection:
            return job(connection)

    def _run_in_turn(self, job: Callable[[sa.Connection], T]) -> T:
        """Group commit on SQLite: the call whose turn it is runs all calls that wait, in one transaction."""
        call = _Call(job)
        self._waiting.append(call)
        with self._turn:
            if not call.is_done:
                self._run_together([self._waiting.popleft() for _ in range(len(self._waiting))])
        if call.error is not None:
            raise call.error
        return call.answer

    def _run_together(self, calls: list[_Call]) -> None:
        try:
            if self._file is not None:
                self._check_file()
            connection = self._writing_connection()
            with connection.begin():
                for call in calls:
                    call.answer = call.job(connection)
        except ValueError as error:
            if len(calls) == 1:
                calls[0].error = error
            else:  # all were undone: now each alone, so that only one is refused
                for call in calls:
                    self._run_together([call])
        except BaseException as error:
            if self._writer is not None:
                self._writer.invalidate()
                self._writer.close()
                self._writer = None
            for call in calls:
                call.error = error
        for call in calls:
            call.is_done = True

    def _writing_connection(self) -> sa.Connection:
        if self._writer is None:
            self._writer = self.engine.connect().execution_options(writes=True)
        return self._writer

    def _check_file(self) -> None:
        """Connect again if another file has taken the place of SQLite's; raise if there is none.

        The file is held open, so that no other one gets its number while it is looked for.
        """
        try:
            found = os.stat(str(self.path))
        except OSError as error:
            raise StoreUnavailable(f"store: {self.shown_url} is not there any more ({error.strerror})") from None
        if self._file is not None and os.path.samestat(found, os.fstat(self._file)):
            return
        with self._opening:
            self._disconnect()
            self._file = os.open(str(self.path), os.O_RDONLY)

    def _disconnect(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.engine.dispose()
        if self._file is not None:  # only now: closing a file drops the locks that SQLite has on it
            os.close(self._file)
            self._file = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the driver says into one sentence."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            cause = " ".join(str(getattr(error, "orig", None) or error).split())
            raise StoreUnavailable(f"store: {self.shown_url} did not answer ({cause}): try again") from None

    def _check_tables(self) -> None:
        """Make the tables if there are none; refuse those of another release."""
        with self._explained():
            names = set(sa.inspect(self.engine).get_table_names(self.schema))
        if "meta" not in names:
            if names & set(OF_EARLIER_RELEASES):
                raise ValueError(f"url: {self.shown_url} {_EARLIER}")
            if self.read_only:
                raise ValueError(f"url: {self.shown_url} has no pools, expected a database that a pool was made in")
            self.write(self._make_tables)
        with self.read() as connection:
            found = connection.execute(sa.select(self.tables.meta.c.schema)).scalar_one_or_none()
        if found != SCHEMA:
            raise ValueError(f"url: {self.shown_url} {_EARLIER}")
        if self.path is not None:
            self._file = os.open(str(self.path), os.O_RDONLY)

    def _make_tables(self, connection: sa.Connection) -> None:
        if self.is_postgres:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7212461)"))  # several processes start at once
            connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {self.schema}"))
        if sa.inspect(connection).has_table("meta", self.schema):
            return
        self.tables.metadata.create_all(connection)
        connection.execute(sa.text(view_of(self.engine.dialect.name, self.schema).replace(":", "\\:")))
        connection.execute(sa.insert(self.tables.meta).values(schema=SCHEMA, session_secret=secrets.token_bytes(32)))

    def session_secret(self) -> bytes:
        """The secret that all processes on this database sign sessions with."""
        with self.read() as connection:
            return bytes(connection.execute(sa.select(self.tables.meta.c.session_secret)).scalar_one())

    def pool_names(self) -> list[str]:
        """The names of all pools, sorted."""
        with self.read() as connection:
            return list(connection.execute(sa.select(self.tables.pools.c.name).order_by("name")).scalars())

    def look_after(self, pool: Pool) -> None:
        """Have the background thread call `pool.work` from time to time."""
        if not self.read_only:
            self._background.add(pool)

    def forget(self, pool: Pool) -> None:
        """The background thread is done with this pool when this returns."""
        self._background.remove(pool)

    def wake(self) -> None:
        """Have the background thread look now."""
        self._background.awake.set()

    def close(self) -> None:
        """Stop the background thread and close all connections."""
        self._background.stop()
        self._disconnect()

    def __repr__(self) -> str:
        return f"Database({self.shown_url!r})"

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_EARLIER = (
    "has tables of another release of statepool, which this one does not read: "
    "export with that release, or use another database"
)


def _parse(url: Any) -> sa.URL:
    expected = "expected sqlite:///file.db or postgresql://user@host/database"
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError, TypeError, AttributeError):
        raise ValueError(f"url: is {str(url)[:80]!r}, {expected}") from None
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise ValueError(f"url: is {parsed.render_as_string(hide_password=True)[:80]!r}, {expected}")
    folder = Path(str(parsed.database)).parent
    if not folder.is_dir():
        raise ValueError(f"url: the folder {str(folder)!r} is not there, expected one that the file can be made in")
    return parsed.set(drivername="sqlite+pysqlite")


def _engine(url: sa.URL, is_postgres: bool, read_only: bool) -> sa.Engine:
    if is_postgres:
        # Prepared statements would not survive PgBouncer in transaction mode.
        arguments = {"prepare_threshold": None, "connect_timeout": 10}
        return sa.create_engine(url, connect_args=arguments, pool_size=8, max_overflow=32)
    engine = sa.create_engine(
        url, paramstyle="named", connect_args={"timeout": BUSY_SECONDS, "isolation_level": None}, pool_size=4,
        max_overflow=32,
    )  # fmt: skip
    pragmas = ["journal_mode=WAL", "synchronous=FULL", *(["query_only=ON"] if read_only else [])]

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, record: Any) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")

    return engine


class _Call:
    """A call that waits for its turn to write."""

    def __init__(self, job: Callable[[sa.Connection], Any]) -> None:
        self.job = job
        self.answer: Any = None
        self.error: BaseException | None = None
        self.is_done = False


class _Background:
    """The one background thread: it lets pools learn and expire."""

    def __init__(self) -> None:
        self.awake = threading.Event()
        self._pools: weakref.WeakSet[Pool] = weakref.WeakSet()
        self._lock, self._working = threading.Lock(), threading.RLock()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, pool: Pool) -> None:
        with self._lock:
            self._pools.add(pool)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="statepool", daemon=True)
                self._thread.start()

    def remove(self, pool: Pool) -> None:
        with self._lock:
            self._pools.discard(pool)
        with self._working:  # done with it
            pass

    def stop(self) -> None:
        self._stopped = True
        self.awake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopped:
            self.awake.wait(TICK)
            self.awake.clear()
            with self._lock:
                pools = list(self._pools)
            while pools:  # none is held afterwards, so that pools can be collected
                self._look_after(pools.pop())

    def _look_after(self, pool: Pool) -> None:
        with self._working:
            if pool not in self._pools or self._stopped:
                return
            worked = pool.trouble is None
            try:
                pool.work()
            except Exception as error:
                if worked:
                    logger.warning("pool %s could not learn or expire: %s", pool.name, error)
