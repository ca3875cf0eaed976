"""A client of `statepool serve`: the calls of a `Pool`, over HTTP, with retries that cannot decide twice.

    from statepool.client import Client

    with Client("http://127.0.0.1:8000", key="…") as client:
        home = client.pool("home")
        decision = home.decide()
        home.observe(decision.ticket, "cart")
        home.resolve(decision.ticket, reward=19.90)

Every decision carries a ticket that is made here, so a call whose answer got lost is simply made again: the service
knows the ticket and gives the same answer. `AsyncClient` has the same calls for `await`; calls that are under way at
the same time share a transaction of the service. Needs the extra `client` (httpx) and nothing else of this package:
neither Numba nor NumPy is imported.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar
from urllib.parse import quote

from statepool.extras import explained

try:
    import httpx
except ImportError as error:
    raise explained("client", error) from None

__all__ = [
    "AsyncClient", "AsyncRemotePool", "Client", "ClientError", "Conflict", "Decision", "Invalid", "NotAllowed",
    "NotFound", "RemotePool", "Unavailable",
]  # fmt: skip

Answer = TypeVar("Answer")
Given = ParamSpec("Given")
AnyClient = TypeVar("AnyClient")
Label = str | int | float | bool | tuple[Any, ...]
"""The name of an action, a state or a context; JSON writes a tuple as an array."""
LATER = frozenset((429, 502, 503, 504))
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
Attempt = httpx.Response | httpx.TransportError
"""A response, or the error of a request without one."""


class ClientError(Exception):
    """The service did not do what was asked; `status` is that of HTTP, None if there was no answer."""

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status


class Conflict(ClientError, ValueError):  # noqa: N818
    """It contradicts what is stored (409); nothing was changed."""


class NotFound(ClientError, ValueError):  # noqa: N818
    """There is no such pool, ticket or action (404)."""


class NotAllowed(ClientError):  # noqa: N818
    """There is no key, or its role does not allow this (401, 403)."""


class Invalid(ClientError, ValueError):  # noqa: N818
    """Something in the request is not as expected (400, 422 and the like)."""


class Unavailable(ClientError):  # noqa: N818
    """The service did not answer, or answered that it is unavailable, in all tries; the call may be repeated."""


KINDS: dict[int, type[ClientError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict}


@dataclass(frozen=True)
class Decision:
    """The action to take, drawn with `probability`; `ticket` names the decision."""

    ticket: str
    action: Label
    probability: float

    @classmethod
    def of(cls, answer: Any) -> Decision:
        return cls(answer["ticket"], _label(answer["action"]), answer["probability"])


def _row(answer: Any) -> dict[str, Any]:
    """A row as `Pool.find` and `Pool.rows` give it: times are of type datetime, labels may be tuples."""
    labels = {name: _label(answer[name]) for name in ("action", "state", "context")}
    times = {name: answer[name] for name in ("decided_at", "observed_at", "resolved_at")}
    read = {name: None if text is None else datetime.fromisoformat(text) for name, text in times.items()}
    return dict(answer) | labels | read


def _label(value: Any) -> Label:
    return tuple(value) if isinstance(value, list) else value


class Call(NamedTuple, Generic[Answer]):
    """A request, and how its answer is read."""

    method: str
    path: str
    body: Any
    read: Callable[[Any], Answer]


@dataclass(frozen=True)
class PoolCalls:
    """The methods of a pool, each as the request that it sends. The pools of both clients have them."""

    name: str

    def _to(self, method: str, parts: Sequence[str], body: Any, read: Callable[[Any], Answer]) -> Call[Answer]:
        path = "/".join(["/v1/pools", *(quote(part, safe="") for part in (self.name, *parts))])
        return Call(method, path, body, read)

    def make(self, **body: Any) -> Call[dict[str, Any]]:
        return self._to("PUT", [], _given(**body), dict)

    def decide(
        self, ticket: str | None = None, *, context: Label | None = None, candidates: Mapping[Any, Any] | None = None
    ) -> Call[Decision]:
        """Draw an action; it is stored before the call returns. A ticket is generated if none is given."""
        # A unique ticket, so that a retry asks for the same decision. Keys of JSON are text, labels may be numbers.
        offers = None if candidates is None else [{"action": key, "row": row} for key, row in candidates.items()]
        body = _given(ticket=ticket or uuid.uuid4().hex, context=context, candidates=offers)
        return self._to("POST", ["decisions"], body, Decision.of)

    def observe(self, ticket: str, state: Label) -> Call[None]:
        """Report the observed state."""
        return self._to("PUT", ["decisions", ticket, "state"], {"state": state}, _nothing)

    def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> Call[None]:
        """Report the outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        return self._to("PUT", ["decisions", ticket, "outcome"], _given(loss=loss, reward=reward), _nothing)

    def change(self, /, **settings: Any) -> Call[dict[str, Any]]:
        """Change settings; return the new status."""
        return self._to("PATCH", [], settings, dict)

    def status(self) -> Call[dict[str, Any]]:
        """The status: counts, mean outcomes, lift, settings."""
        return self._to("GET", [], None, dict)

    def find(self, ticket: str) -> Call[dict[str, Any]]:
        """What is known of one ticket."""
        return self._to("GET", ["decisions", ticket], None, _row)

    def rows(self, after: int | None = None) -> Call[dict[str, Any]]:
        call = self._to("GET", ["rows"], None, _row)
        return call if after is None else call._replace(path=f"{call.path}?after={int(after)}")

    def add_action(self, action: Label, row: Any = None, category: Label | None = None) -> Call[None]:
        """Add an action; it starts from what was learnt about the states of its row."""
        return self._action("PUT", action, _given(row=row, category=category))

    def reweight_action(self, action: Label, row: Any) -> Call[None]:
        """Replace the row of P of an action."""
        return self._action("PUT", action, {"row": row, "reweight": True})

    def retire_action(self, action: Label) -> Call[None]:
        """Retire an action; outcomes of its earlier decisions are still learnt."""
        return self._action("DELETE", action, None)

    def _action(self, method: str, action: Label, body: dict[str, Any] | None) -> Call[None]:
        if isinstance(action, str):
            return self._to(method, ["actions", action], body, _nothing)
        written = json.dumps(action, separators=(",", ":"))
        return self._to(method, ["actions", written], body and body | {"label": action}, _nothing)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _nothing(_: Any) -> None:
    return None


def _builtin(value: Any) -> Any:
    """Arrays, Series and frames as lists, and NumPy's numbers as numbers."""
    value = value.to_numpy() if hasattr(value, "to_numpy") else value
    if not hasattr(value, "tolist"):
        raise TypeError(f"it holds {type(value).__name__}")
    return value.tolist()


LIST_POOLS: Call[list[str]] = Call("GET", "/v1/pools", None, lambda answer: list(answer["pools"]))


def check(response: httpx.Response) -> None:
    """Raise what the service refused; something between here and the service may answer without JSON."""
    status = response.status_code
    if status < 300:
        return
    try:
        sentence = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"the answer was {status}: {' '.join(response.text.split())[:200]}"
    usual = Unavailable if status in LATER else Invalid if 400 <= status < 500 else ClientError
    raise KINDS.get(status, usual)(sentence, status)


class _Service:
    """What both clients do alike: the requests, and what a response means."""

    _kind: type[Any]
    """The client of httpx."""

    def __init__(
        self, url: str, key: str | None = None, *, tries: int = 5, timeout: float = 60.0, transport: Any = None
    ) -> None:
        self._url, self._tries = url, tries
        headers = {"content-type": "application/json"} | ({} if key is None else {"authorization": f"Bearer {key}"})
        self._http = self._kind(base_url=url, headers=headers, timeout=timeout, transport=transport)

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        try:
            content = None if call.body is None else json.dumps(call.body, allow_nan=False, default=_builtin)
        except (TypeError, ValueError) as error:
            raise ValueError(f"body: cannot be written as JSON ({error}), expected labels and finite numbers") from None
        return {"method": call.method, "url": call.path, "content": content}

    def _wait(self, tried: int, result: Attempt) -> float | None:
        """Seconds before the next try, twice as long each time; None after the last and after a final answer."""
        if tried >= self._tries or (isinstance(result, httpx.Response) and result.status_code not in LATER):
            return None
        return float(min(FIRST_WAIT * 2 ** (tried - 1), LONGEST_WAIT))

    def _read(self, call: Call[Answer], result: Attempt) -> Answer:
        if isinstance(result, httpx.TransportError):
            raise Unavailable(f"{self._url} did not answer in {self._tries} tries ({type(result).__name__}: {result})")
        check(result)
        try:
            return call.read(result.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClientError(f"the answer of {call.path} is not as expected ({error!r})", result.status_code) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"


class Client(_Service):
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
    transport : httpx transport, optional
        For tests.

    Examples
    --------
    >>> from statepool.client import Client
    >>> with Client("http://127.0.0.1:8000", key="secret") as client:
    ...     client.pool("home")
    RemotePool('home' of Client('http://127.0.0.1:8000'))
    """

    _kind = httpx.Client
    _http: httpx.Client

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

    def run(self, call: Call[Answer]) -> Answer:
        """Send a request until it is answered, at most `tries` times."""
        request, tried = self._request(call), 0
        while True:
            tried += 1
            try:
                result: Attempt = self._http.request(**request)
            except httpx.TransportError as error:
                result = error
            if (wait := self._wait(tried, result)) is None:
                return self._read(call, result)
            time.sleep(wait)

    def stream(self, call: Call[Answer]) -> Iterator[Answer]:
        """Yield the lines of a response as they arrive."""
        with self._http.stream(**self._request(call)) as response:
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


class AsyncClient(_Service):
    """A service by its address, as `Client`, with calls to be awaited; of one event loop.

    >>> from statepool.client import AsyncClient
    >>> AsyncClient("http://127.0.0.1:8000", key="secret")
    AsyncClient('http://127.0.0.1:8000')
    """

    _kind = httpx.AsyncClient
    _http: httpx.AsyncClient

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

    async def run(self, call: Call[Answer]) -> Answer:
        """Send a request until it is answered, at most `tries` times."""
        request, tried = self._request(call), 0
        while True:
            tried += 1
            try:
                result: Attempt = await self._http.request(**request)
            except httpx.TransportError as error:
                result = error
            if (wait := self._wait(tried, result)) is None:
                return self._read(call, result)
            await asyncio.sleep(wait)

    async def stream(self, call: Call[Answer]) -> AsyncIterator[Answer]:
        """Yield the lines of a response as they arrive."""
        async with self._http.stream(**self._request(call)) as response:
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


def _sent(
    method: Callable[Concatenate[PoolCalls, Given], Call[Answer]],
) -> Callable[Concatenate[RemotePool, Given], Answer]:
    @wraps(method)
    def send(self: RemotePool, /, *args: Given.args, **given: Given.kwargs) -> Answer:
        return self._client.run(method(self._calls, *args, **given))

    return send


def _awaited(
    method: Callable[Concatenate[PoolCalls, Given], Call[Answer]],
) -> Callable[Concatenate[AsyncRemotePool, Given], Awaitable[Answer]]:
    @wraps(method)
    def send(self: AsyncRemotePool, /, *args: Given.args, **given: Given.kwargs) -> Awaitable[Answer]:
        return self._client.run(method(self._calls, *args, **given))

    return send


class _Remote(Generic[AnyClient]):
    def __init__(self, client: AnyClient, name: str) -> None:
        self.name, self._client, self._calls = name, client, PoolCalls(name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} of {self._client!r})"


class RemotePool(_Remote[Client]):
    """A pool of a service, with the calls of `statepool.Pool`."""

    def rows(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        return self._client.stream(self._calls.rows(after))

    decide, observe, resolve = _sent(PoolCalls.decide), _sent(PoolCalls.observe), _sent(PoolCalls.resolve)
    change, status, find = _sent(PoolCalls.change), _sent(PoolCalls.status), _sent(PoolCalls.find)
    add_action, retire_action = _sent(PoolCalls.add_action), _sent(PoolCalls.retire_action)
    reweight_action = _sent(PoolCalls.reweight_action)


class AsyncRemotePool(_Remote[AsyncClient]):
    """A pool of a service, with the calls of `statepool.Pool`, to be awaited."""

    def rows(self, after: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        return self._client.stream(self._calls.rows(after))

    decide, observe, resolve = _awaited(PoolCalls.decide), _awaited(PoolCalls.observe), _awaited(PoolCalls.resolve)
    change, status, find = _awaited(PoolCalls.change), _awaited(PoolCalls.status), _awaited(PoolCalls.find)
    add_action, retire_action = _awaited(PoolCalls.add_action), _awaited(PoolCalls.retire_action)
    reweight_action = _awaited(PoolCalls.reweight_action)
