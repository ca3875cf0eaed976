"""Refused requests: a status and {"error": "one sentence"}."""

import sys
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from statepool.live.errors import Conflict, NoSuchPool, StoreUnavailable, UnknownTicket
from statepool.live.service.messages import ErrorAnswer

FAULT = "statepool.fault"
"""Key of a request's scope: the sentence of a fault of the service or the store, for the log."""
ROUTE = "statepool.route"
"""The pattern of its route, for logs and metrics, which must hold no tickets."""
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownTicket, 404),
    (NoSuchPool, 404),
    (Conflict, 409),
    (ValueError, 422),
)


class Refused(Exception):  # noqa: N818
    """A refusal by the service itself, such as a missing key."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})


def refusal(error: Exception) -> Refused:
    """The refusal of any exception. An unexpected one says nothing about the inside."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, HTTPException):
        return Refused(error.status_code, f"{error.detail.lower()}: see /schema", error.headers)
    if isinstance(error, StoreUnavailable):
        return Refused(503, one_line(error), {"retry-after": "1"})
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return Refused(status, one_line(error))
    return Refused(500, "the service failed, its log says why")


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def response_to(scope: Any, error: Exception) -> Response:
    """The response to an exception; faults of the service are printed, and noted for the log."""
    refused = refusal(error)
    if refused.status == 500:
        print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
    if refused.status >= 500:
        scope[FAULT] = refused.sentence
    body = msgspec.json.encode(ErrorAnswer(refused.sentence))
    return Response(body, refused.status, refused.headers, "application/json")


def respond(request: Request, error: Exception) -> Response:
    """Starlette's exception handler."""
    return response_to(request.scope, error)
