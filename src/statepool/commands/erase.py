"""`statepool erase`: remove what names a person from decisions."""

from collections.abc import Sequence

from statepool.commands.store import opened


def run(url: str, name: str, tickets: Sequence[str]) -> None:
    """Erase tickets: all of them, or none if one is not known."""
    from statepool.live.pool import Pool

    with opened(url, read_only=False) as database, Pool.open(database, name) as pool:
        for ticket in tickets:
            pool.find(ticket)
        for ticket in tickets:
            pool.erase(ticket)
    print(f"{name}: {len(tickets)} ticket{'' if len(tickets) == 1 else 's'} erased")
