"""What both stores read by the same statements: those differ in how a table and a value's place are written alone."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from statepool.live.events import Kind
from statepool.live.stores.archive import WholeView
from statepool.live.stores.store import NUMBERS, Entry, Head, LaneRow, Loose, Sealed, entry_of_row

PIECE = 1000  # events read at once
COLUMNS = "seq, kind, ticket, play, body, hash"


class SQLView(WholeView):
    """Statements name tables as `{}events` and places of values as `?`; a store spells them as its database does."""

    _pool: int
    _head: Head

    @abstractmethod
    def _read(self, sql: str, *values: Any) -> list[Any]:
        """The rows that a statement finds."""

    def head(self) -> Head:
        return self._head

    def _tail(self, after: int, without: Kind | None) -> Iterator[Entry]:
        sql = f"SELECT {COLUMNS} FROM {{}}events WHERE pool = ? AND seq > ? AND kind <> ? ORDER BY seq LIMIT ?"
        while rows := self._read(sql, self._pool, after, -1 if without is None else NUMBERS[without], PIECE):
            yield from (entry_of_row(*row) for row in rows)
            after = rows[-1][0]

    def _tail_catalogue(self) -> list[int]:
        sql = "SELECT seq FROM {}events WHERE pool = ? AND kind = 7 AND seq > ? ORDER BY seq"
        return [seq for (seq,) in self._read(sql, self._pool, self._n_sealed)]

    def _tail_rows(self, first: int, last: int) -> list[Any]:
        sql = f"SELECT {COLUMNS} FROM {{}}events WHERE pool = ? AND seq BETWEEN ? AND ? ORDER BY seq"
        return self._read(sql, self._pool, first, last)

    def sealed(self) -> list[Sealed]:
        sql = "SELECT first, last, hash, digest, place, size FROM {}segments WHERE pool = ? ORDER BY first"
        return [Sealed(*row) for row in self._read(sql, self._pool)] if self._n_sealed else []

    def loose(self) -> list[Loose]:
        sql = "SELECT digest, place, at FROM {}loose WHERE pool = ? ORDER BY digest"
        return [Loose(*row) for row in self._read(sql, self._pool)]

    def has_erased_since(self, seq: int) -> bool:
        sql = "SELECT seq FROM {}events WHERE pool = ? AND seq > ? AND kind = ? LIMIT 1"
        return bool(self._read(sql, self._pool, seq, NUMBERS["erasure"]))

    def n_pending(self) -> int:
        return int(self._read("SELECT pending FROM {}pools WHERE id = ?", self._pool)[0][0])

    def lane_rows(self) -> list[LaneRow]:
        sql = "SELECT lane, place, ticket, at, body, hash FROM {}lanes WHERE pool = ? ORDER BY lane, place"
        return [LaneRow(*row) for row in self._read(sql, self._pool)]

    def n_in_lanes(self) -> int:
        sql = "SELECT count(*) FROM {}lanes WHERE pool = ? AND ticket IS NOT NULL"
        return int(self._read(sql, self._pool)[0][0])

    def snapshot(self) -> tuple[int, bytes] | None:
        rows = self._read("SELECT seq, body FROM {}snapshots WHERE pool = ?", self._pool)
        return (rows[0][0], rows[0][1]) if rows else None
