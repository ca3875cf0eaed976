"""The ASGI application: who may call, the routes of the table, the dashboard, metrics and logs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import perf_counter
from typing import Any, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response

from statepool.live.database import Database
from statepool.live.errors import StoreUnavailable
from statepool.live.service.keys import FRESH, Exposure, Gate, Headers, Key
from statepool.live.service.logs import RequestLog
from statepool.live.service.metrics import CONTENT_TYPE, Metrics, standings
from statepool.live.service.pools import Pools, in_thread
from statepool.live.service.refusals import Refused, respond, response_to
from statepool.live.service.routes import ENDPOINTS, Call, Endpoint, match
from statepool.live.service.sessions import Sessions

MAX_BODY = 32 << 20
"""Bytes; a proxy in front of the service may allow less."""
READ_ONLY = Refused(405, "this service is read-only (--follow): send this to one that decides", {"allow": "GET"})
STRICT = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
JSON = [(b"content-type", b"application/json"), *STRICT]
DECODERS = {each.body: msgspec.json.Decoder(each.body).decode for each in ENDPOINTS if each.body is not None}
logger = logging.getLogger("statepool.service")
encode = msgspec.json.Encoder().encode


class BackgroundPlayer(Protocol):
    """Something that uses a pool while the service runs, such as the demo."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Service:
    """The service of a store, an ASGI application, which closes the store when it stops.

    Parameters
    ----------
    exposure
        Whom it answers while the store has no keys.
    keyed
        Whether the store had keys when the service was started: then it requires one from the beginning.
    follow
        Whether it only reads.
    worker
        The name of this process among those that share the port.
    """

    def __init__(
        self, database: Database, *, exposure: Exposure = "localhost", keyed: bool = False, follow: bool = False,
        worker: str | None = None, log: RequestLog | None = None,
    ) -> None:  # fmt: skip
        from statepool.live.dashboard import Dashboard

        self._follow, self._log = follow, log or RequestLog(None)
        self.gate, self.pools, self.metrics = Gate(database, exposure, keyed), Pools(database, follow), Metrics(worker)
        self.players: list[BackgroundPlayer] = []
        self.is_ready = False
        handlers: dict[Any, Any] = dict.fromkeys(
            (HTTPException, Refused, ValueError, StoreUnavailable, Exception), respond
        )
        sessions = Sessions(self.gate, database.session_secret().hex())
        dashboard = Dashboard(self.pools, may_change=not follow)
        pages = [sessions.page(*page) for page in dashboard.pages()]
        self._site = Starlette(
            routes=[*sessions.login(), *pages, dashboard.static()],
            exception_handlers=handlers, lifespan=self._lifespan,
        )  # fmt: skip

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._site(scope, receive, send)
            return
        started, route, fault = perf_counter(), "other", None
        path: dict[str, str] = {}
        try:
            found = match(scope["method"], scope["path"])
            if found is None:  # a page, or nothing
                status = await self._show_page(scope, receive, send)
                route, path, fault = scope.get("statepool.route", "other"), {}, scope.get("statepool.fault")
            else:
                endpoint, path = found
                route = endpoint.path
                status = await self._answer(endpoint, path, scope, receive, send)
        except Exception as error:
            response, fault = response_to(error)
            response.raw_headers.extend(STRICT)
            status = response.status_code
            await response(scope, receive, send)
        seconds = perf_counter() - started
        self.metrics.add(route, status, seconds)
        if self._log.is_on:
            self._log.add(scope["method"], route, status, seconds, path.get("name"), fault)

    async def _answer(self, endpoint: Endpoint, path: dict[str, str], scope: Any, receive: Any, send: Any) -> int:
        """Admit, validate, handle, encode: what every route of the table does. No framework is between, for speed."""
        headers = dict(scope["headers"])
        call = Call(self, path, scope["query_string"], headers)
        if endpoint.need:
            call.key = self.gate.admit(headers, endpoint.need, path.get("name"), stale=endpoint.path == "/metrics")
        if endpoint.method != "GET" and self._follow:
            raise READ_ONLY
        if endpoint.body is None:
            result = await endpoint.handler(call)
        else:
            content = await read_body(receive, headers)
            if content or endpoint.body_required:
                result = await endpoint.handler(call, decode(content, endpoint.body))
            else:
                result = await endpoint.handler(call)
        if isinstance(result, Response):
            result.raw_headers.extend(STRICT)
            await result(scope, receive, send)
            return int(result.status_code)
        body = encode(result)
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": call.status, "headers": [length, *JSON]})
        await send({"type": "http.response.body", "body": body})
        return call.status

    async def _show_page(self, scope: Any, receive: Any, send: Any) -> int:
        status = 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], message["headers"]
                named = {name for name, _ in headers}
                headers.extend(each for each in STRICT if each[0] not in named)
            await send(message)

        with suppress(Exception):  # Starlette has answered it, and raises it again for the server's log
            await self._site(scope, receive, watched)
        return status

    async def show_metrics(self, key: Key | None) -> Response:
        """While the store is away, without what only the store knows."""
        if key is not None and key.pools:
            raise Refused(403, f"the key {key.name!r} is for some pools only, expected one for the whole service")
        found = None
        with suppress(StoreUnavailable):
            found = await in_thread(lambda: standings(self.pools.database))
        return Response(self.metrics.expose(found), media_type=CONTENT_TYPE)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._prepare()), asyncio.create_task(self._reload_keys())]
        for player in self.players:
            player.start()
        try:
            yield
        finally:
            for player in self.players:
                await in_thread(player.stop)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await in_thread(self.pools.close)
            self._log.flush()

    async def _prepare(self) -> None:
        """Compile the learners of the store's pools; repeated while the store is away."""
        while not self.is_ready:
            try:
                await in_thread(self.pools.compile)
                self.is_ready = True
                await in_thread(self.pools.open_all)
            except StoreUnavailable as error:
                logger.warning("%s", error)
                await asyncio.sleep(1.0)
            except Exception:
                logger.exception("a learner could not be compiled")
                self.is_ready = True  # its pool says why, and the others work

    async def _reload_keys(self) -> None:
        while True:
            await asyncio.sleep(FRESH)
            with suppress(StoreUnavailable):
                await in_thread(self.gate.reload)


async def read_body(receive: Any, headers: Headers) -> bytes:
    """The whole body; raises 413 if it is larger than MAX_BODY."""
    length = headers.get(b"content-length", b"0")
    size = int(length) if length.isdigit() else 0
    message = await receive() if size <= MAX_BODY else {}
    body: bytes = message.get("body", b"")
    while message.get("more_body") and len(body) <= MAX_BODY:
        message = await receive()
        body += message.get("body", b"")
    if max(size, len(body)) > MAX_BODY:
        raise Refused(413, f"the body is larger than {MAX_BODY} bytes", {"connection": "close"})
    if message["type"] == "http.disconnect":
        raise Refused(400, "the request ended before its body did")
    return body


def decode(body: bytes, kind: Any) -> Any:
    """Validate a body; NaN and Infinity are refused, since they are not JSON."""
    try:
        return DECODERS[kind](body)
    except msgspec.ValidationError as error:
        raise Refused(422, f"body: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(400, f"body: is not JSON ({error})") from None
