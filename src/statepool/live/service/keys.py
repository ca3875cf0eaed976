"""API keys: roles, pools, expiry and renewal. The store holds only SHA-256 hashes.

Roles: `read` (status and single tickets), `decide`, `report`, `write` (decide and report), `admin` (everything).
Without keys a service answers the loopback name only. Once it has seen a key it requires one, even if none is left.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from secrets import token_urlsafe
from time import time
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
import sqlalchemy as sa
from starlette.exceptions import HTTPException

from statepool.live.catalogue import encoded
from statepool.live.database import Database
from statepool.live.settings import check_name

ROLES = {
    "read": ("read",),
    "decide": ("read", "decide"),
    "report": ("read", "report"),
    "write": ("read", "decide", "report"),
    "admin": ("read", "decide", "report", "admin"),
}
"""What each role may do."""
OLD = " (before)"
"""Suffix of the name of a key that was renewed and still works."""
BEARER = {"www-authenticate": "Bearer"}

Headers = dict[bytes, bytes]
Exposure = Literal["anyone", "localhost", "none"]
"""Whom a service without keys answers."""


class Key(NamedTuple):
    """A row of `api_keys`; no `pools`: it is for all pools."""

    name: str
    hash: str
    role: str
    pools: tuple[str, ...] = ()
    expires_at: float | None = None

    def may_use(self, pool: str) -> bool:
        return not self.pools or pool in self.pools


ANYONE = Key("", "", "admin")


def digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def list_keys(database: Database) -> list[Key]:
    """All keys by name, expired ones included."""
    keys = database.tables.api_keys
    with database.read() as connection:
        rows = connection.execute(sa.select(keys).order_by(keys.c.name)).all()
    return [Key(row.name, row.hash, row.role, tuple(msgspec.json.decode(row.pools or "[]")), row.expires_at)
            for row in rows]  # fmt: skip


def add_key(database: Database, name: str, role: str, lasts: float | None = None, pools: Sequence[str] = ()) -> str:
    """Create a key and return it; it cannot be read again.

    It is valid for `lasts` seconds (None: for ever) and for these pools (none: all of them).
    """
    check_key(name, role)
    key, row = _make(name, role, lasts, [check_name(pool) for pool in pools])
    keys = database.tables.api_keys
    insert = database.insert(keys).values(row).on_conflict_do_nothing().returning(keys.c.name)
    if database.write(lambda connection: connection.execute(insert).first()) is None:
        raise ValueError(f"key: there is one named {name!r} already")
    return key


def check_key(name: str, role: str) -> None:
    """Refuse a name or a role that no key can have."""
    if role not in ROLES:
        raise ValueError(f"role: is {role!r}, expected one of {', '.join(ROLES)}")
    if not 0 < len(name) <= 64 or not name.isprintable() or name.endswith(OLD):
        raise ValueError(f"name: is {name[:40]!r}, expected 1 to 64 printable characters that do not end in {OLD!r}")


def renew_key(database: Database, name: str, lasts: float | None = None, overlap: float = 86_400.0) -> str:
    """Create a key with the name and rights of another, which works for `overlap` more seconds, and return it.

    A key that was renewed before that ends at once.
    """
    known = next((each for each in list_keys(database) if each.name == name), None)
    if known is None or name.endswith(OLD):
        raise ValueError(f"key: there is none named {name!r} to renew")
    key, row = _make(name, known.role, lasts, known.pools)
    old = {"name": name + OLD, "expires_at": min(time() + overlap, known.expires_at or float("inf"))}
    keys = database.tables.api_keys

    def renew(connection: sa.Connection) -> None:
        connection.execute(sa.delete(keys).where(keys.c.name == name + OLD))
        connection.execute(sa.update(keys).where(keys.c.name == name).values(old))
        connection.execute(sa.insert(keys), row)

    database.write(renew)
    return key


def _make(name: str, role: str, lasts: float | None, pools: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A new key, and its row."""
    if lasts is not None and not 0 <= lasts < 1e10:
        raise ValueError(f"seconds: is {lasts!r}, expected for how many seconds a key is valid")
    key, now = "sp_" + token_urlsafe(32), time()
    return key, {
        "name": name, "hash": digest_of(key), "role": role, "expires_at": None if lasts is None else now + lasts,
        "pools": encoded(pools) if pools else None, "created_at": now,
    }  # fmt: skip


def drop_key(database: Database, name: str) -> None:
    """Delete a key, and the one that it replaced."""
    keys = database.tables.api_keys
    dropped = sa.delete(keys).where(keys.c.name.in_([name, name + OLD]))
    if not database.write(lambda connection: connection.execute(dropped).rowcount):
        raise ValueError(f"key: there is none named {name!r}")


class Gate:
    """Decides who may call. `reload` reads the keys; the service calls it about once a second."""

    def __init__(self, database: Database, exposure: Exposure, needs_key: bool = False) -> None:
        self._database, self._exposure, self.needs_key = database, exposure, needs_key
        self._keys: dict[str, Key] = {}
        self.reload()

    def reload(self) -> None:
        self._keys = {key.hash: key for key in list_keys(self._database)}
        self.needs_key = self.needs_key or bool(self._keys)

    def check_host(self, headers: Headers) -> None:
        """Refuse pages of other sites, and without keys everybody who does not use the loopback name."""
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != host:
            names = [repr(each[:100].decode("latin-1")) for each in (origin, host)]
            raise HTTPException(
                403, f"requests from pages of other sites are refused: this one is from {names[0]}, and the service "
                f"was called {names[1]} (in nginx: proxy_set_header Host $http_host)"
            )  # fmt: skip
        if self.needs_key or self._exposure == "anyone":
            return
        if self._exposure == "none":
            raise HTTPException(
                403, "others can reach this service and it has no keys, expected `statepool keys add` first"
            )
        if not _is_loopback(host):
            raise HTTPException(403, "a service without keys answers to the name localhost only")

    def admit(self, headers: Headers, need: str, pool: str | None = None) -> Key:
        """The caller's key; raises 401 or 403 if it does not allow `need` for the pool, or for all pools (None)."""
        self.check_host(headers)
        if not self.needs_key:
            return ANYONE
        scheme, _, given = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            raise HTTPException(401, "this service needs a key: send the header Authorization: Bearer KEY", BEARER)
        key = self._find(digest_of(given.strip()))
        if key is None:
            raise HTTPException(401, "the key is not known", BEARER)
        if need not in ROLES[key.role]:
            expected = [role for role in ROLES if need in ROLES[role]]
            raise HTTPException(403, f"the key {key.name!r} has the role {key.role}, expected {' or '.join(expected)}")
        if pool is not None and not key.may_use(pool):
            raise HTTPException(403, f"the key {key.name!r} is not for the pool {pool[:64]!r}")
        return key

    def _find(self, digest: str) -> Key | None:
        key = self._keys.get(digest)
        return None if key is None or (key.expires_at or float("inf")) <= time() else key

    def is_admin(self, digest: str) -> bool:
        """Whether this is the hash of an admin key for all pools, which opens the dashboard."""
        key = self._find(digest)
        return key is not None and key.role == "admin" and not key.pools


@lru_cache(maxsize=64)
def _is_loopback(host: bytes) -> bool:
    try:
        return urlsplit("//" + host.decode("latin-1")).hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        return False
