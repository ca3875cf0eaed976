"""A store that is only read: for a process that follows what others write, on the same store or on a replica of it.

Whatever would write is refused in one sentence. Sessions of the dashboard are kept in memory: a replica takes none.
"""

import time
from contextlib import AbstractContextManager
from typing import NoReturn

from statepool.live.errors import StoreUnavailable
from statepool.live.stores.contents import Contents
from statepool.live.stores.store import Batch, Call, Key, Standings, Store, View

MOST_SESSIONS = 1_000


class Following(Store):
    """Another store, without its pen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, tuple[str, int]] = {}

    def _refuse(self) -> NoReturn:
        raise StoreUnavailable("this process only follows, and writes nothing: ask the service that decides")

    @property
    def connections(self) -> int:  # type: ignore[override]
        return self._store.connections

    def pools(self) -> list[str]:
        return self._store.pools()

    def has(self, name: str) -> bool:
        return self._store.has(name)

    def standings(self) -> Standings:
        return self._store.standings()

    def ensure(self, name: str) -> None:
        self._refuse()

    def batch(self, name: str) -> AbstractContextManager[Batch]:
        self._refuse()

    def view(self, name: str) -> AbstractContextManager[View]:
        return self._store.view(name)

    def keys(self) -> list[Key]:
        return self._store.keys()

    def add_key(self, name: str, digest: str, role: str, until: int | None = None, pools: tuple[str, ...] = ()) -> None:
        self._refuse()

    def renew_key(self, name: str, digest: str, old_name: str, old_until: int, until: int | None) -> bool:
        self._refuse()

    def drop_key(self, name: str) -> bool:
        self._refuse()

    def add_session(self, digest: str, key: str, until: int) -> None:
        now = time.time()
        self._sessions = {each: (of, end) for each, (of, end) in self._sessions.items() if end > now}
        if len(self._sessions) >= MOST_SESSIONS:
            self._refuse()
        self._sessions[digest] = key, until

    def session(self, digest: str) -> tuple[str, int] | None:
        return self._sessions.get(digest)

    def add_call(self, call: Call) -> None:
        self._refuse()

    def calls(self, limit: int) -> list[Call]:
        return self._store.calls(limit)

    def probe(self) -> None:
        self._store.pools()

    def copy_to(self, path: str) -> None:
        self._store.copy_to(path)

    def contents(self) -> AbstractContextManager[Contents]:
        return self._store.contents()

    def fill(self, contents: Contents) -> None:
        self._refuse()

    def close(self) -> None:
        self._store.close()
