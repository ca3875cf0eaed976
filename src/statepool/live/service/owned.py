"""Tickets of a key's own that still wait for an outcome.

Whoever names tickets may try one after another until an action pleases, and leave the rest: those teach the default
loss when they expire. So a key has no more than so many of them open in a pool. Counted is what this process decided;
what others resolved, or what expired, is found in the store when the limit is met.
"""

import asyncio
from collections.abc import Iterable
from itertools import islice
from time import monotonic

from statepool.live.pool import Pool
from statepool.live.service.refusals import Refused

MOST = 100_000
LOOKED_UP = 1_000
LOOK_EVERY = 1.0
UNDER_WAY = 60.0
"""Seconds after which a ticket that the store does not know was never decided."""
ENDED = frozenset(("outcome", "expiry"))


class OwnTickets:
    """`most` for each key in each pool."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: dict[str, dict[str, dict[str, float]]] = {}
        self._looked: dict[tuple[str, str], float] = {}

    def claim(self, pool: str, key: str, tickets: Iterable[str]) -> set[str] | None:
        """Count tickets as the key's; which are new. None: these would be too many, unless some ended elsewhere."""
        mine, new = self._new(pool, key, tickets)
        if len(mine) + len(new) > self._most:
            return None
        mine.update(dict.fromkeys(new, monotonic()))
        return new

    def _new(self, pool: str, key: str, tickets: Iterable[str]) -> tuple[dict[str, float], set[str]]:
        """The key's tickets, and those that are not among them: repeating one that is there is no new one."""
        mine = self._open.setdefault(pool, {}).setdefault(key, {})
        return mine, {ticket for ticket in tickets if ticket not in mine}

    async def look_and_claim(self, pool: Pool, key: str, tickets: Iterable[str]) -> set[str]:
        """Count tickets as the key's after asking the store which have ended, or refuse all of them; which are new."""
        mine, new = self._new(pool.name, key, tickets)
        if len(mine) + len(new) > self._most:
            new -= await self._look(pool, key, mine, new)
        if new and len(mine) + len(new) > self._most:
            waiting = f"{len(mine)} tickets of its own wait for an outcome in pool {pool.name!r}"
            raise Refused(
                429,
                f"key {key!r}: {waiting}, expected at most {self._most}: report outcomes, or let the pool name tickets",
                {"retry-after": "1"},
            )
        mine.update(dict.fromkeys(new, monotonic()))
        return new

    def release(self, pool: str, ticket: str) -> None:
        """It has its outcome, or was refused."""
        for mine in self._open.get(pool, {}).values():
            mine.pop(ticket, None)

    async def _look(self, pool: Pool, key: str, mine: dict[str, float], new: set[str]) -> set[str]:
        """Forget those that have ended; which of the new ones have been decided before."""
        now = monotonic()
        if now - self._looked.get((pool.name, key), float("-inf")) < LOOK_EVERY:
            return set()
        self._looked[pool.name, key] = now
        oldest = dict(islice(mine.items(), LOOKED_UP))
        known = await asyncio.to_thread(_kinds, pool, [*oldest, *new])
        for ticket, since in oldest.items():
            mine.pop(ticket, None)
            kinds = known.get(ticket, ENDED if now - since > UNDER_WAY else frozenset())
            if not kinds & ENDED:
                mine[ticket] = since  # at the end: others are looked up next time
        return new & known.keys()


def _kinds(pool: Pool, tickets: list[str]) -> dict[str, frozenset[str]]:
    with pool.view() as view:
        return {ticket: frozenset(bodies) for ticket, bodies in view.bodies(tickets).items()}
