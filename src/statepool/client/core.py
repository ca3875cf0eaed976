"""What both clients share: the calls as values, what the service answers, and when to try again.

A call is a request that may be sent any number of times with the effect of once: decisions carry a ticket made here.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx

Answer = TypeVar("Answer")
Label = str | int | float | bool | tuple[Any, ...]
"""The name of an action, a state or a context; JSON writes a tuple as an array."""
Pairs = Mapping[str, Any] | Iterable[tuple[str, Any]]
Candidates = Mapping[Any, Any]
"""What may be shown, as {action: row}; a row is a list, an array or a Series of numbers."""
MOST_AT_ONCE = 1_000
"""Entries of one request; more is sent in several."""
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
    """Something in the request is not as expected (400, 413, 422 and the like)."""


class Unavailable(ClientError):  # noqa: N818
    """The service did not answer, or answered that it is unavailable, in all tries; the call may be repeated."""


KINDS: dict[int, type[ClientError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict}


def refusal(status: int, sentence: str) -> ClientError:
    """The exception of a status."""
    usual = Unavailable if status in LATER else Invalid if 400 <= status < 500 else ClientError
    return KINDS.get(status, usual)(sentence, status)


@dataclass(frozen=True)
class Decision:
    """The action to take, drawn with `probability`; `ticket` names the decision."""

    ticket: str
    action: Label
    probability: float

    @classmethod
    def of(cls, answer: Any) -> "Decision":
        return cls(answer["ticket"], _label(answer["action"]), answer["probability"])


@dataclass(frozen=True)
class Row:
    """Everything known of a ticket; None: not reported yet."""

    ticket: str
    action: Label
    probability: float
    state: Label | None
    loss: float | None
    """The outcome scaled by the bounds of the pool: 0 is the best, 1 the worst."""
    reward: float | None
    """The outcome, if it was reported as a reward."""
    decided_at: datetime | None
    observed_at: datetime | None
    resolved_at: datetime | None
    is_holdout: bool
    expired: bool
    """Whether the outcome is the default of a window that passed."""
    version: int
    context: Label | None
    cursor: int = 0
    """In `rows`: pass the largest one as `after` to continue from there."""

    @classmethod
    def of(cls, answer: Any) -> "Row":
        labels = {name: _label(answer[name]) for name in ("action", "state", "context")}
        times = {name: answer[name] for name in ("decided_at", "observed_at", "resolved_at")}
        read = {name: None if text is None else datetime.fromisoformat(text) for name, text in times.items()}
        return cls(**{each.name: answer.get(each.name) for each in fields(cls)} | labels | read)


def _label(value: Any) -> Label:
    return tuple(value) if isinstance(value, list) else value


class HttpCall(NamedTuple):
    """A request, and how its answer is read."""

    method: str
    path: str
    body: Any
    read: Callable[[Any], Any]

    def content(self) -> bytes | None:
        return None if self.body is None else _as_json(self.body)


class Plan(NamedTuple, Generic[Answer]):
    """The requests of one method, sent one after the other, and what their answers make."""

    calls: Sequence[HttpCall]
    join: Callable[[list[Any]], Answer]


LIST_POOLS: Plan[list[str]] = Plan(
    [HttpCall("GET", "/v1/pools", None, lambda answer: list(answer["pools"]))], lambda answers: answers[0]
)


@dataclass(frozen=True)
class PoolCalls:
    """The methods of a pool, each as the requests that it sends. The pools of both clients have them."""

    name: str

    def _call(self, method: str, parts: Sequence[str], body: Any, read: Callable[[Any], Any]) -> HttpCall:
        path = "/".join(["/v1/pools", *(quote(part, safe="") for part in (self.name, *parts))])
        return HttpCall(method, path, body, read)

    def _to(self, method: str, parts: Sequence[str], body: Any, read: Callable[[Any], Answer]) -> Plan[Answer]:
        return Plan([self._call(method, parts, body, read)], lambda answers: answers[0])

    def make(self, **body: Any) -> Plan[dict[str, Any]]:
        return self._to("PUT", [], _given(**body), dict)

    def decide(
        self, ticket: str | None = None, *, context: Label | None = None, candidates: Candidates | None = None
    ) -> Plan[Decision]:
        """Draw an action; it is stored before the call returns. A ticket is generated if none is given."""
        return self._to("POST", ["decisions"], _request(ticket, context, candidates), Decision.of)

    def decide_many(
        self, tickets: int | Iterable[str | None], *, contexts: Sequence[Label] | None = None,
        candidates: Sequence[Candidates] | None = None,
    ) -> Plan[list[Decision]]:  # fmt: skip
        """Several decisions: a number of them, or one for each ticket; a thousand are one durable batch."""
        if isinstance(tickets, int) and tickets >= 0:
            tickets = [None] * tickets
        if isinstance(tickets, str) or not isinstance(tickets, Iterable):
            raise ValueError(f"tickets: is {tickets!r}, expected how many decisions, or a ticket for each")
        columns: list[Any] = [list(tickets)]
        for name, given in (("contexts", contexts), ("candidates", candidates)):
            if given is not None and len(given) != len(columns[0]):
                raise ValueError(f"{name}: has {len(given)}, expected {len(columns[0])}, one for each decision")
            columns.append([None] * len(columns[0]) if given is None else given)
        requests = [_request(*each) for each in zip(*columns, strict=True)]
        calls = [self._call("POST", ["decisions"], {"requests": some}, _decisions) for some in _pieces(requests)]
        return Plan(calls, lambda answers: [decision for answer in answers for decision in answer])

    def observe(self, ticket: str, state: Label) -> Plan[None]:
        """Report the observed state."""
        return self._to("PUT", ["decisions", ticket, "state"], {"state": state}, _nothing)

    def observe_many(self, pairs: Pairs) -> Plan[None]:
        """States by ticket, as a dict or as pairs; if some are refused, the others are kept and the first raises."""
        return self._reports("states", state=pairs)

    def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> Plan[None]:
        """Report the outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        return self._to("PUT", ["decisions", ticket, "outcome"], _given(loss=loss, reward=reward), _nothing)

    def resolve_many(self, losses: Pairs = (), rewards: Pairs = ()) -> Plan[None]:
        """Outcomes by ticket, as dicts or as pairs; if some are refused, the others are kept and the first raises."""
        return self._reports("outcomes", loss=losses, reward=rewards)

    def _reports(self, what: str, **pairs: Pairs) -> Plan[None]:
        entries = [{"ticket": ticket, name: value} for name, each in pairs.items() for ticket, value in _pairs(each)]
        return Plan([self._call("PUT", [what], {what: some}, _raise_first) for some in _pieces(entries)], _nothing)

    def change(self, /, **settings: Any) -> Plan[dict[str, Any]]:
        """Change settings; return the new status."""
        return self._to("PATCH", [], {"settings": settings}, dict)

    def status(self) -> Plan[dict[str, Any]]:
        """The status: counts, mean outcomes, lift, settings."""
        return self._to("GET", [], None, dict)

    def find(self, ticket: str) -> Plan[Row]:
        """What is known of one ticket."""
        return self._to("GET", ["decisions", ticket], None, Row.of)

    def rows(self, after: int | None = None) -> Plan[Row]:
        """Stream all decisions, or those that changed after a cursor of an earlier row (upsert by ticket)."""
        call = self._call("GET", ["rows"], None, Row.of)
        path = call.path if after is None else f"{call.path}?after={int(after)}"
        return Plan([call._replace(path=path)], lambda answers: answers[0])

    def add_action(self, action: Label, row: Any = None, category: Label | None = None) -> Plan[None]:
        """Add an action; it starts from what was learnt about the states of its row."""
        return self._action("PUT", action, _given(row=row, category=category))

    def reweight_action(self, action: Label, row: Any) -> Plan[None]:
        """Replace the row of P of an action."""
        return self._action("PUT", action, {"row": row, "reweight": True})

    def retire_action(self, action: Label) -> Plan[None]:
        """Retire an action; outcomes of its earlier decisions are still learnt."""
        return self._action("DELETE", action, None)

    def _action(self, method: str, action: Label, body: dict[str, Any] | None) -> Plan[None]:
        if isinstance(action, str):
            return self._to(method, ["actions", action], body, _nothing)
        written = json.dumps(action, separators=(",", ":"))
        return self._to(method, ["actions", written], body and body | {"label": action}, _nothing)

    def expire(self) -> Plan[int]:
        """Expire overdue decisions now; return how many there were."""
        return self._to("POST", ["expire"], None, lambda answer: int(answer["expired"]))


def _request(ticket: str | None, context: Label | None, candidates: Candidates | None) -> dict[str, Any]:
    # A unique ticket, so that a retry asks for the same decision.
    request = {"ticket": ticket or uuid.uuid4().hex} | _given(context=context)
    if candidates is None:
        return request
    if not isinstance(candidates, Mapping):
        raise ValueError(f"candidates: is {candidates!r}, expected {{action: row}}")
    if all(isinstance(action, str) for action in candidates):
        return request | {"candidates": dict(candidates)}
    # JSON keys are text.
    return request | {"candidates": [{"action": action, "row": row} for action, row in candidates.items()]}


def _as_json(value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, default=_builtin).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"body: cannot be written as JSON ({error}), expected labels and finite numbers") from None


def _builtin(value: Any) -> Any:
    """Arrays, Series and frames as lists, and NumPy's numbers as numbers."""
    value = value.to_numpy() if hasattr(value, "to_numpy") else value
    if not hasattr(value, "tolist"):
        raise TypeError(f"it holds {type(value).__name__}")
    return value.tolist()


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _pairs(pairs: Pairs) -> list[tuple[str, Any]]:
    listed = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    for pair in listed:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"pairs: has {pair!r}, expected a ticket and what is known of it")
    return listed


def _pieces(entries: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (entries[start : start + MOST_AT_ONCE] for start in range(0, len(entries), MOST_AT_ONCE))


def _decisions(answer: Any) -> list[Decision]:
    return [Decision.of(each) for each in answer["decisions"]]


def _nothing(_: Any) -> None:
    return None


def _raise_first(answer: Any) -> None:
    """Raise the first refusal; the other reports were accepted."""
    for each in answer["refused"]:
        raise refusal(each["status"], each["error"])


@dataclass(frozen=True)
class Service:
    """The address of a service, how often to try, and what a response means."""

    url: str
    key: str | None
    tries: int

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url: is {self.url!r}, expected http://… or https://…")
        if not isinstance(self.tries, int) or self.tries < 1:
            raise ValueError(f"tries: is {self.tries!r}, expected a whole number of at least 1")

    def options(self, timeout: float) -> dict[str, Any]:
        """Of the HTTP client."""
        headers = {} if self.key is None else {"authorization": f"Bearer {self.key}"}
        return {"base_url": self.url, "headers": headers | {"content-type": "application/json"}, "timeout": timeout}

    def wait(self, count: int, result: Attempt) -> float | None:
        """Seconds before the next try: twice as long each time, and no shorter than the service asks for.

        None after the last, and after an answer that is final.
        """
        if count == self.tries or (isinstance(result, httpx.Response) and result.status_code not in LATER):
            return None
        asked = result.headers.get("retry-after", "") if isinstance(result, httpx.Response) else ""
        backoff: float = min(FIRST_WAIT * 2 ** (count - 1), LONGEST_WAIT)
        return max(backoff, min(float(asked), LONGEST_WAIT)) if asked.isdigit() else backoff

    def read(self, call: HttpCall, result: Attempt) -> Any:
        """The answer, or the refusal raised."""
        if isinstance(result, httpx.TransportError):
            raise Unavailable(f"{self.url} did not answer in {self.tries} tries ({type(result).__name__}: {result})")
        check(result)
        try:
            return call.read(result.json())
        except ClientError:
            raise
        except ValueError:
            raise ClientError(f"the answer of {call.path} is not JSON", result.status_code) from None
        except (KeyError, TypeError, AttributeError) as error:
            raise ClientError(f"the answer of {call.path} is not as expected ({error!r})", result.status_code) from None


def check(response: httpx.Response) -> None:
    """Raise what the service refused; something between here and the service may answer without JSON."""
    if response.status_code < 300:
        return
    try:
        sentence = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"the answer was {response.status_code}: {' '.join(response.text.split())[:200]}"
    raise refusal(response.status_code, sentence)
