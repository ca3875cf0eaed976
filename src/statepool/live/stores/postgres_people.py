"""Who may use a store in PostgreSQL, who has signed in, and what administrators did."""

import time
from abc import abstractmethod
from contextlib import AbstractContextManager

from statepool.live.stores.postgres_connections import Connection
from statepool.live.stores.store import MOST_CALLS, Call, Key, Store


class PostgresPeople(Store):
    """The part of a store that knows nothing of pools."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Connection]: ...

    def keys(self) -> list[Key]:
        with self._reading() as connection:
            rows = connection.execute("SELECT name, hash, role, until, pools FROM statepool.keys").fetchall()
            return sorted((Key.of(*row) for row in rows), key=lambda key: key.name)

    def add_key(self, name: str, digest: str, role: str, until: int | None = None, pools: tuple[str, ...] = ()) -> None:
        sql = """INSERT INTO statepool.keys (name, hash, role, until, pools) VALUES (%s, %s, %s, %s, %s)
                 ON CONFLICT DO NOTHING"""
        with self._writing() as connection:
            if not connection.execute(sql, (name, digest, role, until, " ".join(pools))).rowcount:
                raise ValueError(f"there is a key named {name!r} already")

    def renew_key(self, name: str, digest: str, old_name: str, old_until: int, until: int | None) -> bool:
        with self._writing() as connection:
            if not connection.execute("SELECT FROM statepool.keys WHERE name = %s FOR UPDATE", (name,)).rowcount:
                return False
            connection.execute("DELETE FROM statepool.keys WHERE name = %s", (old_name,))
            old = "UPDATE statepool.keys SET name = %s, until = least(until, %s) WHERE name = %s"  # NULL is no least
            connection.execute(old, (old_name, old_until, name))
            new = """INSERT INTO statepool.keys (name, hash, role, until, pools)
                     SELECT %s, %s, role, %s, pools FROM statepool.keys WHERE name = %s"""
            connection.execute(new, (name, digest, until, old_name))
            return True

    def drop_key(self, name: str) -> bool:
        sql = """WITH gone AS (DELETE FROM statepool.keys WHERE name = %s RETURNING hash),
                      ended AS (DELETE FROM statepool.sessions WHERE key IN (SELECT hash FROM gone))
                 SELECT count(*) FROM gone"""
        with self._writing() as connection:
            return connection.execute(sql, (name,)).fetchone() != (0,)

    def add_session(self, digest: str, key: str, until: int) -> None:
        sql = "INSERT INTO statepool.sessions (hash, key, until) VALUES (%s, %s, %s)"
        with self._writing() as connection:
            connection.execute("DELETE FROM statepool.sessions WHERE until < %s", (int(time.time()),))
            connection.execute(sql, (digest, key, until))

    def session(self, digest: str) -> tuple[str, int] | None:
        with self._reading() as connection:
            sql = "SELECT key, until FROM statepool.sessions WHERE hash = %s"
            row = connection.execute(sql, (digest,)).fetchone()
            return None if row is None else (row[0], row[1])

    def add_call(self, call: Call) -> None:
        sql = "INSERT INTO statepool.calls (at, who, address, did, status, said) VALUES (%s, %s, %s, %s, %s, %s)"
        with self._writing() as connection:
            connection.execute(sql, call)
            oldest = "DELETE FROM statepool.calls WHERE id <= (SELECT max(id) FROM statepool.calls) - %s"
            connection.execute(oldest, (MOST_CALLS,))

    def calls(self, limit: int) -> list[Call]:
        sql = "SELECT at, who, address, did, status, said FROM statepool.calls ORDER BY id DESC LIMIT %s"
        with self._reading() as connection:
            return [Call(*row) for row in connection.execute(sql, (limit,)).fetchall()][::-1]
