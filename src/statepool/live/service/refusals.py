"""Refused requests: a status and {"error": "one sentence"}."""

import sys
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from statepool.live.errors import Conflict, NoSuchPool, StoreUnavailable, UnknownTicket
from statepool.live.service.messages import ErrorAnswer


class Refused(Exception):  # noqa: N818
    """A refusal by the service itself, such as a missing key."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})


STATUSES = {UnknownTicket: 404, NoSuchPool: 404, Conflict: 409, StoreUnavailable: 503}


def refusal(error: Exception) -> Refused:
    """The refusal of any exception. An unexpected one says nothing about the inside."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, HTTPException):
        return Refused(error.status_code, f"{error.detail.lower()}: see /schema", error.headers)
    if not isinstance(error, ValueError | StoreUnavailable):
        return Refused(500, "the service failed, its log says why")
    status = STATUSES.get(type(error), 422)
    return Refused(status, " ".join(str(error).split()), {"retry-after": "1"} if status == 503 else None)


def response_to(error: Exception) -> tuple[Response, str | None]:
    """The response to an exception, and the sentence of a fault of the service or the store, for the log."""
    refused = refusal(error)
    if refused.status == 500:
        print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
    body = msgspec.json.encode(ErrorAnswer(refused.sentence))
    return _json(body, refused), refused.sentence if refused.status >= 500 else None


def _json(body: bytes, refused: Refused) -> Response:
    return Response(body, refused.status, refused.headers, "application/json")


def respond(request: Any, error: Exception) -> Response:
    """Starlette's exception handler."""
    response, request.scope["statepool.fault"] = response_to(error)
    return response
