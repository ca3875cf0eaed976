"""Bearer keys: the store holds their SHA-256 hashes, so that who reads it learns no key.

A store without keys makes an open service. Once a service has seen a key it stays closed, also without any left.
"""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from hmac import new as new_hmac
from secrets import token_urlsafe
from typing import NamedTuple

from statepool.live.service.refusals import Refused
from statepool.live.stores.store import Store

ROLES = ("decide", "report", "admin")
COOKIE = "statepool"
ASK = {"www-authenticate": "Bearer"}


class Caller(NamedTuple):
    name: str
    role: str


ANYONE = Caller("", "admin")


def digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def add_key(store: Store, name: str, role: str) -> str:
    """A new key, told once."""
    if role not in ROLES:
        raise ValueError(f"role: is {role!r}, expected one of {', '.join(ROLES)}")
    if not 0 < len(name) <= 64 or not name.isprintable():
        raise ValueError(f"name: is {name[:40]!r}, expected 1 to 64 printable characters")
    key = "sp_" + token_urlsafe(32)
    store.add_key(name, digest_of(key), role)
    return key


class Keys:
    """The keys of a store as last read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: list[tuple[str, str, str]] = []
        self.needed = False
        self.reload()

    def reload(self) -> None:
        self._entries = self._store.keys()
        self.needed = self.needed or bool(self._entries)

    def caller(self, authorization: bytes | None, need: str) -> Caller:
        """Who asks, if they may do what takes the role `need` ("read": any role does)."""
        if not self.needed:
            return ANYONE
        if authorization is None or authorization[:7].lower() != b"bearer ":
            raise Refused(401, "this service needs a key: send the header Authorization: Bearer KEY", ASK)
        caller = self._find(digest_of(authorization[7:].strip().decode("utf-8", "surrogateescape")))
        if caller is None:
            raise Refused(401, "the key is not known", ASK)
        if caller.role != "admin" and need not in (caller.role, "read"):
            raise Refused(403, f"the key {caller.name!r} has the role {caller.role}, expected {need} or admin")
        return caller

    def _find(self, digest: str) -> Caller | None:
        return _first(Caller(name, role) for name, known, role in self._entries if compare_digest(known, digest))

    def cookie_of(self, key: str) -> str | None:
        """What the dashboard's cookie holds for an admin's key: nothing that the key could be read from."""
        caller, digest = self._find(digest_of(key)), digest_of(key)
        return _session(digest) if caller is not None and caller.role == "admin" else None

    def admits_cookie(self, cookie: str) -> bool:
        """Whether a cookie is of a key that is still there."""
        known = [_session(digest) for _, digest, role in self._entries if role == "admin"]
        given = cookie.encode("utf-8", "surrogateescape")
        return sum(compare_digest(each.encode(), given) for each in known) > 0


def _session(digest: str) -> str:
    return new_hmac(digest.encode(), b"dashboard", sha256).hexdigest()


def _first(callers: Iterable[Caller]) -> Caller | None:
    return next(iter(list(callers)), None)  # all are compared, whichever fits
