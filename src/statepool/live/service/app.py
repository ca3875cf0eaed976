"""The ASGI application: who may call, the routes of the table, the dashboard's pages, metrics and logs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Router

from statepool.live.database import Database
from statepool.live.errors import StoreUnavailable
from statepool.live.service.keys import Exposure, Gate
from statepool.live.service.messages import refusal
from statepool.live.service.monitoring import Metrics, log_request
from statepool.live.service.pools import Pools
from statepool.live.service.routes import ENDPOINTS, Call, Endpoint, match
from statepool.live.service.site import Site

if TYPE_CHECKING:
    from statepool.live.demo import Demo

STRICT = [
    (b"x-frame-options", b"DENY"), (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
]  # fmt: skip
"""Headers of every answer; pages have a policy of their own."""
JSON = [(b"content-type", b"application/json"), *STRICT]
DECODERS = {each.body: msgspec.json.Decoder(each.body).decode for each in ENDPOINTS if each.body is not None}
logger = logging.getLogger("statepool.service")
encode = msgspec.json.Encoder().encode


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
    log
        Where one line per request is written.
    """

    def __init__(
        self, database: Database, *, exposure: Exposure = "localhost", keyed: bool = False, follow: bool = False,
        worker: str = "1", log: IO[str] | None = None,
    ) -> None:  # fmt: skip
        self._log = log
        self.gate, self.pools = Gate(database, exposure, keyed), Pools(database)
        self.metrics = Metrics(database, worker)
        self.demo: Demo | None = None
        self.is_ready = False
        self._site = Router(Site(self.gate, self.pools, may_change=not follow).routes(), lifespan=self._lifespan)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._site(scope, receive, send)
            return
        started, status, route, fault = perf_counter(), 500, "other", None
        path: dict[str, str] = {}

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, own = message["status"], dict(message["headers"])
                message["headers"].extend(each for each in STRICT if each[0] not in own)
            await send(message)

        try:
            found = match(scope["method"], scope["path"])
            if found is None:  # a page, or nothing
                scope["app"] = self  # has the router raise what it would answer as text
                await self._site(scope, receive, watched)
                route = scope.get("statepool.route", route)
            else:
                endpoint, path = found
                route = endpoint.path
                answer = await self._answer(endpoint, path, scope, receive)
                if isinstance(answer, Response):
                    await answer(scope, receive, watched)
                else:
                    status, body = answer
                    headers = [(b"content-length", b"%d" % len(body)), *JSON]
                    await send({"type": "http.response.start", "status": status, "headers": headers})
                    await send({"type": "http.response.body", "body": body})
        except Exception as error:
            refused = refusal(error)
            fault = refused.detail if refused.status_code >= 500 else None
            if refused.status_code == 500:
                logger.error("%s failed", route, exc_info=error)
            body = encode({"error": refused.detail})
            await Response(body, refused.status_code, refused.headers, "application/json")(scope, receive, watched)
        seconds = perf_counter() - started
        self.metrics.add(route, status, seconds)
        if self._log is not None:
            log_request(self._log, scope["method"], route, status, seconds, path.get("name"), fault)

    async def _answer(
        self, endpoint: Endpoint, path: dict[str, str], scope: Any, receive: Any
    ) -> Response | tuple[int, bytes]:
        """Admit, validate, handle, encode: what every route of the table does. No framework is between, for speed."""
        headers = dict(scope["headers"])
        call = Call(self, path, scope["query_string"], headers)
        if endpoint.need:
            call.key = self.gate.admit(headers, endpoint.need, path.get("name"))
        content = await read_body(receive) if endpoint.body is not None else b""
        if content or endpoint.body_required:
            result = await endpoint.handler(call, decode(content, endpoint.body))
        else:
            result = await endpoint.handler(call)
        return result if isinstance(result, Response) else (call.status, encode(result))

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._prepare()), asyncio.create_task(self._reload_keys())]
        if self.demo is not None:
            self.demo.start()
        try:
            yield
        finally:
            if self.demo is not None:
                await asyncio.to_thread(self.demo.stop)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(self.pools.close)

    async def _prepare(self) -> None:
        """Compile the learners of the store's pools; repeated while the store is away."""
        while not self.is_ready:
            try:
                await asyncio.to_thread(self.pools.open_all)
                self.is_ready = True
            except StoreUnavailable as error:
                logger.warning("%s", error)
                await asyncio.sleep(1.0)
            except Exception:
                logger.exception("a learner could not be compiled")
                self.is_ready = True  # its pool says why, and the others work

    async def _reload_keys(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            try:
                await asyncio.to_thread(self.gate.reload)
            except Exception as error:  # the keys that are known stay; without the store they open nothing
                logger.warning("the keys could not be read: %s", error)


async def read_body(receive: Any) -> bytes:
    """The whole body; a proxy in front of the service limits its size."""
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise HTTPException(400, "the request ended before its body did")
    return body


def decode(body: bytes, kind: Any) -> Any:
    """Validate a body; NaN and Infinity are refused, since they are not JSON."""
    try:
        return DECODERS[kind](body)
    except msgspec.ValidationError as error:
        raise HTTPException(422, f"body: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise HTTPException(400, f"body: is not JSON ({error})") from None
