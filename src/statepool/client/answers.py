"""What the service answers, as values, and what it refuses, as exceptions that say why in its own sentence."""

import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

Label = str | int | float | bool | tuple[Any, ...]
"""The name of an action, a state or a context; JSON writes a tuple as an array."""


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
    if status in (429, 502, 503, 504):
        return Unavailable(sentence, status)
    kind = KINDS.get(status, Invalid if 400 <= status < 500 else ClientError)
    return kind(sentence, status)


def sentence_of(status: int, text: str) -> str:
    """What a refusal says; something between here and the service may answer without JSON."""
    try:
        said = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return f"the answer was {status}: {' '.join(text.split())[:200]}"
    return str(said)


@dataclass(frozen=True)
class Decision:
    """The action to take, drawn with `probability`; `ticket` names the decision."""

    ticket: str
    action: Label
    probability: float

    @classmethod
    def of(cls, answer: Any) -> "Decision":
        return cls(answer["ticket"], as_label(answer["action"]), answer["probability"])


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
    """Whether it belongs to the holdout."""
    expired: bool
    """Whether the outcome is the default of a window that passed."""
    version: int
    """The policy version that it was drawn from."""
    context: Label | None
    """The context of the request, in a pool with contexts."""
    cursor: int = 0
    """In `rows`: pass the largest one as `after` to continue from there."""

    @classmethod
    def of(cls, answer: Any) -> "Row":
        labels = {name: as_label(answer[name]) for name in ("action", "state", "context")}
        times = {name: _moment(answer[name]) for name in ("decided_at", "observed_at", "resolved_at")}
        known = {each.name: answer.get(each.name) for each in fields(cls)}
        return cls(**known | labels | times)


def as_label(value: Any) -> Label:
    """A label as the pool knows it: arrays were tuples."""
    return tuple(value) if isinstance(value, list) else value


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
