"""The client for asynchronous code: the calls of `synchronous`, awaited."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any

import httpx

from statepool.client.answers import Decision, Label, Row
from statepool.client.calls import Answer, Candidates, HttpCall, Pairs, PoolCalls, Tickets, list_pools
from statepool.client.retrying import JSON, Attempt, RetryPolicy, check


class AsyncClient:
    """A service by its address, as `Client`, with calls to be awaited; of one event loop.

    >>> from statepool.client import AsyncClient
    >>> AsyncClient("http://127.0.0.1:8000", key="secret")
    AsyncClient('http://127.0.0.1:8000')
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        tries: int = 5,
        timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retry = RetryPolicy(url, key, tries, timeout)
        self._http = httpx.AsyncClient(base_url=url, headers=self._retry.headers, timeout=timeout, transport=transport)

    def pool(self, name: str) -> "AsyncRemotePool":
        """The pool of that name; no request is sent yet."""
        return AsyncRemotePool(self, name)

    async def pools(self) -> list[str]:
        """The names of the service's pools."""
        return await self.send(list_pools())

    async def make_pool(
        self,
        name: str,
        actions: Sequence[Label],
        states: Sequence[Label],
        P: Any = None,
        *,
        learner: str | dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        update: bool | None = None,
        **more: Any,
    ) -> "AsyncRemotePool":
        """Create a pool, or confirm that it exists; see `PUT /v1/pools/{name}` for further arguments."""
        more |= {"learner": learner, "settings": settings, "update": update}
        await self.send(PoolCalls(name).make(actions, states, P, more))
        return self.pool(name)

    async def send(self, call: HttpCall[Answer]) -> Answer:
        """Send a call until it is answered, at most `tries` times."""
        content, tried = call.content(), 0
        while True:
            tried += 1
            try:
                result: Attempt = await self._http.request(call.method, call.path, content=content, headers=JSON)
            except httpx.TransportError as error:
                result = error
            wait = self._retry.wait(tried, result)
            if wait is None:
                return self._retry.read(call, result)
            await asyncio.sleep(wait)

    async def stream(self, call: HttpCall[Answer]) -> AsyncIterator[Answer]:
        """Yield the lines of a response as they arrive."""
        async with self._http.stream(call.method, call.path) as response:
            if response.status_code >= 300:
                await response.aread()
            check(response)
            async for line in response.aiter_lines():
                yield call.read(json.loads(line))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._retry.url!r})"


class AsyncRemotePool:
    """A pool of a service, with the calls of `statepool.Pool`."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self._client, self._calls = client, PoolCalls(name)

    async def decide(
        self, ticket: str | None = None, *, context: Label | None = None, candidates: Candidates | None = None
    ) -> Decision:
        """Draw an action; it is stored before the call returns. A ticket is generated if none is given."""
        return await self._client.send(self._calls.decide(ticket, context, candidates))

    async def decide_many(
        self,
        tickets: Tickets,
        *,
        contexts: Sequence[Label] | None = None,
        candidates: Sequence[Candidates] | None = None,
    ) -> list[Decision]:
        """Several decisions: a number of them, or one for each ticket; with contexts or candidates, one for each.

        A thousand go into one request, which is one durable batch: if one of them is refused, none of these is decided.
        """
        calls = self._calls.decide_many(tickets, contexts, candidates)
        return [each for call in calls for each in await self._client.send(call)]

    async def observe(self, ticket: str, state: Label) -> None:
        """Report the observed state."""
        await self._client.send(self._calls.observe(ticket, state))

    async def observe_many(self, pairs: Pairs) -> None:
        """States by ticket, as a dict or as pairs; if some are refused, the others are kept and the first raises."""
        for call in self._calls.observe_many(pairs):
            await self._client.send(call)

    async def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> None:
        """Report the outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        await self._client.send(self._calls.resolve(ticket, loss, reward))

    async def resolve_many(self, losses: Pairs = (), rewards: Pairs = ()) -> None:
        """Outcomes by ticket, as dicts or as pairs; if some are refused, the others are kept and the first raises."""
        for call in self._calls.resolve_many(losses, rewards):
            await self._client.send(call)

    async def change(self, **settings: Any) -> dict[str, Any]:
        """Change settings; return the new status."""
        return await self._client.send(self._calls.change(settings))

    async def status(self) -> dict[str, Any]:
        """The status: counts, mean outcomes, lift, settings."""
        return await self._client.send(self._calls.status())

    async def find(self, ticket: str) -> Row:
        """What is known of one ticket."""
        return await self._client.send(self._calls.find(ticket))

    def rows(self, after: int | None = None) -> AsyncIterator[Row]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        return self._client.stream(self._calls.rows(after))

    async def add_action(self, action: Label, row: Any = None, category: Label | None = None) -> None:
        """Add an action; it starts from what was learnt about the states of its row."""
        await self._client.send(self._calls.put_action(action, row, category, reweight=False))

    async def reweight_action(self, action: Label, row: Any) -> None:
        """Replace the row of P of an action."""
        await self._client.send(self._calls.put_action(action, row, None, reweight=True))

    async def retire_action(self, action: Label) -> None:
        """Retire an action; outcomes of its earlier decisions are still learnt."""
        await self._client.send(self._calls.retire_action(action))

    async def expire(self) -> int:
        """Expire overdue decisions now; return how many there were."""
        return await self._client.send(self._calls.expire())

    def __repr__(self) -> str:
        return f"AsyncRemotePool({self.name!r} of {self._client!r})"
