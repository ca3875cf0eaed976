"""A note of everything that took an administrator: who, from where, what, and how it ended. It is written after the
call, to the store, or to the log of a service that only follows; one that changed a pool is in the pool's journal, too.
"""

from collections.abc import Awaitable, Callable
from time import time_ns

from starlette.requests import Request
from starlette.responses import Response

from statepool.live.errors import StoreUnavailable
from statepool.live.service.refusals import refusal
from statepool.live.stores.store import Call

LONGEST = 200
Keep = Callable[[Call], Awaitable[None]]


async def note_call(keep: Keep, request: Request, endpoint: Callable[[Request], Awaitable[Response]]) -> Response:
    """The answer of an endpoint, of which a note is kept before anyone reads it."""
    try:
        response = await endpoint(request)
    except Exception as error:
        refused = refusal(error)
        if not isinstance(error, StoreUnavailable):  # else it could not be kept either
            await _keep(keep, request, refused.status, refused.sentence)
        raise
    await _keep(keep, request, response.status_code, "")
    return response


async def _keep(keep: Keep, request: Request, status: int, said: str) -> None:
    address = request.client.host if request.client else ""
    did = f"{request.method} {request.url.path}"[:LONGEST]
    call = Call(time_ns() // 1000, request.state.caller.name, address, did, status, said[:LONGEST])
    await keep(call)
