"""Anchors: notes of where a pool's chain of hashes stood, kept where whoever can change the store cannot change them.

A store that was rewritten as a whole agrees with itself; it does not agree with a note that was taken before. A note is
one line of JSON: time, pool, number of the event, its hash. Notes are kept

    in a file            anchors.jsonl: lines are added at its end, each on disk before the next
    at a URL             https://…: each note is sent with POST; GET gives all of them back, one a line
    in a table           postgresql://…/audit or sqlite:///audit.db: the table statepool_anchors of another database

`replay` compares every note of a pool with the event of that number.
"""

import os
import secrets
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib import parse as url_parts
from urllib import request as url_requests
from urllib.error import HTTPError

import msgspec

from statepool.live.errors import AnchorsUnavailable
from statepool.live.stores import sqlite_path
from statepool.live.stores.store import Store

SECONDS = 10.0
LARGEST = 256 << 20
GONE = frozenset((404, 410, 500, 502, 503, 504))
"""What a URL answers that is no place of notes now; one that only does not know HEAD says something else."""
SQL = {
    "make": "CREATE TABLE IF NOT EXISTS statepool_anchors "
    "(time TEXT NOT NULL, pool TEXT NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL)",
    "add": "INSERT INTO statepool_anchors (time, pool, seq, hash) VALUES ({0}, {0}, {0}, {0})",
    "read": "SELECT time, pool, seq, hash FROM statepool_anchors WHERE pool = {0} ORDER BY seq, time",
    "sqlite_has": "SELECT 1 FROM sqlite_master WHERE name = 'statepool_anchors'",
    "postgres_has": "SELECT 1 WHERE to_regclass('statepool_anchors') IS NOT NULL",
}
BEGINNING = b'{"time":"'
"""What every line that is written to a file begins with."""
FIRST_LINE = 1 << 16
"""Bytes that the first line of a file of notes has at most."""


class Anchor(msgspec.Struct, frozen=True):
    """At that time the event `seq` of the pool was the last, and had that hash."""

    time: str
    pool: str
    seq: int
    hash: str


def heads(store: Store, now: datetime | None = None) -> list[Anchor]:
    """Where the pools of a store stand."""
    time = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    standings = store.standings().pools
    return [Anchor(time, name, at.head.seq, at.head.hash.hex()) for name, at in standings.items() if at.head.seq]


class Anchoring:
    """Notes of a store's pools, taken again and again: only of those that have moved."""

    def __init__(self, store: Store, anchors: "Anchors") -> None:
        self._store, self._anchors = store, anchors
        self._known: dict[str, str] = {}

    def note(self) -> int:
        """How many notes were taken; where there is nothing to note, the place is looked at all the same."""
        moved = [anchor for anchor in heads(self._store) if self._known.get(anchor.pool) != anchor.hash]
        if moved:
            self._anchors.add(moved)
            self._known |= {anchor.pool: anchor.hash for anchor in moved}
        elif self._known:
            self._anchors.look()
        return len(moved)


class Noted:
    """The notes of one pool, compared while its events go by."""

    def __init__(self, pool: str, anchors: Iterable[Anchor]) -> None:
        self._left: dict[int, list[Anchor]] = defaultdict(list)
        for anchor in anchors:
            if anchor.pool == pool:
                self._left[anchor.seq].append(anchor)
        self.met = 0
        self.latest = max(self._left, default=None)
        """The last event that there is a note of."""

    def compare(self, seq: int, digest: bytes) -> list[str]:
        """A sentence for each note that says otherwise."""
        noted = self._left.pop(seq, None) if self._left else None
        if not noted:
            return []
        wrong = [anchor for anchor in noted if anchor.hash != digest.hex()]
        self.met += len(noted) - len(wrong)
        return [f"event {seq}: its hash is not the one that was noted at {anchor.time}" for anchor in wrong]

    def left(self) -> list[str]:
        """Notes of events that the journal does not have."""
        if not self._left:
            return []
        last = max(self._left)
        return [
            f"the journal has no event {last}, which was noted at {self._left[last][0].time}: it was cut short there, "
            "or before"
        ]


class Notes(NamedTuple):
    """What a place holds of a pool, and how many lines of it (of any pool) were cut off while they were written."""

    anchors: list[Anchor]
    cut_off: int = 0


class Anchors(ABC):
    """A place where notes are kept."""

    def check(self) -> None:  # noqa: B027 – most know it when they are first asked
        """Raise where notes cannot be kept, as far as it can be told beforehand."""

    @abstractmethod
    def add(self, anchors: Sequence[Anchor]) -> None:
        """Keep notes; they are there when this returns."""

    @abstractmethod
    def look(self) -> None:
        """Raise if the place where notes were kept is gone; nothing is made or read, so that it costs little."""

    @abstractmethod
    def read(self, pool: str) -> Notes:
        """The notes of a pool; nothing is made or changed by reading."""


def anchors_at(where: str, store: str | None = None) -> Anchors:
    """The place of an address, which must not be the store whose pools are noted."""
    scheme, separator, rest = where.partition("://")
    if separator and not (rest and scheme in ("http", "https", "sqlite", "postgres", "postgresql")):
        raise ValueError(f"anchor: is {scheme!r}://…, expected a file, https://…, postgresql://… or sqlite:///…")
    place: Anchors
    if not separator:
        place = FileAnchors(Path(where))
    elif scheme in ("http", "https"):
        place = WebAnchors(where)
    else:
        place = TableAnchors(where, store)
    if store is not None and _identity(where) == _identity(store):
        raise _is_the_store()
    return place


def _is_the_store() -> ValueError:
    return ValueError(
        "anchor: is the store itself, and whoever rewrites that rewrites its notes, "
        "expected a file, a URL or a database elsewhere"
    )


def shown(where: str) -> str:
    """The address of a place, without what may be a password."""
    scheme, separator, _ = where.partition("://")
    return f"{scheme}://…" if separator and scheme != "sqlite" else where


def _identity(where: str) -> object:
    """The same for two addresses of one file, which links may lead to; a database has to be asked who it is."""
    scheme, separator, rest = where.partition("://")
    if separator and scheme != "sqlite":
        return where
    path = rest.removeprefix("/") if separator else where
    try:
        found = os.stat(path)
    except OSError:  # it is not there yet
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


class FileAnchors(Anchors):
    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self) -> None:
        """A file of something else is not added to: a line at its end would spoil a backup."""
        try:
            if not self._path.is_file():
                return
            with open(self._path, "rb") as file:
                first = file.read(FIRST_LINE).lstrip().partition(b"\n")[0]
        except OSError:  # it may be added to, and not be read; whoever adds to it says what else is wrong
            return
        if first and not _is_cut_off(first) and not _is_note(first):
            raise ValueError(
                f"anchor: {self._path} holds something else, expected a new file or one of notes "
                "(a database is sqlite:///… or postgresql://…): nothing was noted"
            )

    def add(self, anchors: Sequence[Anchor]) -> None:
        self.check()
        lines = b"".join(msgspec.json.encode(anchor) + b"\n" for anchor in anchors)
        try:
            if not self._ends_whole():
                lines = b"\n" + lines
            with open(self._path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise AnchorsUnavailable(f"anchor: {self._path} cannot be written ({error.strerror or error})") from None

    def look(self) -> None:
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_APPEND))
        except OSError as error:
            raise AnchorsUnavailable(f"anchor: {self._path} cannot be written ({error.strerror or error})") from None

    def _ends_whole(self) -> bool:
        """Whether a line may begin at the end: power or the disk may have ended while the last one was written."""
        if not self._path.is_file() or not self._path.stat().st_size:
            return True
        try:
            with open(self._path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read() == b"\n"
        except PermissionError:  # it may be added to, and not be read: an empty line is passed over
            return False

    def read(self, pool: str) -> Notes:
        try:
            return _lines(self._path.read_bytes(), str(self._path), pool)
        except OSError as error:
            raise ValueError(f"anchor: {self._path} cannot be read ({error.strerror or error})") from None


def _lines(text: bytes, where: str, pool: str) -> Notes:
    """A line that was cut off is counted; any other that is not readable is a fault of the notes."""
    found, cut_off = [], 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        if _is_cut_off(line):
            cut_off += 1
            continue
        try:
            found.append(msgspec.json.decode(line, type=Anchor))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError(
                f"anchor: line {number} of {where} is no anchor ({error}), "
                "expected JSON with time, pool, seq and hash: mend that line, or take it out"
            ) from None
    return Notes([anchor for anchor in found if anchor.pool == pool], cut_off)


def _is_note(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Anchor)
    except (msgspec.MsgspecError, UnicodeError):
        return False
    return True


def _is_cut_off(line: bytes) -> bool:
    """Whether a line begins as a note does and has no end."""
    return (line.startswith(BEGINNING) or BEGINNING.startswith(line)) and not line.endswith(b"}")


class _NoRedirectedPost(url_requests.HTTPRedirectHandler):
    """Python follows the redirect of a POST with a GET, and the notes in its body would be lost."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.data is not None:
            fp.close()
            raise AnchorsUnavailable(
                f"anchor: nothing was noted, for the URL of the anchors points elsewhere (HTTP {code}): "
                f"expected the address itself, which may be {newurl[:200]}"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Answered(AnchorsUnavailable):
    """It answered, and not with what it was asked for."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class WebAnchors(Anchors):
    def __init__(self, url: str) -> None:
        _check_url(url)
        self._url = url

    def add(self, anchors: Sequence[Anchor]) -> None:
        self._ask(b"".join(msgspec.json.encode(anchor) + b"\n" for anchor in anchors))

    def look(self) -> None:
        try:
            self._ask(None, "HEAD")
        except _Answered as answered:
            if answered.status in GONE:
                raise

    def read(self, pool: str) -> Notes:
        notes = _lines(self._ask(None), "what the URL of the anchors answers", pool)
        if notes.cut_off:  # what else is missing nobody knows
            raise ValueError("anchor: what the URL of the anchors answers ends within a line, expected whole lines")
        return notes

    def _ask(self, body: bytes | None, method: str | None = None) -> bytes:
        asked = url_requests.Request(self._url, body, {"Content-Type": "application/jsonl"}, method=method)
        try:
            with url_requests.build_opener(_NoRedirectedPost).open(asked, timeout=SECONDS) as answer:
                text = bytes(answer.read(LARGEST))
                if getattr(answer, "length", None) or len(text) == LARGEST:
                    raise HTTPException("only a part of its answer came")
                return text
        except (OSError, HTTPException, UnicodeError) as error:
            why = " ".join(str(error).split())[:200]
            if isinstance(error, HTTPError):
                error.close()
                raise _Answered(error.code, f"anchor: the URL of the anchors did not answer ({why})") from None
            raise AnchorsUnavailable(f"anchor: the URL of the anchors did not answer ({why})") from None


def _check_url(url: str) -> None:
    """Raise unless a request can be sent there; the URL is not repeated, for it may hold a password."""
    scheme = url.partition("://")[0]
    try:
        parts = url_parts.urlsplit(url)
        sound = parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(
            f"anchor: this {scheme}://… cannot be asked: expected {scheme}://host:port/path with no user or password, "
            "and with special characters percent-encoded"
        )


class TableAnchors(Anchors):
    """A table of a database that is not the store's, which is asked when it is first connected to."""

    def __init__(self, url: str, store: str | None = None) -> None:
        self._url = url
        self._path = _path(url) if url.startswith("sqlite") else None
        self._not_compared = store if self._path is None and store and store.startswith("postgres") else None

    def check(self) -> None:
        if self._path is None:
            self._connect().close()

    def add(self, anchors: Sequence[Anchor]) -> None:
        with closing(self._connect()) as connection:
            self._run(connection, SQL["make"])
            for anchor in anchors:
                self._run(connection, SQL["add"], anchor.time, anchor.pool, anchor.seq, anchor.hash)

    def read(self, pool: str) -> Notes:
        if self._path is not None and not os.path.exists(self._path):
            raise ValueError(f"anchor: there is no file {self._path}, expected one that holds notes")
        with closing(self._connect(to_read=True)) as connection:
            if not self._run(connection, SQL["postgres_has" if self._path is None else "sqlite_has"]):
                return Notes([])
            return Notes([Anchor(*row) for row in self._run(connection, SQL["read"], pool)])

    def look(self) -> None:
        with closing(self._connect(to_read=True)) as connection:
            if not self._run(connection, SQL["postgres_has" if self._path is None else "sqlite_has"]):
                raise AnchorsUnavailable("anchor: the table of the anchors is gone")

    def _connect(self, to_read: bool = False) -> Any:
        if self._path is not None:
            import apsw

            flags = apsw.SQLITE_OPEN_READONLY if to_read else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
            try:
                connection = apsw.Connection(self._path, flags)
                connection.set_busy_timeout(int(1000 * SECONDS))  # another notary may be writing
                return connection
            except apsw.Error as error:
                raise AnchorsUnavailable(f"anchor: the file of the anchors cannot be opened ({error})") from None
        return self._connect_to_server()

    def _connect_to_server(self) -> Any:
        import psycopg

        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=int(SECONDS))
        except psycopg.Error:
            raise AnchorsUnavailable("anchor: the database of the anchors did not answer") from None
        if self._not_compared is not None:
            try:
                _refuse_the_store(connection, self._not_compared)
            except BaseException:
                connection.close()
                raise
            self._not_compared = None
        return connection

    def _run(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        import apsw
        import psycopg

        try:
            cursor = connection.execute(sql.format("%s" if self._path is None else "?"), values)
            return cursor.fetchall() if sql.startswith("SELECT") else []
        except (apsw.Error, psycopg.Error) as error:
            why = " ".join(str(error).split())
            raise AnchorsUnavailable(f"anchor: the table of the anchors cannot be used ({why})") from None


def _refuse_the_store(connection: Any, store: str) -> None:
    """Whatever the addresses say: a lock that is taken in a database is in the way in that one and in no other."""
    import psycopg

    key = secrets.randbits(62)
    try:
        with psycopg.connect(store, connect_timeout=int(SECONDS)) as other:
            other.execute("SELECT pg_advisory_xact_lock(%s)", [key])
            [is_elsewhere] = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [key]).fetchone()
    except psycopg.Error:
        raise AnchorsUnavailable("anchor: the database of the anchors and the store could not be compared") from None
    if not is_elsewhere:
        raise _is_the_store()


def _path(url: str) -> str:
    try:
        return sqlite_path(url.partition("://")[2])
    except ValueError as error:
        raise ValueError(f"anchor: {error}") from None
