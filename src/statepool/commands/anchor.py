"""`statepool anchor`: note where the pools of a store stand, somewhere else."""

from statepool.commands.store import answering, opened


def run(url: str, where: str) -> None:
    with answering():
        from statepool.live.anchors import anchors_at, heads

        place = anchors_at(where, url)
        with opened(url) as store:
            noted = heads(store)
        place.add(noted)
    for anchor in noted:
        print(f"{anchor.pool}\t{anchor.seq}\t{anchor.hash}")
