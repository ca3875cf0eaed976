"""Connections to a PostgreSQL server, or to a pooler before it: every batch and every reading has one of its own.

Nothing is left to the session: what a transaction needs is set inside it, as a pooler may give the next one to another
session. A connection that has seen any error is closed, since what it believes to be prepared may not be. After a
fork the child leaves the parent's connections alone and opens its own.
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from statepool.live.errors import Busy, Conflict, LaneTaken, StoreUnavailable, Taken
from statepool.live.forks import forks

# psycopg warns on standard error when a server dies; who calls us is told by an exception.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

IDLE = 8  # connections kept for the next caller
MOST_WRITERS = 16  # batches of one process under way at once, each of another pool
PATIENCE = 60.0  # seconds that a batch waits for others
# A server that is gone is noticed in seconds and not in hours; the URL may say otherwise.
DEFAULTS = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 30_000}
ADDRESS = re.compile(r"connection to server (at|on) .*? failed: ")
CHECKS = """
    SELECT current_setting('fsync'), current_setting('full_page_writes'), pg_backend_pid(), pg_postmaster_start_time()
"""

Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def errors() -> Iterator[None]:
    """PostgreSQL's errors as the package's."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name in ("events_ticket", "events_play"):
            raise Conflict("this ticket already has an event of this kind: nothing of the batch was kept") from error
        if error.diag.constraint_name == "lanes_ticket":
            raise Taken("somebody else decided for this ticket at the same time") from error
        if error.diag.constraint_name == "lanes_pkey":
            raise LaneTaken("somebody else wrote to this process's lane") from error
        raise StoreUnavailable(f"another writer was in the way: {_line(error)}") from error
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise ValueError(f"PostgreSQL refused an event: {_line(error)}") from error
    except psycopg.errors.LockNotAvailable as error:
        raise Busy(f"another writer kept the lock for {PATIENCE:.0f} seconds: {_line(error)}") from error
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL did not answer: {_line(error)}") from error


def _line(error: psycopg.Error) -> str:
    """What went wrong, without where the server is: callers over HTTP are told this."""
    return ADDRESS.sub("", str(error).partition("\n")[0])


class Connections:
    """Lends connections to callers of any thread; `lost` is called when the server turns out to have been away."""

    def __init__(self, url: str, lost: Callable[[], None]) -> None:
        self._target = _target(url)
        self._lost = lost
        self._up_since: Any = None
        self._closed = False
        self._start_empty()
        forks.follow(self)

    def _start_empty(self) -> None:
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._writers = threading.Semaphore(MOST_WRITERS)

    @contextmanager
    def lend_to_writer(self) -> Iterator[Connection]:
        """As `lend`, to a few at once: whoever waits for a lock must not use up all that the server has."""
        writers = self._writers
        if not writers.acquire(timeout=PATIENCE):
            raise Busy(f"{MOST_WRITERS} batches of this process were waiting for PostgreSQL for {PATIENCE:.0f} seconds")
        try:
            with self.lend() as connection:
                yield connection
        finally:
            writers.release()

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection outside of any transaction, given back so or closed."""
        forks.check()
        if self._closed:
            raise StoreUnavailable("the store is closed")
        connection = self._take()
        sound = False
        try:
            yield connection
            sound = True
        except GeneratorExit:  # a reading that was not read to its end
            sound = True
            raise
        finally:
            self._take_back(connection, sound)

    def is_ours(self, connection: Connection) -> bool:
        """Whether this process opened it, and not the one that it was forked from."""
        return connection in self._open

    def _take(self) -> Connection:
        with suppress(IndexError):
            return self._idle.pop()
        with errors():
            connection = psycopg.connect(self._target, autocommit=True)
        try:
            with errors():
                self._check(connection)
        except BaseException:
            connection.close()
            raise
        self._open.add(connection)
        return connection

    def _check(self, connection: Connection) -> None:
        fsync, full_pages, process, up_since = connection.execute(CHECKS).fetchone() or ("", "", 0, None)
        if "off" in (fsync, full_pages):
            name = "fsync" if fsync == "off" else "full_page_writes"
            raise ValueError(f"this PostgreSQL server runs with {name}=off and loses what it acknowledged")
        if process != connection.info.backend_pid:
            _adapt_to_pooler(connection)
        if self._up_since not in (None, up_since):
            self._lost()
        self._up_since = up_since

    def _take_back(self, connection: Connection, sound: bool) -> None:
        if not self.is_ours(connection):
            return  # of a reading that was begun before a fork
        if sound and _rest(connection) and len(self._idle) < IDLE and not self._closed:
            self._idle.append(connection)
            if self._closed:
                self._drop_idle()
            return
        if connection.broken:
            self._lost()
            self._drop_idle()  # the server was away: they are lost too
        self._close(connection)

    def _drop_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._close(self._idle.pop())

    def _close(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.close()

    def close(self) -> None:
        """Whoever is reading ends in peace."""
        self._closed = True
        self._drop_idle()

    def before_fork(self) -> None:
        """A connection may be in two processes, as long as one of them does not touch it."""

    def after_fork_in_parent(self) -> None:
        """Nothing was let go."""

    def after_fork_in_child(self) -> None:
        # Closing one would say goodbye to the server in the parent's name; only the descriptor is given back, so that
        # the server notices when the parent goes.
        for connection in self._open:
            forks.forget(connection)
            with suppress(psycopg.Error, OSError):
                os.close(connection.fileno())
        self._start_empty()


def _adapt_to_pooler(connection: Connection) -> None:
    """What is prepared in one session is unknown to the next; and a batch is a transaction."""
    connection.prepare_threshold = None
    try:
        connection.execute("BEGIN")
        connection.execute("ROLLBACK")
    except psycopg.Error as error:
        if "transaction blocks not allowed" not in str(error):
            raise
        raise ValueError("the pooler before PostgreSQL refuses transactions, expected another mode of it") from None


def _rest(connection: Connection) -> bool:
    """Whether the connection is outside of any transaction, or could be brought there."""
    if connection.info.transaction_status == TransactionStatus.INTRANS:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
    return connection.info.transaction_status == TransactionStatus.IDLE


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
