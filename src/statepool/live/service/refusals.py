"""What a refused request is answered: a status, and always {"error": "one clear sentence"}."""

import sys
import traceback
from collections.abc import Mapping
from typing import Annotated

import msgspec

from statepool.live.errors import Conflict, NoSuchPool, StoreUnavailable, UnknownTicket


class Refused(Exception):  # noqa: N818
    """A refusal that has nothing to do with a pool."""

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None, detail: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})
        self.detail = sentence if detail is None else detail
        """What the log says of it, where that is more than the caller is told."""


STATUSES: list[tuple[type[Exception], int]] = [
    (UnknownTicket, 404),
    (NoSuchPool, 404),
    (Conflict, 409),
    (ValueError, 422),
]


def refusal(error: Exception) -> Refused:
    """The refusal of any exception; one that nobody foresaw says nothing about the inside."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, StoreUnavailable):
        return Refused(503, str(error), {"retry-after": "1"})
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return Refused(status, " ".join(str(error).split()))
    return Refused(500, "the service made a mistake, which its log tells more about")


def tell_operator(error: Exception) -> None:
    """What nobody foresaw is written where the operator reads, never where the caller does."""
    print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)


class ErrorAnswer(msgspec.Struct):
    """Why a request was refused, in one sentence."""

    error: Annotated[str, msgspec.Meta(description="What was given, what was expected, and where.")]


def body_of(refused: Refused) -> bytes:
    return msgspec.json.encode(ErrorAnswer(refused.sentence))
