"""The ASGI application: who may pass, what is counted and logged, and a short way for the requests that are many."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import perf_counter
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from statepool.live.errors import StoreUnavailable
from statepool.live.service.keys import Keys
from statepool.live.service.limits import BODY_LIMIT, Buckets, Headers, read_body, read_headers, refuse_strangers
from statepool.live.service.logs import RequestLog
from statepool.live.service.metrics import Metrics
from statepool.live.service.pages import LOGIN, is_page, login_routes, may_see
from statepool.live.service.pools import Pools
from statepool.live.service.refusals import Refused, body_of, refusal
from statepool.live.service.routes import expire, routes
from statepool.live.service.tickets import TicketCall, ticket_call
from statepool.live.stores.store import Store

KEYS_EVERY = 5.0
JSON = (b"content-type", b"application/json")


def create_app(
    store: Store,
    *,
    local: bool = False,
    body_limit: int = BODY_LIMIT,
    rate_limit: float | None = None,
    expire_every: float = 10.0,
    log: RequestLog | None = None,
) -> "Service":
    """The service of a store, which it closes when it stops.

    `local`: without keys, answer only to those who call it localhost. `rate_limit`: requests a second, of each caller.
    """
    return Service(store, local, body_limit, rate_limit, expire_every, log or RequestLog(None))


class Player(Protocol):
    """Something that uses the pools from inside while the service runs, such as the demo."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Service:
    """An ASGI application."""

    def __init__(
        self,
        store: Store,
        local: bool,
        body_limit: int,
        rate_limit: float | None,
        expire_every: float,
        log: RequestLog,
    ) -> None:
        self.pools, self.keys, self.metrics = Pools(store), Keys(store), Metrics()
        self.players: list[Player] = []
        self._local, self._body_limit, self._expire_every, self._log = local, body_limit, expire_every, log
        self._buckets = Buckets(rate_limit) if rate_limit else None
        handlers: dict[Any, Any] = dict.fromkeys(
            (HTTPException, Refused, ValueError, StoreUnavailable, Exception), _refuse
        )
        from statepool.live.dashboard import routes as dashboard_routes

        known = [*routes(self), *login_routes(self.keys)]
        self._paths = {route.endpoint: route.path.replace(":path}", "}") for route in known}
        self._site = Starlette(
            routes=[*known, *dashboard_routes(self.pools)],
            exception_handlers=handlers,
            lifespan=self._life,
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._site(scope, receive, send)
            return
        started = perf_counter()
        call = ticket_call(scope["method"], scope["path"])
        if call is not None:
            status = await self._answer(call, scope, receive, send)
            route, pool = call.route, call.pool
        else:
            status = await self._show(scope, receive, send)
            route, pool = self._route_of(scope), scope.get("path_params", {}).get("name")
        seconds = perf_counter() - started
        self.metrics.add(route, status, seconds)
        self._log.add(scope["method"], route, status, seconds, pool)

    async def _answer(self, call: TicketCall, scope: Any, receive: Any, send: Any) -> int:
        status, headers = 200, [JSON]
        try:
            length = self.admit(scope, call.need).length
            body = await read_body(receive, length, self._body_limit)
            content = await call.answer(self.pools, call, body)
        except Exception as error:
            refused = _logged(error)
            status, content = refused.status, body_of(refused)
            headers += [(name.encode(), value.encode()) for name, value in refused.headers.items()]
        headers.append((b"content-length", b"%d" % len(content)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})
        return status

    async def _show(self, scope: Any, receive: Any, send: Any) -> int:
        """Whatever is not of a ticket; the page of a service with keys asks for one first."""
        status = 500

        async def watch(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        app: Callable[..., Awaitable[None]] = self._site
        try:
            refuse_strangers(read_headers(scope["headers"]), self._local and not self.keys.needed)
            if is_page(scope["path"]) and not may_see(self.keys, scope):
                app = RedirectResponse(LOGIN, 303)
        except Refused as refused:
            app = _response(refused)
        # The site has answered whatever went wrong in it, and raises it again for the log.
        with suppress(Exception):
            await app(scope, receive, watch)
        return status

    def _route_of(self, scope: Any) -> str:
        """The route's pattern, so that logs and metrics hold no tickets."""
        return self._paths.get(scope.get("endpoint")) or ("/dashboard" if is_page(scope["path"]) else "other")

    def admit(self, scope: Any, need: str) -> Headers:
        """Refuses who may not, or too often."""
        headers = read_headers(scope["headers"])
        refuse_strangers(headers, self._local and not self.keys.needed)
        caller = self.keys.caller(headers.authorization, need)
        if self._buckets is not None:
            self._buckets.take(caller.name or (scope.get("client") or ("",))[0])
        return headers

    async def body(self, request: Request) -> bytes:
        return await read_body(request.receive, read_headers(request.scope["headers"]).length, self._body_limit)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        chores = [
            asyncio.create_task(self._warm_up()),
            asyncio.create_task(_repeat(KEYS_EVERY, self._reload_keys)),
            asyncio.create_task(_repeat(self._expire_every, self._expire)),
        ]
        for player in self.players:
            player.start()
        try:
            yield
        finally:
            for chore in chores:
                chore.cancel()
            for player in self.players:
                await asyncio.to_thread(player.stop)
            await asyncio.gather(*chores, return_exceptions=True)
            await self.pools.close()
            self._log.flush()

    async def _warm_up(self) -> None:
        for pool in await asyncio.to_thread(self.pools.all):
            lane = await self.pools.lane(pool.name)
            await lane.warm_up()

    async def _reload_keys(self) -> None:
        await asyncio.to_thread(self.keys.reload)

    async def _expire(self) -> None:
        for pool in await asyncio.to_thread(self.pools.all):
            lane = await self.pools.lane(pool.name)
            if (await lane.call(lane.pool.fold)).settings.expire_after is not None:
                await expire(lane)


async def _repeat(seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await chore()
        except Exception as error:  # the store may be away for a while: the chore is done when it is back
            _logged(error)
        await asyncio.sleep(seconds)


def _refuse(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = Refused(error.status_code, f"{error.detail.lower()}: see /openapi.json", error.headers)
    return _response(_logged(error))


def _response(refused: Refused) -> Response:
    return Response(body_of(refused), refused.status, refused.headers, "application/json")


def _logged(error: Exception) -> Refused:
    """The refusal; what nobody foresaw is written where the operator reads, never where the caller does."""
    refused = refusal(error)
    if refused.status >= 500:
        print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
    return refused
