"""Who has signed in to the dashboard: each browser has a random session, of which the store holds the hash.

Nothing in the store leads to a session, and every process knows every session. One ends with its key, or after a while.
"""

import time
from secrets import token_urlsafe

from statepool.live.service.keys import Keys, digest_of
from statepool.live.stores.store import Store

COOKIE = "statepool"
SECONDS = 12 * 3600
FRESH = 2.0
"""Seconds for which a session that was found is not looked up again."""
MOST_KEPT = 1_000


class Sessions:
    """Its methods ask the store, so they must not be called in the event loop."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store, self._keys = store, keys
        self._found: dict[str, tuple[str, int, float]] = {}

    def begin(self, key: str) -> str | None:
        """A new session of an admin's key; None if it is no such key."""
        digest = digest_of(key)
        if not self._keys.is_admins(digest):
            return None
        session = token_urlsafe(32)
        self._store.add_session(digest_of(session), digest, int(time.time()) + SECONDS)
        return session

    def admits(self, session: str) -> bool:
        """Whether a session is there, has not ended, and is of a key that is still an admin's."""
        found = self._find(digest_of(session))
        return found is not None and time.time() < found[1] and self._keys.is_admins(found[0])

    def _find(self, digest: str) -> tuple[str, int] | None:
        key, until, seen = self._found.get(digest, ("", 0, float("-inf")))
        if time.monotonic() - seen < FRESH:
            return key, until
        self._found.pop(digest, None)
        found = self._store.session(digest)
        if found is not None:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[digest] = (*found, time.monotonic())
        return found
