"""The ASGI application: who may pass, what is counted and logged, and a short way for the requests that are many."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from statepool.live.anchors import Anchoring, Anchors
from statepool.live.errors import StoreUnavailable
from statepool.live.service.admission import Admission, Client, Visit
from statepool.live.service.chores import Chores
from statepool.live.service.connections import Answered
from statepool.live.service.health import Health
from statepool.live.service.keys import Caller, Door, Keys
from statepool.live.service.limits import BODY_LIMIT, Headers, check_length, read_body, read_headers
from statepool.live.service.logs import RequestLog
from statepool.live.service.metrics import Metrics
from statepool.live.service.owned import MOST, OwnTickets
from statepool.live.service.pages import LOGIN, is_page, login_routes, may_see
from statepool.live.service.pools import MOST_POOLS, Pools
from statepool.live.service.refusals import Refused, body_of, refusal, tell_operator
from statepool.live.service.routes import METRICS, routes
from statepool.live.service.sessions import Sessions
from statepool.live.service.tickets import TicketCall, answer, ticket_call
from statepool.live.stores.following import Following
from statepool.live.stores.store import Call, Store

ALIVE = "/healthz"
READING = frozenset(("GET", "HEAD"))
JSON = (b"content-type", b"application/json")
NO_HEADERS: dict[str, str] = {}
FOLLOWS = "this service follows, and changes nothing: ask the one that decides"
STRICT = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


@dataclass(frozen=True)
class Rules:
    """What a service grants. `door`: whom it answers without keys; `keyed`: it had some when it was started;
    `rate_limit`: decisions and other requests a second, of each caller; `most_pending`: tickets of a key's own that may
    wait for an outcome in a pool; `most_pools`: pools that may be made over HTTP; `anchors`: where the
    pools' heads are noted; `follow`: nothing is written, whoever asks; `worker`: what this process is called among
    those behind the same port."""

    door: Door = "localhost"
    keyed: bool = False
    body_limit: int = BODY_LIMIT
    rate_limit: float | None = None
    most_pending: int = MOST
    most_pools: int = MOST_POOLS
    expire_every: float = 10.0
    follow: bool = False
    anchors: Anchors | None = None
    anchor_every: float = 60.0
    worker: str | None = None


def create_app(store: Store, *, log: RequestLog | None = None, **rules: Any) -> "Service":
    """The service of a store, which it closes when it stops; see `Rules`."""
    granted = Rules(**rules)
    return Service(Following(store) if granted.follow else store, granted, log or RequestLog(None))


class BackgroundPlayer(Protocol):
    """Something that uses the pools from inside while the service runs, such as the demo."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Service:
    """An ASGI application."""

    def __init__(self, store: Store, rules: Rules, log: RequestLog) -> None:
        self._rules, self._log = rules, log
        self.health, self.metrics = Health(store, log.say), Metrics(rules.worker)
        self.pools = Pools(store, self.health.note, self.metrics.add_batch, rules.most_pools)
        self.keys = Keys(store, rules.keyed)
        self.players: list[BackgroundPlayer] = []
        self._refuses_writing = rules.follow
        anchoring = None if rules.anchors is None else Anchoring(store, rules.anchors)
        self._chores = Chores(
            self.pools, self.keys, self.health, None if rules.follow else rules.expire_every, anchoring,
            rules.anchor_every,
        )  # fmt: skip
        self._sessions = Sessions(store, self.keys)
        self._admission = Admission(self.keys, rules.door, rules.rate_limit, OwnTickets(rules.most_pending))
        handlers: dict[Any, Any] = dict.fromkeys(
            (HTTPException, Refused, ValueError, StoreUnavailable, Exception), _refuse
        )
        from statepool.live.dashboard import routes as dashboard_routes

        known = [*routes(self), *login_routes(self._sessions, self._admission)]
        self._paths = {route.endpoint: route.path.replace(":anything}", "}") for route in known}
        self._site = Starlette(
            routes=[*known, *dashboard_routes(self.pools)],
            exception_handlers=handlers,
            lifespan=self._life,
        )

    def settings_changed(self, pool: str) -> None:
        self._chores.read_settings_again(pool)

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
        self._count(started, scope["method"], route, status, pool, scope.get(FAULT))

    def _count(self, started: float, method: str, route: str, status: int, pool: str | None, fault: str | None) -> None:
        seconds = perf_counter() - started
        self.metrics.add(route, status, seconds)
        self._log.add(method, route, status, seconds, pool, fault)

    short_call = staticmethod(ticket_call)
    """What a request asks for that may come as a plain call (`take`)."""

    def take(self, call: TicketCall, headers: Headers, client: Client, body: bytes, answered: Answered) -> None:
        """Answer a request about tickets without a task of its own: `connections` hands it over, body and all."""
        started = perf_counter()

        def done(content: bytes | Exception, refused_reports: Sequence[int] = ()) -> None:
            self.metrics.add_refused_reports(refused_reports)
            if isinstance(content, bytes):
                status, fault = 200, None
                answered(status, NO_HEADERS, content)
            else:
                refused, fault = _told(content)
                status = refused.status
                answered(status, refused.headers, body_of(refused))
            self._count(started, call.method, call.route, status, call.pool, fault)

        try:
            visit = self._let_in(call, headers, client)
            check_length(len(body), self._rules.body_limit)
            answer(self.pools, call, body, visit, done)
        except Exception as error:
            done(error)

    def _let_in(self, call: TicketCall, headers: Headers, client: Client) -> Visit:
        visit = self._admission.admit(headers, client, call.need, call.pool)
        if self._refuses_writing:
            raise Refused(405, FOLLOWS, {"allow": "GET"})
        return visit

    async def _answer(self, call: TicketCall, scope: Any, receive: Any, send: Any) -> int:
        """The same for a request that comes as ASGI has it."""
        future: asyncio.Future[tuple[bytes | Exception, Sequence[int]]] = asyncio.get_running_loop().create_future()
        status, headers = 200, [JSON]
        try:
            told = read_headers(scope["headers"])
            visit = self._let_in(call, told, scope.get("client"))
            body = await read_body(receive, told.length, self._rules.body_limit)
            answer(self.pools, call, body, visit, lambda *told: future.set_result(told))
            content, refused_reports = await future
            self.metrics.add_refused_reports(refused_reports)
            if isinstance(content, Exception):
                raise content
        except Exception as error:
            refused, scope[FAULT] = _told(error)
            status, content = refused.status, body_of(refused)
            headers += [(name.encode(), value.encode()) for name, value in refused.headers.items()]
        headers.append((b"content-length", b"%d" % len(content)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})
        return status

    async def _show(self, scope: Any, receive: Any, send: Any) -> int:
        """Answer whatever is not of a ticket; where the service has keys, its pages ask for one first."""
        status = 500

        async def watch(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_missing(message["headers"])]
            await send(message)

        app: Callable[..., Awaitable[None]] = self._site
        try:
            if self._refuses_writing and scope["method"] not in READING and scope["path"] != LOGIN:
                raise Refused(405, FOLLOWS, {"allow": "GET"})
            if scope["path"] != ALIVE:
                need = "metrics" if scope["path"] == METRICS else "read"
                self._admission.check_door(read_headers(scope["headers"]), need)
            if is_page(scope["path"]) and not await may_see(self.keys, self._sessions, scope):
                app = RedirectResponse(LOGIN, 303)
        except Exception as error:
            refused, scope[FAULT] = _told(error)
            app = _response(refused)
        # The site has answered whatever went wrong in it, and raises it again for the log.
        with suppress(Exception):
            await app(scope, receive, watch)
        return status

    def _route_of(self, scope: Any) -> str:
        """The pattern of the route: logs and metrics must hold no tickets."""
        return self._paths.get(scope.get("endpoint")) or ("/dashboard" if is_page(scope["path"]) else "other")

    def admit(self, scope: Any, need: str, pool: str | None = None) -> Visit:
        """Raise 401 or 403 without the role or for a pool that the key is not for, 429 above a limit."""
        return self._admission.admit(read_headers(scope["headers"]), scope.get("client"), need, pool)

    def known_caller(self, scope: Any) -> Caller | None:
        """Who asks, if they may look at pools: anyone may where there are no keys."""
        try:
            return self.keys.caller(read_headers(scope["headers"]).authorization, "read")
        except Refused:
            return None

    async def keep_call(self, call: Call) -> None:
        """A note of what an administrator did."""
        if self._refuses_writing:
            self._log.tell(call)
        else:
            await asyncio.to_thread(self.pools.store.add_call, call)

    async def body(self, request: Request) -> bytes:
        length = read_headers(request.scope["headers"]).length
        return await read_body(request.receive, length, self._rules.body_limit)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        self._chores.start()
        for player in self.players:
            player.start()
        try:
            yield
        finally:
            for player in self.players:
                await asyncio.to_thread(player.stop)
            await self._chores.stop()
            await self.pools.close()
            self.health.close()
            self._log.flush()


def _missing(headers: Any) -> list[tuple[bytes, bytes]]:
    """What every answer to a browser says, where it does not say so itself: no frame, no script, no guessing."""
    said = {name.lower() for name, _ in headers}
    return [(name, value) for name, value in STRICT if name not in said]


FAULT = "statepool.fault"
"""Where a request's scope keeps the sentence of what is our fault or the store's."""


def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = Refused(error.status_code, f"{error.detail.lower()}: see /openapi.json", error.headers)
    refused, request.scope[FAULT] = _told(error)
    return _response(refused)


def _response(refused: Refused) -> Response:
    return Response(body_of(refused), refused.status, refused.headers, "application/json")


def _told(error: Exception) -> tuple[Refused, str | None]:
    """The refusal of an error, and for the log its sentence where the fault is ours or the store's."""
    refused = refusal(error)
    if refused.status == 500:
        tell_operator(error)
    return refused, refused.detail if refused.status >= 500 else None
