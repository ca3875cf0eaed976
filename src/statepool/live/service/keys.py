"""Bearer keys: the store holds their SHA-256 hashes, so that who reads it learns no key.

Without keys a service is open to whom its `Door` says. Once it has seen a key it stays closed, also without any left.
"""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic
from typing import Literal, NamedTuple

from statepool.live.errors import StoreUnavailable
from statepool.live.service.refusals import Refused
from statepool.live.stores.store import Store

ROLES = ("decide", "report", "admin")
ASK = {"www-authenticate": "Bearer"}
OLDEST = 30.0
"""Seconds for which keys that were read are believed while the store does not answer."""

Door = Literal["anyone", "localhost", "nobody"]
"""Whom a service answers that has no keys; those who call it localhost are on this machine."""


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
    """The keys of a store as last read; `needed` from the start where there were some when the service was started."""

    def __init__(self, store: Store, needed: bool = False) -> None:
        self._store = store
        self._entries: list[tuple[str, str, str]] = []
        self._read_at = 0.0
        self._needed = needed
        self.reload()

    def reload(self) -> None:
        self._entries = self._store.keys()
        self._needed = self._needed or bool(self._entries)
        self._read_at = monotonic()

    @property
    def needed(self) -> bool:
        """Whether a caller has to have one; raises while it is not known who has."""
        if monotonic() - self._read_at > OLDEST:
            raise StoreUnavailable("the store did not tell which keys there are")
        return self._needed

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

    def is_admins(self, digest: str) -> bool:
        """Whether this is the hash of an admin's key."""
        caller = self._find(digest)
        return caller is not None and caller.role == "admin"

    def _find(self, digest: str) -> Caller | None:
        return _first(Caller(name, role) for name, known, role in self._entries if compare_digest(known, digest))


def _first(callers: Iterable[Caller]) -> Caller | None:
    return next(iter(list(callers)), None)  # all are compared, whichever fits
