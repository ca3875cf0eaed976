"""`statepool forget`: erase what names a ticket."""

from collections.abc import Sequence

from statepool.commands.store import noted


def run(url: str, name: str, tickets: Sequence[str]) -> None:
    with noted(url, f"forget {len(tickets)} tickets of {name}") as store:
        from statepool.live import Pool
        from statepool.live.forgetting import forget

        if not store.has(name):
            raise ValueError(f"pool: {name!r} is not in this store")
        done = forget(Pool(store, name), tickets)
    erased = f"{done.events} events of {len(set(tickets))} tickets were erased"
    print(f"{name}: {erased}; backups and exports still hold them")
    if done.segments:
        print(
            f"{name}: {done.segments} segments were written anew, and the old files are gone: no backup from before "
            "can be restored without them, so make a new one now"
        )
