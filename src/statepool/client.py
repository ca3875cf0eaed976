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
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload
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
AnyPool = TypeVar("AnyPool")
Rows = TypeVar("Rows")
Label = str | int | float | bool | tuple[Any, ...]
"""The name of an action, a state or a context; JSON writes a tuple as an array."""
LATER = frozenset((429, 502, 503, 504))
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0


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


KINDS: dict[int, type[ClientError]] = {
    401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict, **dict.fromkeys(LATER, Unavailable),
}  # fmt: skip


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


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _builtin(value: Any) -> Any:
    """Arrays, Series and frames as lists, and NumPy's numbers as numbers."""
    value = value.to_numpy() if hasattr(value, "to_numpy") else value
    if not hasattr(value, "tolist"):
        raise TypeError(f"it holds {type(value).__name__}")
    return value.tolist()


def _path(*parts: str) -> str:
    return "/".join(["/v1/pools", *(quote(part, safe="") for part in parts)])


def check(response: httpx.Response) -> None:
    """Raise what the service refused; something between here and the service may answer without JSON."""
    status = response.status_code
    if status < 300:
        return
    try:
        sentence = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"the answer was {status}: {' '.join(response.text.split())[:200]}"
    raise KINDS.get(status, Invalid if 400 <= status < 500 else ClientError)(sentence, status)


class _Method(Generic[Given, Answer]):
    """A call of both clients, or of their pools, as the request it sends: one returns the answer, one is awaited."""

    def __init__(self, request: Callable[Concatenate[Any, Given], Call[Answer]]) -> None:
        self._request = request

    @overload
    def __get__(self, caller: Client | RemotePool, kind: Any) -> Callable[Given, Answer]: ...
    @overload
    def __get__(self, caller: AsyncClient | AsyncRemotePool, kind: Any) -> Callable[Given, Awaitable[Answer]]: ...
    def __get__(self, caller: Any, kind: Any) -> Any:
        def send(*args: Given.args, **given: Given.kwargs) -> Any:
            return caller._run(self._request(caller, *args, **given))

        return self._request if caller is None else wraps(self._request)(send)


class _Service(Generic[AnyPool]):
    """What both clients do alike: the requests, and what a response means."""

    _kind: Callable[..., Any]
    """The client of httpx."""
    _pool_kind: Callable[..., AnyPool]

    def __init__(
        self, url: str, key: str | None = None, *, tries: int = 5, timeout: float = 60.0, transport: Any = None
    ) -> None:
        self._url = url
        self._pauses = [*(min(FIRST_WAIT * 2**tried, LONGEST_WAIT) for tried in range(tries - 1)), 0.0]
        """Seconds to wait after each try."""
        headers = {"content-type": "application/json"} | ({} if key is None else {"authorization": f"Bearer {key}"})
        self._http = self._kind(base_url=url, headers=headers, timeout=timeout, transport=transport)

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        try:
            content = None if call.body is None else json.dumps(call.body, allow_nan=False, default=_builtin)
        except (TypeError, ValueError) as error:
            raise ValueError(f"body: cannot be written as JSON ({error}), expected labels and finite numbers") from None
        return {"method": call.method, "url": call.path, "content": content}

    def _read(self, call: Call[Answer], result: httpx.Response | httpx.TransportError) -> Answer:
        if isinstance(result, httpx.TransportError):
            given = f"{type(result).__name__}: {result}"
            raise Unavailable(f"{self._url} did not answer in {len(self._pauses)} tries ({given})")
        check(result)
        try:
            return call.read(result.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClientError(f"the answer of {call.path} is not as expected ({error!r})", result.status_code) from None

    def pool(self, name: str) -> AnyPool:
        """The pool of that name; no request is sent yet."""
        return self._pool_kind(self, name)

    @_Method
    def pools(self) -> Call[list[str]]:
        """The names of the service's pools."""
        return Call("GET", _path(), None, lambda answer: list(answer["pools"]))

    @_Method
    def make_pool(
        self, /, name: str, actions: Sequence[Label], states: Sequence[Label], P: Any = None, **more: Any
    ) -> Call[AnyPool]:
        """Create a pool, or confirm that it exists; see `PUT /v1/pools/{name}` for further arguments."""
        body = _given(actions=list(actions), states=list(states), P=P, **more)
        return Call("PUT", _path(name), body, lambda _: self.pool(name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"


class _Pool(Generic[Rows]):
    """What the pools of both clients do alike."""

    def __init__(self, client: Any, name: str) -> None:
        self.name, self._client, self._run = name, client, client._run

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} of {self._client!r})"

    def _to(self, method: str, parts: Sequence[str], body: Any, read: Any = lambda _: None) -> Call[Any]:
        return Call(method, _path(self.name, *parts), body, read)

    @_Method
    def decide(
        self, ticket: str | None = None, *, context: Label | None = None, candidates: Mapping[Any, Any] | None = None
    ) -> Call[Decision]:
        """Draw an action; it is stored before the call returns. A ticket is generated if none is given."""
        # A unique ticket, so that a retry asks for the same decision. Keys of JSON are text, labels may be numbers.
        offers = None if candidates is None else [{"action": key, "row": row} for key, row in candidates.items()]
        body = _given(ticket=ticket or uuid.uuid4().hex, context=context, candidates=offers)
        return self._to("POST", ["decisions"], body, Decision.of)

    @_Method
    def observe(self, ticket: str, state: Label) -> Call[None]:
        """Report the observed state."""
        return self._to("PUT", ["decisions", ticket, "state"], {"state": state})

    @_Method
    def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> Call[None]:
        """Report the outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        return self._to("PUT", ["decisions", ticket, "outcome"], _given(loss=loss, reward=reward))

    @_Method
    def change(self, /, **settings: Any) -> Call[dict[str, Any]]:
        """Change settings; return the new status."""
        return self._to("PATCH", [], settings, dict)

    @_Method
    def status(self) -> Call[dict[str, Any]]:
        """The status: counts, mean outcomes, lift, settings."""
        return self._to("GET", [], None, dict)

    @_Method
    def find(self, ticket: str) -> Call[dict[str, Any]]:
        """What is known of one ticket."""
        return self._to("GET", ["decisions", ticket], None, _row)

    def rows(self, after: int | None = None) -> Rows:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        call = self._to("GET", ["rows"], None, _row)
        streamed: Rows = self._client._stream(
            call if after is None else call._replace(path=f"{call.path}?after={int(after)}")
        )
        return streamed

    @_Method
    def add_action(self, action: Label, row: Any = None, category: Label | None = None) -> Call[None]:
        """Add an action; it starts from what was learnt about the states of its row."""
        return self._action("PUT", action, _given(row=row, category=category))

    @_Method
    def reweight_action(self, action: Label, row: Any) -> Call[None]:
        """Replace the row of P of an action."""
        return self._action("PUT", action, {"row": row, "reweight": True})

    @_Method
    def retire_action(self, action: Label) -> Call[None]:
        """Retire an action; outcomes of its earlier decisions are still learnt."""
        return self._action("DELETE", action, None)

    def _action(self, method: str, action: Label, body: dict[str, Any] | None) -> Call[None]:
        if isinstance(action, str):
            return self._to(method, ["actions", action], body)
        written = json.dumps(action, separators=(",", ":"))
        return self._to(method, ["actions", written], body and body | {"label": action})


class RemotePool(_Pool[Iterator[dict[str, Any]]]):
    """A pool of a service, with the calls of `statepool.Pool`."""


class AsyncRemotePool(_Pool[AsyncIterator[dict[str, Any]]]):
    """A pool of a service, with the calls of `statepool.Pool`, to be awaited."""


class Client(_Service["RemotePool"]):
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

    _kind, _pool_kind = httpx.Client, RemotePool
    _http: httpx.Client

    def _run(self, call: Call[Answer]) -> Answer:
        request = self._request(call)
        for pause in self._pauses:
            try:
                result: Any = self._http.request(**request)
                if result.status_code not in LATER:
                    break
            except httpx.TransportError as error:
                result = error
            time.sleep(pause)
        return self._read(call, result)

    def _stream(self, call: Call[Answer]) -> Iterator[Answer]:
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


class AsyncClient(_Service["AsyncRemotePool"]):
    """A service by its address, as `Client`, with calls to be awaited; of one event loop.

    >>> from statepool.client import AsyncClient
    >>> AsyncClient("http://127.0.0.1:8000", key="secret")
    AsyncClient('http://127.0.0.1:8000')
    """

    _kind, _pool_kind = httpx.AsyncClient, AsyncRemotePool
    _http: httpx.AsyncClient

    async def _run(self, call: Call[Answer]) -> Answer:
        request = self._request(call)
        for pause in self._pauses:
            try:
                result: Any = await self._http.request(**request)
                if result.status_code not in LATER:
                    break
            except httpx.TransportError as error:
                result = error
            await asyncio.sleep(pause)
        return self._read(call, result)

    async def _stream(self, call: Call[Answer]) -> AsyncIterator[Answer]:
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
