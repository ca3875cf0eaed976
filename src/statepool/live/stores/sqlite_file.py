"""A SQLite file in use: one connection writes, one batch at a time, and each reading has a connection of its own.

Whoever waits for others, of this process or of another, waits `PATIENCE` in all and is then refused: a process that
hangs with the lock in its hands holds up nobody for ever, and readings go on beside it.

SQLite must not be carried through a fork: the child would share the parent's descriptors and believe in locks that it
does not have. So before a fork every connection is closed, and both sides open their own when they next need one. If
that cannot be done, because a thread is at work, the child is refused.
"""

import errno
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Literal
from urllib.parse import quote

import apsw

from statepool.live.errors import Busy, Conflict, Damaged, StoreUnavailable
from statepool.live.forks import forks
from statepool.live.stores.sqlite_place import WITH_WAL, Files, Identity, LockWatch, Moved

PATIENCE = 30.0  # seconds that a batch waits for others, in all
STILLNESS = 1.0  # seconds that a fork waits for the batch that is being written
IDLE_READERS = 4
PAGES_AT_ONCE = 10_000

Synchronous = Literal["OFF", "NORMAL", "FULL", "EXTRA"]


@contextmanager
def errors() -> Iterator[None]:
    """SQLite's errors as the package's."""
    try:
        yield
    except apsw.ConstraintError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_UNIQUE:
            raise Conflict("this ticket already has an event of this kind: nothing of the batch was kept") from error
        raise ValueError(f"SQLite refused an event: {error}") from error
    except apsw.BusyError as error:
        raise _busy() from error
    except apsw.Error as error:
        raise StoreUnavailable(f"the SQLite file cannot be used at present: {error}") from error


def _busy() -> Busy:
    return Busy(f"another writer kept the SQLite file locked for {PATIENCE:.0f} seconds")


class Connection(apsw.Connection):
    """SQLite's, and which files it has open; it waits for others until `deadline`."""

    def __init__(self, path: str, flags: int, vfs: str | None, deadline: float) -> None:
        super().__init__(path, flags, vfs)
        self.deadline = deadline
        self.set_busy_handler(lambda _: _wait(self.deadline))
        self._process = forks.process
        self.files: Files

    @property
    def is_ours(self) -> bool:
        """Whether this process opened it, and not the one that it was forked from."""
        return self._process == forks.process

    def let_go(self, as_it_is: bool) -> None:
        """Close it; `as_it_is`: without tidying up, as the WAL at its path may not be the one it knows."""
        if not self.is_ours:
            forks.forget(self)
            return
        with suppress(apsw.Error):
            self.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(as_it_is))
        self.close(force=True)


class SQLiteFile:
    """The connections of this process to one file; `vfs` is for tests."""

    was_forked_at_work = False
    """Whether SQLite's own memory in this process is a copy of one that a thread was changing."""

    def __init__(self, path: str, synchronous: Synchronous, vfs: str | None, at_rest: bool = False) -> None:
        self.path = path
        self.at_rest = at_rest
        """Whether the file is only read, as it is: one that `is_at_rest`."""
        self.writer: Connection | None = None
        self.readers: list[Connection] = []
        self._synchronous, self._vfs = synchronous, vfs
        self._main: Identity | None = None
        self._watch: LockWatch | None = None
        self._turn = threading.Lock()  # one writer of this process; BEGIN IMMEDIATE: one of all
        self._gate = threading.Lock()  # over the readers, those that wait and how many are out
        self._out = 0
        self._still = self._closed = False
        forks.follow(self)

    def open(self, deadline: float | None = None) -> None:
        """Open the file, or make it."""
        self._check_open()
        self.writer = self._connect(time.monotonic() + PATIENCE if deadline is None else deadline)
        self._watch = LockWatch(self.path)

    def _connect(self, deadline: float) -> Connection:
        may_create = 0 if self._main else apsw.SQLITE_OPEN_CREATE
        flags = apsw.SQLITE_OPEN_READONLY if self.at_rest else apsw.SQLITE_OPEN_READWRITE | may_create
        connection = Connection(self.path, flags, self._vfs, deadline)
        try:
            if not self.at_rest:
                _to_wal(connection)
                connection.pragma("synchronous", self._synchronous)
                # What was deleted, or moved to another page, would else stay readable after it is forgotten.
                connection.pragma("secure_delete", True)
                connection.pragma("fullfsync", True)  # on macOS, a plain fsync leaves data in the drive's cache
                connection.pragma("checkpoint_fullfsync", True)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # now it has all its files open
            connection.files = Files(connection, self.path, ("",) if self.at_rest else WITH_WAL)
            if self._main not in (None, connection.files.main):
                raise StoreUnavailable(
                    f"{self.path} is not the file that this process opened at first: start it anew to use this one"
                )
        except BaseException:
            connection.let_go(as_it_is=True)
            raise
        self._main = connection.files.main
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        _check_forks()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of the one writer: committed at the end, rolled back on any exception."""
        self._check_open()
        if self.at_rest:
            raise StoreUnavailable(f"{self.path} was opened to be read, and nothing is written to it")
        deadline = time.monotonic() + PATIENCE
        if not self._turn.acquire(timeout=PATIENCE):
            raise _busy()
        try:
            self._check_open()
            with errors():
                writer = self._begin(deadline)
            yield writer
            if self._watch is not None:
                self._watch.check()
            with errors():
                writer.execute("COMMIT")
            writer.files.check()
        except BaseException as error:
            self._roll_back(anew=isinstance(error, StoreUnavailable))
            if isinstance(error, Moved):
                with self._gate:
                    self._drop_readers(as_it_is=True)  # they share what SQLite knows of its files
            raise
        finally:
            self._turn.release()

    def _begin(self, deadline: float) -> Connection:
        if self.writer is None:
            self.open(deadline)
            assert self.writer is not None
        self.writer.deadline = deadline
        self.writer.execute("BEGIN IMMEDIATE")
        self.writer.files.check_wal()
        if self._watch is not None:
            self._watch.prove()
        return self.writer

    def _roll_back(self, anew: bool) -> None:
        """After an I/O error nothing that the connection remembers is to be trusted: the next batch opens `anew`."""
        if self.writer is None:
            return
        with suppress(apsw.Error):
            self.writer.execute("ROLLBACK")
        if anew or self.writer.in_transaction:
            self._drop_writer(as_it_is=True)

    def _drop_writer(self, as_it_is: bool) -> None:
        if self._watch is not None:
            self._watch.close()
        if self.writer is not None:
            self.writer.let_go(as_it_is)
        self.writer = self._watch = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection of one's own in a transaction, so that a long reading holds up nobody."""
        self._check_open()
        with self._gate:
            connection = self.readers.pop() if self.readers else None
            self._out += 1
        sound = False
        try:
            deadline = time.monotonic() + PATIENCE
            with errors():
                connection = connection or self._connect(deadline)
                connection.deadline = deadline
                connection.execute("BEGIN")
            connection.files.check()
            yield connection
            sound = True
        except GeneratorExit:  # a reading that was not read to its end
            sound = True
            raise
        except Moved:
            self._let_everybody_go()
            raise
        finally:
            self._take_back(connection, sound)

    def _let_everybody_go(self) -> None:
        """A writer that is at work will find out by itself."""
        with self._gate:
            self._drop_readers(as_it_is=True)
        if self._turn.acquire(blocking=False):
            self._drop_writer(as_it_is=True)
            self._turn.release()

    def _take_back(self, connection: Connection | None, sound: bool) -> None:
        """Keep a reader for the next one, unless anything went wrong with it."""
        with suppress(apsw.Error):
            if connection is not None and connection.is_ours:
                connection.execute("ROLLBACK")
        with self._gate:
            self._out -= 1
            if connection is None:
                return
            full = self._closed or len(self.readers) >= IDLE_READERS
            if sound and connection.is_ours and not connection.in_transaction and not full:
                self.readers.append(connection)
                return
        connection.let_go(as_it_is=True)

    def _drop_readers(self, as_it_is: bool) -> None:
        while self.readers:
            self.readers.pop().let_go(as_it_is)

    def close(self) -> None:
        """Whoever is reading ends in peace."""
        with self._turn:
            self._closed = True
            with self._gate:
                self._drop_readers(as_it_is=False)
            self._drop_writer(as_it_is=False)

    def before_fork(self) -> None:
        self._still = self._turn.acquire(timeout=STILLNESS)
        self._gate.acquire()
        self._drop_readers(as_it_is=True)
        if self._still:
            self._drop_writer(as_it_is=True)

    def after_fork_in_parent(self) -> None:
        self._gate.release()
        if self._still:
            self._turn.release()

    def after_fork_in_child(self) -> None:
        self._turn, self._gate = threading.Lock(), threading.Lock()
        SQLiteFile.was_forked_at_work |= self._out > 0 or not self._still
        self._drop_writer(as_it_is=True)


def is_at_rest(path: str) -> bool:
    """Whether a file is as a backup leaves it: not in WAL mode, in which every store is from its first opening on.

    To read such a file makes no other beside it, and whoever opens it as a store meanwhile waits for the reading.
    """
    with closing(connect_to_look(path)) as connection:  # whoever opens it otherwise drops this process's locks on it
        return connection.read("main", 0, 18, 2)[1] == b"\x01\x01"


def connect_to_look(path: str) -> Connection:
    """A connection that changes neither a file, which may be somebody else's, nor what lies beside it.

    Reading a database in WAL mode makes a -wal and a -shm, unless SQLite is told that nobody writes. That is believed
    where the -wal is missing or empty: all that was committed is then in the file itself.
    """
    _check_forks()
    told = "" if _holds_bytes(f"{path}-wal") else "?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return Connection(f"file:{quote(path)}{told}", flags, None, time.monotonic() + PATIENCE)


def copy_file(path: str, to: str) -> None:
    """A database that is only read: of a file that nobody has open nothing is changed, and nothing is made beside it.

    Whoever opens it meanwhile is noticed: pages of several moments are no copy.
    """
    path = os.path.realpath(path)  # beside which its WAL would lie
    before = _left_alone(path)
    with closing(connect_to_look(path)) as source:
        try:
            copy_pages(source, to)
        finally:
            if before not in (None, _left_alone(path)):
                raise StoreUnavailable("somebody wrote to it while it was read")


def _left_alone(path: str) -> tuple[int, ...] | None:
    """The same for as long as nobody writes to a file; None where somebody has it open."""
    if _holds_bytes(f"{path}-wal"):
        return None
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def copy_pages(source: apsw.Connection, path: str) -> None:
    """A whole database into a new file: pages of one moment, while others go on writing.

    It is done in pieces, between which a signal is heard. What SQLite says when it fails is "not an error", so the
    words are ours.
    """
    target = apsw.Connection(path)
    try:
        with source, target.backup("main", source, "main") as work:
            source.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the moment
            while not work.done:
                work.step(PAGES_AT_ONCE)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Damaged("the SQLite file is damaged or was cut short") from error
    except apsw.FullError as error:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
    except apsw.Error as error:
        if target.system_errno:
            raise OSError(target.system_errno, os.strerror(target.system_errno)) from error
        raise StoreUnavailable(f"the SQLite file cannot be read at present ({type(error).__name__})") from error
    finally:
        target.close(force=True)


def _holds_bytes(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _check_forks() -> None:
    forks.check()
    if SQLiteFile.was_forked_at_work:
        raise StoreUnavailable(
            "this process was forked while its parent was reading or writing a SQLite file, which SQLite does not "
            "survive: fork before that, or start processes anew (multiprocessing's 'spawn')"
        )


def _wait(deadline: float) -> bool:
    """Ask again often: SQLite's own timeout sleeps longer each time, and a busy process would starve the others."""
    time.sleep(random.uniform(0.0002, 0.002))
    return time.monotonic() < deadline


def _to_wal(connection: Connection) -> None:
    """Processes that open a new file together get in each other's way here, and the busy handler does not apply."""
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
            break
        except apsw.BusyError:
            if time.monotonic() > connection.deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise ValueError(f"this file cannot be a SQLite database in WAL mode (it stays in mode {mode!r})")
