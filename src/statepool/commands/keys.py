"""`statepool keys`: who may decide, report, or all."""

from statepool.commands.store import needing_live, open_store


def add_key(url: str, name: str, role: str) -> str:
    with needing_live():
        from statepool.live.service import keys

        store = open_store(url)
        try:
            return keys.add_key(store, name, role)
        finally:
            store.close()


def list_keys(url: str) -> list[tuple[str, str]]:
    """(name, role) of each."""
    with needing_live():
        store = open_store(url, create=False)
        try:
            kept = store.keys()
            return [(name, role) for name, _, role in kept]
        finally:
            store.close()


def drop_key(url: str, name: str) -> None:
    with needing_live():
        store = open_store(url, create=False)
        try:
            if not store.drop_key(name):
                raise ValueError(f"key: there is none named {name!r}")
        finally:
            store.close()
