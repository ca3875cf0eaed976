"""The two clients: `Client` for plain code, `AsyncClient` with the same calls for `await`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import httpx

from statepool.client.core import LIST_POOLS, Answer, Attempt, HttpCall, Label, Plan, PoolCalls, Row, Service, check

Given = ParamSpec("Given")
Method = Callable[Concatenate[PoolCalls, Given], Plan[Answer]]


class Client:
    """A service by its address.

    Parameters
    ----------
    url : str
        Such as `http://127.0.0.1:8000`.
    key : str, optional
        One of `statepool keys add`; a service on your own machine may do without.
    tries : int
        How often a call is sent when the connection fails or the service says "later", with growing pauses.
    timeout : float
        Seconds that an answer may take.
    transport : httpx.BaseTransport, optional
        For tests.

    Examples
    --------
    >>> from statepool.client import Client
    >>> with Client("http://127.0.0.1:8000", key="secret") as client:
    ...     client.pool("home")
    RemotePool('home' of Client('http://127.0.0.1:8000'))
    """

    def __init__(
        self, url: str, key: str | None = None, *, tries: int = 5, timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._service = Service(url, key, tries)
        self._http = httpx.Client(**self._service.options(timeout), transport=transport)

    def pool(self, name: str) -> RemotePool:
        """The pool of that name; no request is sent yet."""
        return RemotePool(self, name)

    def pools(self) -> list[str]:
        """The names of the service's pools."""
        return self.run(LIST_POOLS)

    def make_pool(
        self, name: str, actions: Sequence[Label], states: Sequence[Label], P: Any = None, **more: Any
    ) -> RemotePool:
        """Create a pool, or confirm that it exists; see `PUT /v1/pools/{name}` for further arguments."""
        self.run(PoolCalls(name).make(actions=list(actions), states=list(states), P=P, **more))
        return self.pool(name)

    def run(self, plan: Plan[Answer]) -> Answer:
        """Send each request until it is answered, at most `tries` times."""
        return plan.join([self._send(call) for call in plan.calls])

    def _send(self, call: HttpCall) -> Any:
        content, tried = call.content(), 0
        while True:
            tried += 1
            try:
                result: Attempt = self._http.request(call.method, call.path, content=content)
            except httpx.TransportError as error:
                result = error
            if (wait := self._service.wait(tried, result)) is None:
                return self._service.read(call, result)
            time.sleep(wait)

    def stream(self, plan: Plan[Answer]) -> Iterator[Answer]:
        """Yield the lines of a response as they arrive."""
        [call] = plan.calls
        with self._http.stream(call.method, call.path) as response:
            if response.status_code >= 300:
                response.read()
            check(response)
            for line in response.iter_lines():
                yield call.read(json.loads(line))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._service.url!r})"


class AsyncClient:
    """A service by its address, as `Client`, with calls to be awaited; of one event loop.

    >>> from statepool.client import AsyncClient
    >>> AsyncClient("http://127.0.0.1:8000", key="secret")
    AsyncClient('http://127.0.0.1:8000')
    """

    def __init__(
        self, url: str, key: str | None = None, *, tries: int = 5, timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self._service = Service(url, key, tries)
        self._http = httpx.AsyncClient(**self._service.options(timeout), transport=transport)

    def pool(self, name: str) -> AsyncRemotePool:
        """The pool of that name; no request is sent yet."""
        return AsyncRemotePool(self, name)

    async def pools(self) -> list[str]:
        """The names of the service's pools."""
        return await self.run(LIST_POOLS)

    async def make_pool(
        self, name: str, actions: Sequence[Label], states: Sequence[Label], P: Any = None, **more: Any
    ) -> AsyncRemotePool:
        """Create a pool, or confirm that it exists; see `PUT /v1/pools/{name}` for further arguments."""
        await self.run(PoolCalls(name).make(actions=list(actions), states=list(states), P=P, **more))
        return self.pool(name)

    async def run(self, plan: Plan[Answer]) -> Answer:
        """Send each request until it is answered, at most `tries` times."""
        return plan.join([await self._send(call) for call in plan.calls])

    async def _send(self, call: HttpCall) -> Any:
        content, tried = call.content(), 0
        while True:
            tried += 1
            try:
                result: Attempt = await self._http.request(call.method, call.path, content=content)
            except httpx.TransportError as error:
                result = error
            if (wait := self._service.wait(tried, result)) is None:
                return self._service.read(call, result)
            await asyncio.sleep(wait)

    async def stream(self, plan: Plan[Answer]) -> AsyncIterator[Answer]:
        """Yield the lines of a response as they arrive."""
        [call] = plan.calls
        async with self._http.stream(call.method, call.path) as response:
            if response.status_code >= 300:
                await response.aread()
            check(response)
            async for line in response.aiter_lines():
                yield call.read(json.loads(line))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._service.url!r})"


def _sent(method: Method[Given, Answer]) -> Callable[Concatenate[RemotePool, Given], Answer]:
    @wraps(method)
    def send(self: RemotePool, /, *args: Given.args, **given: Given.kwargs) -> Answer:
        return self._client.run(method(self._calls, *args, **given))

    return send


def _awaited(method: Method[Given, Answer]) -> Callable[Concatenate[AsyncRemotePool, Given], Awaitable[Answer]]:
    @wraps(method)
    def send(self: AsyncRemotePool, /, *args: Given.args, **given: Given.kwargs) -> Awaitable[Answer]:
        return self._client.run(method(self._calls, *args, **given))

    return send


class RemotePool:
    """A pool of a service, with the calls of `statepool.Pool`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name, self._client, self._calls = name, client, PoolCalls(name)

    def rows(self, after: int | None = None) -> Iterator[Row]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        return self._client.stream(self._calls.rows(after))

    def __repr__(self) -> str:
        return f"RemotePool({self.name!r} of {self._client!r})"

    decide, decide_many = _sent(PoolCalls.decide), _sent(PoolCalls.decide_many)
    observe, observe_many = _sent(PoolCalls.observe), _sent(PoolCalls.observe_many)
    resolve, resolve_many = _sent(PoolCalls.resolve), _sent(PoolCalls.resolve_many)
    change, status, find = _sent(PoolCalls.change), _sent(PoolCalls.status), _sent(PoolCalls.find)
    add_action, retire_action = _sent(PoolCalls.add_action), _sent(PoolCalls.retire_action)
    reweight_action, expire = _sent(PoolCalls.reweight_action), _sent(PoolCalls.expire)


class AsyncRemotePool:
    """A pool of a service, with the calls of `statepool.Pool`, to be awaited."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name, self._client, self._calls = name, client, PoolCalls(name)

    def rows(self, after: int | None = None) -> AsyncIterator[Row]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        return self._client.stream(self._calls.rows(after))

    def __repr__(self) -> str:
        return f"AsyncRemotePool({self.name!r} of {self._client!r})"

    decide, decide_many = _awaited(PoolCalls.decide), _awaited(PoolCalls.decide_many)
    observe, observe_many = _awaited(PoolCalls.observe), _awaited(PoolCalls.observe_many)
    resolve, resolve_many = _awaited(PoolCalls.resolve), _awaited(PoolCalls.resolve_many)
    change, status, find = _awaited(PoolCalls.change), _awaited(PoolCalls.status), _awaited(PoolCalls.find)
    add_action, retire_action = _awaited(PoolCalls.add_action), _awaited(PoolCalls.retire_action)
    reweight_action, expire = _awaited(PoolCalls.reweight_action), _awaited(PoolCalls.expire)
