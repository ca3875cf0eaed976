"""Bearer keys: the store holds their SHA-256 hashes, so that whoever reads it learns no key.

A key has a role; it may end at a time, and may be for some pools only. Renewing one gives out another with the same
name and rights, and leaves the one before for a while, so that nobody is locked out meanwhile. Without keys a service
is open to whom its `Door` says. Once it has seen a key it stays closed, also without any left.
"""

from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic, time
from typing import Literal, NamedTuple

from statepool.live.errors import StoreUnavailable
from statepool.live.pool import check_name
from statepool.live.service.refusals import Refused
from statepool.live.stores.store import Key, Store

ROLES = ("read", "decide", "report", "admin")
ASK = {"www-authenticate": "Bearer"}
OLDEST = 30.0
"""Seconds for which keys that were read are believed while the store does not answer."""

Door = Literal["anyone", "localhost", "nobody"]
"""Whom a service answers that has no keys; those who call it localhost are on this machine."""


OLD = " (before)"
"""The name of a key that was renewed ends in this."""
OVERLAP = 86_400.0
"""Seconds for which a key that was renewed goes on."""


class Caller(NamedTuple):
    """Who asks; `pools` are those that they may use, all where none is named."""

    name: str
    role: str
    pools: tuple[str, ...] = ()

    def may_use(self, pool: str) -> bool:
        return not self.pools or pool in self.pools


ANYONE = Caller("", "admin")


def digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def add_key(
    store: Store, name: str, role: str, lasts: float | None = None, pools: Sequence[str] = (), now: float | None = None
) -> str:
    """Make a key, which is told this once; it ends after `lasts` seconds, or never (None)."""
    if role not in ROLES:
        raise ValueError(f"role: is {role!r}, expected one of {', '.join(ROLES)}")
    if not 0 < len(name) <= 64 or not name.isprintable():
        raise ValueError(f"name: is {name[:40]!r}, expected 1 to 64 printable characters")
    if name.endswith(OLD):
        raise ValueError(f"name: is {name!r}, expected one that does not end in {OLD!r}: a key before a renewal does")
    key = "sp_" + token_urlsafe(32)
    store.add_key(name, digest_of(key), role, _until(lasts, now), tuple(check_name(pool) for pool in pools))
    return key


def renew_key(
    store: Store, name: str, lasts: float | None = None, overlap: float = OVERLAP, now: float | None = None
) -> str:
    """Make another key in place of one, told this once; the one before goes on for `overlap` seconds."""
    key, until = "sp_" + token_urlsafe(32), _until(overlap, now)
    assert until is not None
    kept = {each.name: each.until for each in store.keys()}  # noqa: SIM118
    if overlap > 0 and (kept.get(name + OLD) or 0) > (time() if now is None else now):
        raise ValueError(
            f"key: {name + OLD!r} of the last renewal is still good, and would end now: wait for its end, drop it "
            f"(statepool keys drop {name + OLD!r}), or end both with an overlap of 0"
        )
    if name.endswith(OLD) or not store.renew_key(name, digest_of(key), name + OLD, until, _until(lasts, now)):
        raise ValueError(f"key: there is none named {name!r} to renew")
    return key


def drop_key(store: Store, name: str) -> None:
    """Also the one before it, where it was renewed: who drops a key locks out all that have it."""
    before = not name.endswith(OLD) and store.drop_key(name + OLD)
    if not store.drop_key(name) and not before:
        raise ValueError(f"key: there is none named {name!r}")


def _until(lasts: float | None, now: float | None) -> int | None:
    if lasts is None:
        return None
    if not 0 <= lasts < 1e10:
        raise ValueError(f"seconds: is {lasts!r}, expected a time that a key can last")
    return int((time() if now is None else now) + lasts)


class Keys:
    """The keys of a store as last read; `needed` from the start where there were some when the service was started."""

    def __init__(self, store: Store, needed: bool = False) -> None:
        self._store = store
        self._entries: list[Key] = []
        self._read_at = 0.0
        self._needed = needed
        self.reload()

    def reload(self) -> None:
        self._entries = self._store.keys()
        self._needed = self._needed or bool(self._entries)
        self._read_at = monotonic()

    def are_needed(self, need: str = "read") -> bool:
        """Whether a caller has to have one; raises while it is not known who has. Metrics are told to whom they were
        told before: a store that is away is what they are looked at for."""
        if need != "metrics" and monotonic() - self._read_at > OLDEST:
            raise StoreUnavailable("the store did not tell which keys there are")
        return self._needed

    def caller(self, authorization: bytes | None, need: str, pool: str | None = None) -> Caller:
        """Who asks, if they may do what takes the role `need` with a pool, or with all; any role does for "read", and
        for "metrics", which are of all pools."""
        if not self.are_needed(need):
            return ANYONE
        if authorization is None or authorization[:7].lower() != b"bearer ":
            raise Refused(401, "this service needs a key: send the header Authorization: Bearer KEY", ASK)
        caller = self._find(digest_of(authorization[7:].strip().decode("utf-8", "surrogateescape")))
        if caller is None:
            raise Refused(401, "the key is not known", ASK)
        if caller.role != "admin" and need not in (caller.role, "read", "metrics"):
            expected = "admin" if need == "admin" else f"{need} or admin"
            raise Refused(403, f"the key {caller.name!r} has the role {caller.role}, expected {expected}")
        if pool is not None and not caller.may_use(pool):
            raise Refused(403, f"the key {caller.name!r} is not for the pool {pool[:64]!r}")
        if pool is None and caller.pools and need != "read":
            raise Refused(403, f"the key {caller.name!r} is for some pools only, expected one for the whole service")
        return caller

    def is_admins(self, digest: str) -> bool:
        """Whether this is the hash of an admin's key for the whole service."""
        caller = self._find(digest)
        return caller is not None and caller.role == "admin" and not caller.pools

    def _find(self, digest: str) -> Caller | None:
        # All are compared, whichever fits.
        found = next(iter([key for key in self._entries if compare_digest(key.hash, digest)]), None)
        if found is None or (found.until is not None and found.until <= time()):
            return None
        return Caller(found.name, found.role, found.pools)
