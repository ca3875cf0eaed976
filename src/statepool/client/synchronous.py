"""The client for plain code."""

import json
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import httpx

from statepool.client.answers import Decision, Label, Row
from statepool.client.calls import Answer, Candidates, HttpCall, Pairs, PoolCalls, Tickets, list_pools
from statepool.client.retrying import JSON, Attempt, RetryPolicy, check


class Client:
    """A service by its address: `Client("http://127.0.0.1:8000", key="…")`.

    `key` is one of `statepool keys add`; a service on one's own machine may do without. A call is tried `tries` times
    when the connection fails or the service says "later", with a growing pause, each time with the same ticket; an
    answer may take `timeout` seconds. `transport` is httpx's, for tests. Safe to share between threads.

    >>> from statepool.client import Client
    >>> with Client("http://127.0.0.1:8000", key="secret") as client:
    ...     client.pool("home")
    RemotePool('home' of Client('http://127.0.0.1:8000'))
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        tries: int = 5,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retry = RetryPolicy(url, key, tries, timeout)
        self._http = httpx.Client(base_url=url, headers=self._retry.headers, timeout=timeout, transport=transport)

    def pool(self, name: str) -> "RemotePool":
        """The pool of that name; no request is sent yet."""
        return RemotePool(self, name)

    def pools(self) -> list[str]:
        """The names of the service's pools."""
        return self.send(list_pools())

    def make_pool(
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
    ) -> "RemotePool":
        """Create a pool, or confirm that it exists; see `PUT /v1/pools/{name}` for further arguments."""
        more |= {"learner": learner, "settings": settings, "update": update}
        self.send(PoolCalls(name).make(actions, states, P, more))
        return self.pool(name)

    def send(self, call: HttpCall[Answer]) -> Answer:
        """Send a call until it is answered, at most `tries` times."""
        content, tried = call.content(), 0
        while True:
            tried += 1
            try:
                result: Attempt = self._http.request(call.method, call.path, content=content, headers=JSON)
            except httpx.TransportError as error:
                result = error
            wait = self._retry.wait(tried, result)
            if wait is None:
                return self._retry.read(call, result)
            time.sleep(wait)

    def stream(self, call: HttpCall[Answer]) -> Iterator[Answer]:
        """Yield the lines of a response as they arrive."""
        with self._http.stream(call.method, call.path) as response:
            if response.status_code >= 300:
                response.read()
            check(response)
            for line in response.iter_lines():
                yield call.read(json.loads(line))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._retry.url!r})"


class RemotePool:
    """A pool of a service, with the calls of `statepool.Pool`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client, self._calls = client, PoolCalls(name)

    def decide(
        self, ticket: str | None = None, *, context: Label | None = None, candidates: Candidates | None = None
    ) -> Decision:
        """Draw an action; it is stored before the call returns. A ticket is generated if none is given."""
        return self._client.send(self._calls.decide(ticket, context, candidates))

    def decide_many(
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
        return [each for call in calls for each in self._client.send(call)]

    def observe(self, ticket: str, state: Label) -> None:
        """Report the observed state."""
        self._client.send(self._calls.observe(ticket, state))

    def observe_many(self, pairs: Pairs) -> None:
        """States by ticket, as a dict or as pairs; if some are refused, the others are kept and the first raises."""
        for call in self._calls.observe_many(pairs):
            self._client.send(call)

    def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> None:
        """Report the outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        self._client.send(self._calls.resolve(ticket, loss, reward))

    def resolve_many(self, losses: Pairs = (), rewards: Pairs = ()) -> None:
        """Outcomes by ticket, as dicts or as pairs; if some are refused, the others are kept and the first raises."""
        for call in self._calls.resolve_many(losses, rewards):
            self._client.send(call)

    def change(self, **settings: Any) -> dict[str, Any]:
        """Change settings; return the new status."""
        return self._client.send(self._calls.change(settings))

    def status(self) -> dict[str, Any]:
        """The status: counts, mean outcomes, lift, settings."""
        return self._client.send(self._calls.status())

    def find(self, ticket: str) -> Row:
        """What is known of one ticket."""
        return self._client.send(self._calls.find(ticket))

    def rows(self, after: int | None = None) -> Iterator[Row]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        return self._client.stream(self._calls.rows(after))

    def add_action(self, action: Label, row: Any = None, category: Label | None = None) -> None:
        """Add an action; it starts from what was learnt about the states of its row."""
        self._client.send(self._calls.put_action(action, row, category, reweight=False))

    def reweight_action(self, action: Label, row: Any) -> None:
        """Replace the row of P of an action."""
        self._client.send(self._calls.put_action(action, row, None, reweight=True))

    def retire_action(self, action: Label) -> None:
        """Retire an action; outcomes of its earlier decisions are still learnt."""
        self._client.send(self._calls.retire_action(action))

    def expire(self) -> int:
        """Expire overdue decisions now; return how many there were."""
        return self._client.send(self._calls.expire())

    def __repr__(self) -> str:
        return f"RemotePool({self.name!r} of {self._client!r})"
