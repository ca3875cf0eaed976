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
    """It contradicts what is there (409); nothing was changed."""


class NotFound(ClientError, ValueError):  # noqa: N818
    """There is no such pool, ticket or action (404)."""


class NotAllowed(ClientError):  # noqa: N818
    """There is no key, or its role does not allow this (401, 403)."""


class Invalid(ClientError, ValueError):  # noqa: N818
    """Something in the request is not as expected (400, 413, 422 and the like)."""


class Unavailable(ClientError):  # noqa: N818
    """No answer, or none but "later", in all the tries; repeating the call is harmless."""


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
    """What to do: play `action`, which was drawn with `probability`; `ticket` names the decision from here on."""

    ticket: str
    action: Label
    probability: float

    @classmethod
    def of(cls, answer: Any) -> "Decision":
        return cls(answer["ticket"], as_label(answer["action"]), answer["probability"])


@dataclass(frozen=True)
class Row:
    """All that is known of a ticket. What has not come yet is None."""

    ticket: str
    action: Label
    probability: float
    state: Label | None
    loss: float | None
    """Scaled to 0–1."""
    reward: float | None
    """What was reported, where it was reported as a reward."""
    decided_at: datetime | None
    observed_at: datetime | None
    resolved_at: datetime | None
    is_holdout: bool
    """Kept from the learner, to measure it."""
    expired: bool
    """The loss is the default of an outcome that did not come in time."""
    version: int
    """The version of the play that it was drawn from."""
    context: Label | None
    """Who was asking, in a pool that has contexts."""

    @classmethod
    def of(cls, answer: Any) -> "Row":
        labels = {name: as_label(answer[name]) for name in ("action", "state", "context")}
        times = {name: _moment(answer[name]) for name in ("decided_at", "observed_at", "resolved_at")}
        known = {each.name: answer[each.name] for each in fields(cls)}
        return cls(**known | labels | times)


def as_label(value: Any) -> Label:
    """A label as the pool knows it: arrays were tuples."""
    return tuple(value) if isinstance(value, list) else value


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
