"""`statepool anchor`: note where the pools of a store stand, somewhere else."""

from statepool.commands.store import needing_live, open_store


def run(url: str, where: str) -> None:
    with needing_live():
        from statepool.live.anchors import anchors_at, heads

        place, store = anchors_at(where), open_store(url, create=False)
        try:
            noted = heads(store)
        finally:
            store.close()
        place.add(noted)
    for anchor in noted:
        print(f"{anchor.pool}\t{anchor.seq}\t{anchor.hash}")
