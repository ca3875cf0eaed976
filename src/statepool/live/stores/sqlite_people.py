"""Who may use a store in a SQLite file, who has signed in, and what administrators did."""

import time

from statepool.live.stores.sqlite_file import SQLiteFile, errors
from statepool.live.stores.store import MOST_CALLS, Call, Key, Store


class SQLitePeople(Store):
    """The part of a store that knows nothing of pools."""

    _file: SQLiteFile

    def keys(self) -> list[Key]:
        with self._file.reading() as connection, errors():
            rows = connection.execute("SELECT name, hash, role, until, pools FROM keys ORDER BY name")
            return [Key.of(*row) for row in rows]

    def add_key(self, name: str, digest: str, role: str, until: int | None = None, pools: tuple[str, ...] = ()) -> None:
        sql = "INSERT INTO keys (name, hash, role, until, pools) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self._file.writing() as connection, errors():
            connection.execute(sql, (name, digest, role, until, " ".join(pools)))
            if not connection.changes():
                raise ValueError(f"there is a key named {name!r} already")

    def renew_key(self, name: str, digest: str, old_name: str, old_until: int, until: int | None) -> bool:
        with self._file.writing() as connection, errors():
            if not connection.execute("SELECT count(*) FROM keys WHERE name = ?", (name,)).get:
                return False
            connection.execute("DELETE FROM keys WHERE name = ?", (old_name,))
            old = "UPDATE keys SET name = ?, until = min(coalesce(until, ?), ?) WHERE name = ?"
            connection.execute(old, (old_name, old_until, old_until, name))
            new = (
                "INSERT INTO keys (name, hash, role, until, pools) SELECT ?, ?, role, ?, pools FROM keys WHERE name = ?"
            )
            connection.execute(new, (name, digest, until, old_name))
            return True

    def drop_key(self, name: str) -> bool:
        with self._file.writing() as connection, errors():
            connection.execute("DELETE FROM sessions WHERE key = (SELECT hash FROM keys WHERE name = ?)", (name,))
            connection.execute("DELETE FROM keys WHERE name = ?", (name,))
            return connection.changes() > 0

    def add_session(self, digest: str, key: str, until: int) -> None:
        with self._file.writing() as connection, errors():
            connection.execute("DELETE FROM sessions WHERE until < ?", (int(time.time()),))
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?)", (digest, key, until))

    def session(self, digest: str) -> tuple[str, int] | None:
        with self._file.reading() as connection, errors():
            return connection.execute("SELECT key, until FROM sessions WHERE hash = ?", (digest,)).fetchone()

    def add_call(self, call: Call) -> None:
        with self._file.writing() as connection, errors():
            connection.execute(
                "INSERT INTO calls (at, who, address, did, status, said) VALUES (?, ?, ?, ?, ?, ?)", call
            )
            connection.execute("DELETE FROM calls WHERE id <= (SELECT max(id) FROM calls) - ?", (MOST_CALLS,))

    def calls(self, limit: int) -> list[Call]:
        with self._file.reading() as connection, errors():
            sql = "SELECT at, who, address, did, status, said FROM calls ORDER BY id DESC LIMIT ?"
            return [Call(*row) for row in connection.execute(sql, (limit,))][::-1]
