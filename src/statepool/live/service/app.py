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
from statepool.live.service.handlers import Call, Handlers
from statepool.live.service.keys import FRESH, Exposure, Gate, Headers
from statepool.live.service.logs import RequestLog
from statepool.live.service.messages import HealthAnswer
from statepool.live.service.metrics import CONTENT_TYPE, Metrics, standings
from statepool.live.service.pools import Pools, in_thread
from statepool.live.service.refusals import FAULT, ROUTE, Refused, respond, response_to
from statepool.live.service.routes import Endpoint, decode, document, match
from statepool.live.service.sessions import Sessions

MAX_BODY = 32 << 20
"""Bytes; a proxy in front of the service may allow less."""
READ_ONLY = Refused(405, "this service is read-only (--follow): send this to one that decides", {"allow": "GET"})
JSON = (b"content-type", b"application/json")
STRICT = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
logger = logging.getLogger("statepool.service")


class BackgroundPlayer(Protocol):
    """Something that uses a pool while the service runs, such as the demo."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


def create_app(
    database: Database, *, exposure: Exposure = "localhost", keyed: bool = False, follow: bool = False,
    worker: str | None = None, log: RequestLog | None = None,
) -> "Service":  # fmt: skip
    """The service of a store, which it closes when it stops.

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
    return Service(database, exposure, keyed, follow, worker, log or RequestLog(None))


class Service:
    """An ASGI application; `pools` and `gate` are for tests and the demo."""

    def __init__(
        self, database: Database, exposure: Exposure, keyed: bool, follow: bool, worker: str | None, log: RequestLog
    ) -> None:
        from statepool.live.dashboard import Dashboard

        self._database, self._follow, self._log = database, follow, log
        self.gate = Gate(database, exposure, keyed)
        self.pools = Pools(database, follow)
        self.metrics, self._handlers = Metrics(worker), Handlers(self.pools)
        self._encode = msgspec.json.Encoder().encode
        self.players: list[BackgroundPlayer] = []
        self._ready = False
        handlers: dict[Any, Any] = dict.fromkeys(
            (HTTPException, Refused, ValueError, StoreUnavailable, Exception), respond
        )
        sessions = Sessions(self.gate, database.session_secret().hex())
        dashboard = Dashboard(self.pools)
        pages = [sessions.page(path, show) for path, show in dashboard.pages()]
        self._site = Starlette(
            routes=[*sessions.login(), *pages, dashboard.static()],
            exception_handlers=handlers, lifespan=self._lifespan,
        )  # fmt: skip

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._site(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], message["headers"]
                named = {name for name, _ in headers}
                headers.extend(each for each in STRICT if each[0] not in named)
            await send(message)

        try:
            found = match(scope["method"], scope["path"])
            if found is None:  # a page, or nothing
                with suppress(Exception):  # Starlette has answered it, and raises it again for the server's log
                    await self._site(scope, receive, watched)
            else:
                status = await self._answer(scope, receive, send, watched, *found)
        except Exception as error:
            await response_to(scope, error)(scope, receive, watched)
        seconds, route = perf_counter() - started, scope.get(ROUTE, "other")
        self.metrics.add(route, status, seconds)
        if self._log.is_on:
            pool = scope.get("path_params", {}).get("name")
            self._log.add(scope["method"], route, status, seconds, pool, scope.get(FAULT))

    async def _answer(
        self, scope: Any, receive: Any, send: Any, watched: Any, endpoint: Endpoint, path: dict[str, str]
    ) -> int:
        """Admit, validate, handle, encode: what every route of the table does. No framework is between, for speed."""
        scope[ROUTE], scope["path_params"] = endpoint.path, path
        headers = dict(scope["headers"])
        if endpoint.handler is None:
            result = await getattr(self, f"_{endpoint.name}")(headers)
        else:
            key = self.gate.admit(headers, endpoint.need, path.get("name"))
            if endpoint.method != "GET" and self._follow:
                raise READ_ONLY
            body = None
            if endpoint.body is not None:
                content = await read_body(receive, headers)
                empty = not content and not endpoint.body_required
                body = endpoint.body() if empty else decode(content, endpoint.body)
            result = await endpoint.handler(self._handlers, Call(path, scope["query_string"], key, body))
        if isinstance(result, Response):
            await result(scope, receive, watched)
            return int(result.status_code)
        status: int
        status, result = result if isinstance(result, tuple) else (200, result)
        content = self._encode(result)
        length = (b"content-length", b"%d" % len(content))
        await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *STRICT]})
        await send({"type": "http.response.body", "body": content})
        return status

    async def _health(self, headers: Headers) -> HealthAnswer:
        return HealthAnswer("up")

    async def _readiness(self, headers: Headers) -> HealthAnswer:
        self.gate.check_host(headers)
        if not self._ready:
            raise Refused(503, "not ready: the learners are being compiled", {"retry-after": "1"})
        await in_thread(self._database.pool_names)
        return HealthAnswer("ready")

    async def _schema(self, headers: Headers) -> dict[str, Any]:
        self.gate.check_host(headers)
        return document()

    async def _metrics(self, headers: Headers) -> Response:
        """While the store is away, without what only the store knows."""
        key = self.gate.admit(headers, "read", stale=True)
        if key.pools:
            raise Refused(403, f"the key {key.name!r} is for some pools only, expected one for the whole service")
        found = None
        with suppress(StoreUnavailable):
            found = await in_thread(lambda: standings(self._database))
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
        while not self._ready:
            try:
                await in_thread(self.pools.compile)
                self._ready = True
                await in_thread(self.pools.open_all)
            except StoreUnavailable as error:
                logger.warning("%s", error)
                await asyncio.sleep(1.0)
            except Exception:
                logger.exception("a learner could not be compiled")
                self._ready = True  # its pool says why, and the others work

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
