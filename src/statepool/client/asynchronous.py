"""The client for asynchronous code: the calls of `synchronous`, awaited."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any

import httpx

from statepool.client.answers import Decision, Label, Row
from statepool.client.calls import Answer, Candidates, HttpCall, Pairs, PoolCalls, Tickets, list_pools
from statepool.client.retrying import JSON, Manner, Tried, check


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
        self._manner = Manner(url, key, tries, timeout)
        self._http = httpx.AsyncClient(base_url=url, headers=self._manner.headers, timeout=timeout, transport=transport)

    def pool(self, name: str) -> "AsyncRemotePool":
        """The pool of that name; nothing is asked of the service yet."""
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
        """Make a pool, or make sure that it is there; see `PUT /v1/pools/{name}` for what else it takes."""
        more |= {"learner": learner, "settings": settings, "update": update}
        await self.send(PoolCalls(name).make(actions, states, P, more))
        return self.pool(name)

    async def send(self, call: HttpCall[Answer]) -> Answer:
        """Send a call until it is answered, at most `tries` times."""
        content, tried = call.content(), 0
        while True:
            tried += 1
            try:
                came: Tried = await self._http.request(call.method, call.path, content=content, headers=JSON)
            except httpx.TransportError as error:
                came = error
            wait = self._manner.wait(tried, came)
            if wait is None:
                return self._manner.read(call, came)
            await asyncio.sleep(wait)

    async def stream(self, call: HttpCall[Answer]) -> AsyncIterator[Answer]:
        """The lines of an answer, read as they come."""
        async with self._http.stream(call.method, call.path) as response:
            if response.status_code >= 300:
                await response.aread()
            check(response)
            async for line in response.aiter_lines():
                yield call.read(json.loads(line))

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._manner.url!r})"


class AsyncRemotePool:
    """A pool of a service, with the calls of `statepool.Pool`."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self._client, self._calls = client, PoolCalls(name)

    async def decide(
        self, ticket: str | None = None, *, context: Label | None = None, candidates: Candidates | None = None
    ) -> Decision:
        """An action to play, on disk before it is told. A ticket is made here if you give none."""
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
        """The state that was seen."""
        await self._client.send(self._calls.observe(ticket, state))

    async def observe_many(self, pairs: Pairs) -> None:
        """States by ticket, as a dict or as pairs; if some are refused, the others are kept and the first raises."""
        for call in self._calls.observe_many(pairs):
            await self._client.send(call)

    async def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> None:
        """The outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        await self._client.send(self._calls.resolve(ticket, loss, reward))

    async def resolve_many(self, losses: Pairs = (), rewards: Pairs = ()) -> None:
        """Outcomes by ticket, as dicts or as pairs; if some are refused, the others are kept and the first raises."""
        for call in self._calls.resolve_many(losses, rewards):
            await self._client.send(call)

    async def change(self, **settings: Any) -> dict[str, Any]:
        """Other settings from now on; the status with them."""
        return await self._client.send(self._calls.change(settings))

    async def status(self) -> dict[str, Any]:
        """What the pool adds up to: counts, losses, lift, settings."""
        return await self._client.send(self._calls.status())

    async def find(self, ticket: str) -> Row:
        """What is known of one ticket."""
        return await self._client.send(self._calls.find(ticket))

    def rows(self) -> AsyncIterator[Row]:
        """Every decision, in order, read as they come."""
        return self._client.stream(self._calls.rows())

    async def add_action(self, action: Label, row: Any = None, category: Label | None = None) -> None:
        """A new action, which starts with everything that was learnt about the states of its row."""
        await self._client.send(self._calls.put_action(action, row, category, reweight=False))

    async def reweight_action(self, action: Label, row: Any) -> None:
        """Another row of P for an action."""
        await self._client.send(self._calls.put_action(action, row, None, reweight=True))

    async def retire_action(self, action: Label) -> None:
        """Play an action no more; its outcomes in flight still teach."""
        await self._client.send(self._calls.retire_action(action))

    async def expire(self) -> int:
        """Give overdue decisions the default loss; how many there were."""
        return await self._client.send(self._calls.expire())

    def __repr__(self) -> str:
        return f"AsyncRemotePool({self.name!r} of {self._client!r})"
