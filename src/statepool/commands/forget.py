"""`statepool forget`: erase what names a ticket."""

from collections.abc import Sequence

from statepool.commands.store import noted


def run(url: str, name: str, tickets: Sequence[str]) -> None:
    with noted(url, f"forget {len(tickets)} tickets of {name}") as store:
        from statepool.live import Pool
        from statepool.live.forgetting import forget

        if not store.has(name):
            raise ValueError(f"pool: {name!r} is not in this store")
        count = forget(Pool(store, name), tickets)
    print(f"{name}: {count} events of {len(set(tickets))} tickets were erased; backups and exports still hold them")
