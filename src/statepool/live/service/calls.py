"""A note in the store of everything that took an administrator and was no mere look: who, from where, what, and how it
ended. It is written after the call; one that changed a pool is in the pool's journal, too."""

import asyncio
from collections.abc import Awaitable, Callable
from time import time_ns

from starlette.requests import Request
from starlette.responses import Response

from statepool.live.errors import StoreUnavailable
from statepool.live.service.refusals import refusal
from statepool.live.stores.store import Call, Store

LONGEST = 200
LOOKS = frozenset(("/metrics",))


async def note_call(store: Store, request: Request, endpoint: Callable[[Request], Awaitable[Response]]) -> Response:
    """The answer of an endpoint, of which a note is on disk before anyone reads it."""
    if request.url.path in LOOKS:
        return await endpoint(request)
    try:
        response = await endpoint(request)
    except Exception as error:
        refused = refusal(error)
        if not isinstance(error, StoreUnavailable):  # else it could not be kept either
            await _keep(store, request, refused.status, refused.sentence)
        raise
    await _keep(store, request, response.status_code, "")
    return response


async def _keep(store: Store, request: Request, status: int, said: str) -> None:
    address = request.client.host if request.client else ""
    did = f"{request.method} {request.url.path}"[:LONGEST]
    call = Call(time_ns() // 1000, request.state.caller.name, address, did, status, said[:LONGEST])
    await asyncio.to_thread(store.add_call, call)
