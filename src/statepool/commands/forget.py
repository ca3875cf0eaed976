"""`statepool forget`: erase what names a ticket."""

from collections.abc import Sequence
from time import time_ns

from statepool.commands.store import needing_live, open_store


def run(url: str, name: str, tickets: Sequence[str]) -> None:
    with needing_live():
        from statepool.live import Pool
        from statepool.live.forgetting import forget
        from statepool.live.stores.store import Call

        store = open_store(url, create=False)
        try:
            if not store.has(name):
                raise ValueError(f"pool: {name!r} is not in this store")
            count = forget(Pool(store, name), tickets)
            store.add_call(Call(time_ns() // 1000, "(command)", "", f"forget {len(tickets)} tickets of {name}", 200))
        finally:
            store.close()
    print(f"{name}: {count} events of {len(set(tickets))} tickets were erased; backups and exports still hold them")
