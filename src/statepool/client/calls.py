"""Each call as a value: method, path, body, and how to read the response. The clients send them."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from statepool.client.answers import Decision, Label, Row, refusal

Answer = TypeVar("Answer")
Each = TypeVar("Each")
Pairs = Mapping[str, Any] | Iterable[tuple[str, Any]]

Tickets = int | Iterable[str | None]
"""How many decisions, or the ticket of each; None: one is generated."""
Candidates = Mapping[Any, Any]
"""What may be shown, as {action: row}; a row is a list, an array or a Series of numbers."""

MOST_AT_ONCE = 1_000
"""What the service takes in one request; more is sent in several."""
MOST_BYTES = 1 << 19
"""The same, in bytes, with room left for what is written around them."""


@dataclass(frozen=True)
class HttpCall(Generic[Answer]):
    """A request, which may be sent any number of times with the effect of once."""

    method: str
    path: str
    body: Any
    read: Callable[[Any], Answer]

    def content(self) -> bytes | None:
        """The body as JSON; NumPy's numbers are numbers."""
        return None if self.body is None else _as_json(self.body)


@dataclass(frozen=True)
class PoolCalls:
    """The calls of one pool."""

    name: str

    def _path(self, *parts: str) -> str:
        return "/".join(["/v1/pools", *(quote(part, safe="") for part in (self.name, *parts))])

    def decide(self, ticket: str | None, context: Label | None, candidates: Candidates | None) -> HttpCall[Decision]:
        return HttpCall("POST", self._path("decisions"), _request(ticket, context, candidates), Decision.of)

    def decide_many(
        self, tickets: Tickets, contexts: Sequence[Label] | None, candidates: Sequence[Candidates] | None
    ) -> list[HttpCall[list[Decision]]]:
        named = _named(tickets)
        asking = _one_each(contexts, "contexts", len(named))
        offered = _one_each(candidates, "candidates", len(named))
        requests = [_request(*each) for each in zip(named, asking, offered, strict=True)]
        return [HttpCall("POST", self._path("decisions"), {"requests": some}, _decisions) for some in _pieces(requests)]

    def observe(self, ticket: str, state: Label) -> HttpCall[None]:
        return HttpCall("PUT", self._path("decisions", ticket, "state"), {"state": state}, _nothing)

    def observe_many(self, states: Pairs) -> list[HttpCall[None]]:
        entries = [{"ticket": ticket, "state": state} for ticket, state in _pairs(states)]
        return [HttpCall("PUT", self._path("states"), {"states": some}, _raise_first) for some in _pieces(entries)]

    def resolve(self, ticket: str, loss: float | None, reward: float | None) -> HttpCall[None]:
        return HttpCall("PUT", self._path("decisions", ticket, "outcome"), _given(loss=loss, reward=reward), _nothing)

    def resolve_many(self, losses: Pairs, rewards: Pairs) -> list[HttpCall[None]]:
        entries = [{"ticket": ticket, "loss": value} for ticket, value in _pairs(losses)]
        entries += [{"ticket": ticket, "reward": value} for ticket, value in _pairs(rewards)]
        return [HttpCall("PUT", self._path("outcomes"), {"outcomes": some}, _raise_first) for some in _pieces(entries)]

    def make(
        self, actions: Sequence[Label], states: Sequence[Label], P: Any, more: dict[str, Any]
    ) -> HttpCall[dict[str, Any]]:
        body = _given(actions=list(actions), states=list(states), P=_plain_map(P), **more)
        return HttpCall("PUT", self._path(), body, dict)

    def change(self, settings: dict[str, Any]) -> HttpCall[dict[str, Any]]:
        return HttpCall("PATCH", self._path(), {"settings": settings}, dict)

    def status(self) -> HttpCall[dict[str, Any]]:
        return HttpCall("GET", self._path(), None, dict)

    def find(self, ticket: str) -> HttpCall[Row]:
        return HttpCall("GET", self._path("decisions", ticket), None, Row.of)

    def rows(self, after: int | None) -> HttpCall[Row]:
        query = "" if after is None else f"?after={int(after)}"
        return HttpCall("GET", self._path("rows") + query, None, Row.of)

    def put_action(self, action: Label, row: Any, category: Label | None, reweight: bool) -> HttpCall[None]:
        body = _given(row=None if row is None else _plain(row), category=category) | {"reweight": reweight}
        label = {} if isinstance(action, str) else {"label": action}
        return HttpCall("PUT", self._path("actions", _written(action)), body | label, _nothing)

    def retire_action(self, action: Label) -> HttpCall[None]:
        return HttpCall("DELETE", self._path("actions", _written(action)), None, _nothing)

    def expire(self) -> HttpCall[int]:
        return HttpCall("POST", self._path("expire"), None, lambda answer: int(answer["expired"]))


def list_pools() -> HttpCall[list[str]]:
    return HttpCall("GET", "/v1/pools", None, lambda answer: list(answer["pools"]))


def _named(tickets: Tickets) -> list[str | None]:
    if isinstance(tickets, int) and tickets >= 0:
        return [None] * tickets
    if isinstance(tickets, str) or not isinstance(tickets, Iterable):
        raise ValueError(f"tickets: is {tickets!r}, expected how many decisions, or a ticket for each")
    return list(tickets)


def _one_each(given: Sequence[Each] | None, name: str, count: int) -> Sequence[Each | None]:
    if given is not None and len(given) != count:
        raise ValueError(f"{name}: has {len(given)}, expected {count}, one for each decision")
    return [None] * count if given is None else given


def _request(ticket: str | None, context: Label | None, candidates: Candidates | None) -> dict[str, Any]:
    offered = None if candidates is None else _offered(candidates)
    # A unique ticket, so that a retry asks for the same decision.
    return {"ticket": ticket or uuid.uuid4().hex} | _given(context=context, candidates=offered)


def _offered(candidates: Candidates) -> dict[str, list[float]] | list[dict[str, Any]]:
    """An object by action; a list where a label is not text, since JSON keys are."""
    if not isinstance(candidates, Mapping):
        raise ValueError(f"candidates: is {candidates!r}, expected {{action: row}}")
    if all(isinstance(action, str) for action in candidates):
        return {action: _plain(row) for action, row in candidates.items()}
    return [{"action": action, "row": _plain(row)} for action, row in candidates.items()]


def _written(label: Label) -> str:
    """A label in an address: text as it is, anything else as JSON writes it."""
    return label if isinstance(label, str) else json.dumps(label, separators=(",", ":"))


def _as_json(value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, default=_builtin).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"body: cannot be written as JSON ({error}), expected labels and finite numbers") from None


def _builtin(value: Any) -> Any:
    if not hasattr(value, "tolist"):
        raise TypeError(f"it holds {type(value).__name__}")
    return value.tolist()


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(row: Any) -> list[float]:
    """A row of numbers from a list, a NumPy array or a Series."""
    return [float(value) for value in row]


def _plain_map(P: Any) -> Any:
    """A map as JSON: rows of numbers, or such a table for each context."""
    if P is None or isinstance(P, list):
        return P
    if isinstance(P, dict):
        return {context: _plain_map(table) for context, table in P.items()}
    table = P.to_numpy() if hasattr(P, "to_numpy") else P
    return table.tolist() if hasattr(table, "tolist") else [list(row) for row in table]


def _pairs(pairs: Pairs) -> list[tuple[str, Any]]:
    listed = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    for pair in listed:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"pairs: has {pair!r}, expected a ticket and what is known of it")
    return listed


def _pieces(entries: Sequence[Any]) -> list[Any]:
    """Split a batch by the number of entries and by bytes, as the service limits both."""
    pieces: list[list[Any]] = []
    room = 0
    for entry in entries:
        size = len(_as_json(entry))
        if not pieces or len(pieces[-1]) == MOST_AT_ONCE or size > room:
            pieces.append([])
            room = MOST_BYTES
        pieces[-1].append(entry)
        room -= size
    return pieces


def _decisions(answer: Any) -> list[Decision]:
    return [Decision.of(each) for each in answer["decisions"]]


def _nothing(_: Any) -> None:
    return None


def _raise_first(answer: Any) -> None:
    """Raise the first refusal; the other reports were accepted."""
    for each in answer["refused"]:
        raise refusal(each["status"], each["error"])
