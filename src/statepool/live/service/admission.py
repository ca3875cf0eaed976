"""Who may pass, how often, and with how many tickets of their own."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from statepool.live.group_commit import size_of
from statepool.live.pool import Pool
from statepool.live.service.keys import Caller, Door, Keys
from statepool.live.service.limits import Headers, TokenBuckets, network_of, refuse_strangers
from statepool.live.service.owned import OwnTickets
from statepool.live.service.refusals import Refused

WRONG_KEYS_A_SECOND = 1.0
WRONG_KEYS_AT_ONCE = 20


Client = tuple[str, int] | None
"""The address and the port of whoever asks, where they have one."""


def address_of(client: Client) -> str:
    return network_of(client[0] if client else "")


class Visit(NamedTuple):
    """A request that was let in, and who made it: a key by its name, or anyone ("")."""

    headers: Headers
    caller: Caller
    payer: str
    buckets: TokenBuckets | None
    own_tickets: OwnTickets

    @property
    def key(self) -> str:
        return self.caller.name

    def pay(self, requests: Sequence[Any]) -> None:
        """A call has paid for one decision; raise 429 if there are more than the rate allows."""
        if self.buckets is not None and (decisions := size_of(requests)) > 1:
            self.buckets.take(self.payer, decisions - 1, paid=1)

    def claim(self, pool: str, tickets: Sequence[str]) -> Collection[str] | None:
        """Count tickets as the key's own, and tell which are new; None: it seems to have too many open, which takes a
        look at the store."""
        return self.own_tickets.claim(pool, self.key, tickets) if self.key and tickets else ()

    async def look_and_claim(self, pool: Pool, tickets: Sequence[str]) -> Collection[str]:
        """The same; raise 429 if the key has too many tickets of its own open."""
        return await self.own_tickets.look_and_claim(pool, self.key, tickets) if self.key and tickets else ()


class Admission:
    """A key that is known is let in whatever was tried from its address: only what is wrong is limited there."""

    def __init__(self, keys: Keys, door: Door, rate_limit: float | None, own_tickets: OwnTickets) -> None:
        self.keys, self._door, self._own_tickets = keys, door, own_tickets
        self._buckets = TokenBuckets(rate_limit, "decisions or other requests") if rate_limit else None
        self._wrong = TokenBuckets(WRONG_KEYS_A_SECOND, "requests without a key that is known", WRONG_KEYS_AT_ONCE)

    def check_door(self, headers: Headers, need: str) -> None:
        """Raise 403 for a page of another site, and without keys for whomever the door keeps out."""
        refuse_strangers(headers, None if self.keys.are_needed(need) else self._door)

    def admit(self, headers: Headers, client: Client, need: str, pool: str | None = None) -> Visit:
        """Raise 401 or 403 without the role or for a pool that the key is not for, 429 above a limit."""
        self.check_door(headers, need)
        try:
            caller = self.keys.caller(headers.authorization, need, pool)
        except Refused as refused:
            if refused.status == 401:
                self.count_wrong_key(client)
            raise
        payer = caller.name or address_of(client)
        if self._buckets is not None:
            self._buckets.take(payer)
        return Visit(headers, caller, payer, self._buckets, self._own_tickets)

    def count_wrong_key(self, client: Client) -> None:
        """Raise 429 if many wrong keys came from this address."""
        self._wrong.take(address_of(client))
