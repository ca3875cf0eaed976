"""Anchors: notes of where a pool's chain of hashes stood, kept where whoever can change the store cannot change them.

A store that was rewritten as a whole agrees with itself; it does not agree with a note that was taken before. A note is
one line of JSON: time, pool, number of the event, its hash. Notes are kept

    in a file            anchors.jsonl: lines are added at its end, each on disk before the next
    at a URL             https://…: each note is sent with POST; GET gives all of them back, one a line
    in a table           postgresql://…/audit or sqlite:///audit.db: the table statepool_anchors of another database

`replay` compares every note of a pool with the event of that number.
"""

import os
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib import error as url_errors
from urllib import request as url_requests

import msgspec

from statepool.live.errors import StoreUnavailable
from statepool.live.stores.store import Store

SECONDS = 10.0
LARGEST = 256 << 20
SQL = {
    "make": "CREATE TABLE IF NOT EXISTS statepool_anchors "
    "(time TEXT NOT NULL, pool TEXT NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL)",
    "add": "INSERT INTO statepool_anchors (time, pool, seq, hash) VALUES ({0}, {0}, {0}, {0})",
    "read": "SELECT time, pool, seq, hash FROM statepool_anchors WHERE pool = {0} ORDER BY seq, time",
}


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
        """How many notes were taken."""
        moved = [anchor for anchor in heads(self._store) if self._known.get(anchor.pool) != anchor.hash]
        if moved:
            self._anchors.add(moved)
            self._known |= {anchor.pool: anchor.hash for anchor in moved}
        return len(moved)


class Noted:
    """The notes of one pool, compared while its events go by."""

    def __init__(self, pool: str, anchors: Iterable[Anchor]) -> None:
        self._left: dict[int, list[Anchor]] = defaultdict(list)
        for anchor in anchors:
            if anchor.pool == pool:
                self._left[anchor.seq].append(anchor)
        self.met = 0

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


class Anchors(ABC):
    """A place where notes are kept."""

    @abstractmethod
    def add(self, anchors: Sequence[Anchor]) -> None:
        """Keep notes; they are there when this returns."""

    @abstractmethod
    def read(self, pool: str) -> list[Anchor]:
        """The notes of a pool."""


def anchors_at(where: str) -> Anchors:
    """The place of an address."""
    scheme, separator, rest = where.partition("://")
    if not separator:
        return FileAnchors(Path(where))
    if scheme in ("http", "https") and rest:
        return WebAnchors(where)
    if scheme in ("sqlite", "postgres", "postgresql") and rest:
        return TableAnchors(where)
    raise ValueError(f"anchor: is {scheme!r}://…, expected a file, https://…, postgresql://… or sqlite:///…")


class FileAnchors(Anchors):
    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, anchors: Sequence[Anchor]) -> None:
        lines = b"".join(msgspec.json.encode(anchor) + b"\n" for anchor in anchors)
        try:
            number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(number, lines)
                os.fsync(number)
            finally:
                os.close(number)
        except OSError as error:
            raise StoreUnavailable(f"anchor: {self._path} cannot be written ({error.strerror or error})") from None

    def read(self, pool: str) -> list[Anchor]:
        try:
            return _lines(self._path.read_bytes(), str(self._path), pool)
        except OSError as error:
            raise ValueError(f"anchor: {self._path} cannot be read ({error.strerror or error})") from None


def _lines(text: bytes, where: str, pool: str) -> list[Anchor]:
    """One that is not readable is a fault of the notes, and is not passed over."""
    found = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=Anchor))
        except msgspec.MsgspecError as error:
            raise ValueError(f"anchor: line {number} of {where} is no anchor ({error})") from None
    return [anchor for anchor in found if anchor.pool == pool]


class WebAnchors(Anchors):
    def __init__(self, url: str) -> None:
        self._url = url

    def add(self, anchors: Sequence[Anchor]) -> None:
        self._ask(b"".join(msgspec.json.encode(anchor) + b"\n" for anchor in anchors))

    def read(self, pool: str) -> list[Anchor]:
        return _lines(self._ask(None), "what the URL of the anchors answers", pool)

    def _ask(self, body: bytes | None) -> bytes:
        asked = url_requests.Request(self._url, body, {"Content-Type": "application/jsonl"})
        try:
            with url_requests.urlopen(asked, timeout=SECONDS) as answer:
                return bytes(answer.read(LARGEST))
        except (url_errors.URLError, OSError) as error:
            raise StoreUnavailable(f"anchor: the URL of the anchors did not answer ({error})") from None


class TableAnchors(Anchors):
    """A table of a database that is not the store's."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_file = url.startswith("sqlite")

    def add(self, anchors: Sequence[Anchor]) -> None:
        with closing(self._connect(create=True)) as connection:
            self._run(connection, SQL["make"])
            for anchor in anchors:
                self._run(connection, SQL["add"], anchor.time, anchor.pool, anchor.seq, anchor.hash)

    def read(self, pool: str) -> list[Anchor]:
        """A place without the table is refused: it was never noted to, and reading makes nothing."""
        with closing(self._connect(create=False)) as connection:
            return [Anchor(*row) for row in self._run(connection, SQL["read"], pool)]

    def _connect(self, create: bool) -> Any:
        if self._is_file:
            import apsw

            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if create else apsw.SQLITE_OPEN_READONLY
            try:
                return apsw.Connection(self._url.partition("://")[2].removeprefix("/"), flags)
            except apsw.Error as error:
                raise StoreUnavailable(f"anchor: the file of the anchors cannot be opened ({error})") from None
        import psycopg

        try:
            return psycopg.connect(self._url, autocommit=True, connect_timeout=int(SECONDS))
        except psycopg.Error:
            raise StoreUnavailable("anchor: the database of the anchors did not answer") from None

    def _run(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        import apsw
        import psycopg

        try:
            cursor = connection.execute(sql.format("?" if self._is_file else "%s"), values)
            return cursor.fetchall() if sql.startswith("SELECT") else []
        except (apsw.Error, psycopg.Error) as error:
            line = str(error).partition("\n")[0]
            raise StoreUnavailable(f"anchor: the table of the anchors cannot be used ({line})") from None
