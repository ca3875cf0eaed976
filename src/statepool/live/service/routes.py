"""All other requests: pools, their catalogue and settings, what is known of a ticket, the state of the service."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from itertools import islice
from typing import Any, Protocol

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from statepool.live.errors import Conflict, StoreUnavailable
from statepool.live.pool import Pool
from statepool.live.requests import AddAction, Change, Expire, RetireAction, ReweightAction
from statepool.live.service.admission import Visit
from statepool.live.service.answers import ActionAnswer, ExpiryAnswer, HealthAnswer, NamesAnswer, TicketAnswer
from statepool.live.service.bodies import ActionBody, PoolBody, decode
from statepool.live.service.calls import note_call
from statepool.live.service.creation import known_settings, make_pool
from statepool.live.service.health import Health
from statepool.live.service.keys import Caller
from statepool.live.service.metrics import CONTENT_TYPE, Metrics, Reading
from statepool.live.service.openapi import document
from statepool.live.service.pools import Pools, PoolWorker
from statepool.live.service.refusals import Refused
from statepool.live.service.summary import summarise
from statepool.live.service.tickets import DECISIONS
from statepool.live.status import Vitals
from statepool.live.stores.store import Call

POOL = "/v1/pools/{name}"
METRICS = "/metrics"
ROWS_AT_ONCE = 500
STORE_SECONDS = 5.0
MOST_NAMED = 5

Endpoint = Callable[[Request], Awaitable[Response]]


class _Anything(Convertor[str]):
    """What is left of a path, whatever is in it: a label may hold slashes and ends of lines."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anything", _Anything())


class Host(Protocol):
    """What these routes need of the service around them."""

    pools: Pools
    metrics: Metrics
    health: Health

    def admit(self, scope: Any, need: str, pool: str | None = None) -> Visit: ...

    def known_caller(self, scope: Any) -> Caller | None: ...

    async def keep_call(self, call: Call) -> None: ...

    def settings_changed(self, pool: str) -> None: ...

    async def body(self, request: Request) -> bytes: ...


def reply(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")


def routes(host: Host) -> list[Route]:
    """Everything under /v1 but the requests of `tickets`, and the small routes beside it."""
    site = _Site(host)
    table: list[tuple[str, str, Endpoint, str | None]] = [
        ("GET", "/v1/pools", site.list_pools, "read"),
        ("GET", POOL, site.show_pool, "read"),
        ("PUT", POOL, site.put_pool, "admin"),
        ("PATCH", POOL, site.change_pool, "admin"),
        ("POST", f"{POOL}/expire", site.expire, "admin"),
        ("GET", f"{POOL}/rows", site.rows, "admin"),
        ("PUT", f"{POOL}/actions/{{action:anything}}", site.put_action, "admin"),
        ("DELETE", f"{POOL}/actions/{{action:anything}}", site.retire_action, "admin"),
        ("GET", DECISIONS, site.refuse_reading, "read"),
        ("GET", f"{DECISIONS}/{{ticket:anything}}", site.show_ticket, "read"),
        ("GET", "/openapi.json", site.show_document, None),
        ("GET", "/healthz", site.show_health, None),
        ("GET", "/readyz", site.show_readiness, None),
        ("GET", METRICS, site.show_metrics, "metrics"),
    ]
    return [Route(path, _guarded(host, endpoint, need), methods=[method]) for method, path, endpoint, need in table]


def _guarded(host: Host, endpoint: Endpoint, need: str | None) -> Endpoint:
    async def guarded(request: Request) -> Response:
        if need is None:
            return await endpoint(request)
        visit = host.admit(request.scope, need, request.path_params.get("name"))
        request.state.caller = visit.caller
        return await (note_call(host.keep_call, request, endpoint) if need == "admin" else endpoint(request))

    return guarded


class _Site:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._pools = host.pools

    async def _worker(self, request: Request) -> PoolWorker:
        return await self._pools.worker(request.path_params["name"])

    async def _ask(self, request: Request, question: Any) -> Any:
        return await (await self._worker(request)).ask_one(question)

    async def list_pools(self, request: Request) -> Response:
        names = await asyncio.to_thread(self._pools.names)
        return reply(NamesAnswer([name for name in names if request.state.caller.may_use(name)]))

    async def show_pool(self, request: Request) -> Response:
        worker = await self._worker(request)
        return reply(await worker.call(lambda: summarise(worker.pool)))

    async def put_pool(self, request: Request) -> Response:
        name, asked = request.path_params["name"], decode(await self._host.body(request), PoolBody)
        created = await asyncio.to_thread(self._open, name, asked)
        worker = await self._worker(request)
        if created:
            await worker.call(worker.pool.warm_up)
            self._host.health.note(name, None)
        return reply(await worker.call(lambda: summarise(worker.pool)), 201 if created else 200)

    def _open(self, name: str, asked: PoolBody) -> bool:
        created = not self._pools.has(name)
        if created and len(self._pools.names()) >= self._pools.most:
            raise Refused(429, f"pool: the store holds {self._pools.most} pools, expected no more to be made here")
        self._pools.adopt(make_pool(self._pools.store, name, asked))
        return created

    async def change_pool(self, request: Request) -> Response:
        settings = decode(await self._host.body(request), dict[str, Any])
        if isinstance(settings.get("settings"), dict):
            unknown = sorted(settings.keys() - {"settings"})
            if unknown:
                raise Refused(422, f"body: {unknown[0]!r} is not known beside settings")
            settings = settings["settings"]  # as PUT has them; without the outer name is the older form
        await self._ask(request, Change(known_settings(settings)))
        self._host.settings_changed(request.path_params["name"])
        return await self.show_pool(request)

    async def expire(self, request: Request) -> Response:
        worker = await self._worker(request)
        return reply(ExpiryAnswer(await expire(worker)))

    async def rows(self, request: Request) -> Response:
        worker = await self._worker(request)
        lines = _lines(worker.pool)
        first = await anext(lines, b"")  # what cannot be read is refused, as long as no answer has begun

        async def every() -> AsyncIterator[bytes]:
            async with aclosing(lines):
                yield first
                async for piece in lines:
                    yield piece

        return StreamingResponse(every(), media_type="application/jsonl")

    async def put_action(self, request: Request) -> Response:
        asked, worker = decode(await self._host.body(request), ActionBody), await self._worker(request)
        text = request.path_params["action"]
        label = await worker.call(lambda: _find_action(worker.pool, text))
        if asked.label is not msgspec.UNSET:
            label = _agree(text, label, asked.label)
        elif label is None:
            label = text
        if asked.reweight:
            if asked.row is None:
                raise ValueError("row: is missing, expected a number a state")
            await self._ask(request, ReweightAction(label, asked.row))
        else:
            await self._ask(request, AddAction(label, asked.row, asked.category))
        return reply(ActionAnswer(label))

    async def retire_action(self, request: Request) -> Response:
        worker, text = await self._worker(request), request.path_params["action"]
        label = await worker.call(lambda: _find_action(worker.pool, text))
        if label is None:
            raise Refused(404, f"action: {text!r} is not in the catalogue")
        await self._ask(request, RetireAction(label))
        return reply(ActionAnswer(label))

    async def refuse_reading(self, request: Request) -> Response:
        raise Refused(405, "decisions are made with POST, and read all together at …/rows", {"allow": "POST"})

    async def show_ticket(self, request: Request) -> Response:
        worker, ticket = await self._worker(request), request.path_params["ticket"]
        return reply(TicketAnswer(**await worker.call(lambda: worker.pool.find(ticket))))

    async def show_document(self, request: Request) -> Response:
        return reply(document())

    async def show_health(self, request: Request) -> Response:
        return reply(HealthAnswer("up"))

    async def show_readiness(self, request: Request) -> Response:
        """Raise 503 if the store does not answer or takes no writes, or if no pool works; name those that do not."""
        health, caller = self._host.health, self._host.known_caller(request.scope)
        try:
            await _in_time(self._pools.names)
        except StoreUnavailable as error:
            raise _not_ready("the store does not answer", str(error), caller) from None
        troubles = dict(sorted(health.troubles.items()))
        if not troubles:
            return reply(HealthAnswer("ready"))
        lasting = await health.store_trouble()
        if lasting is not None or not health.well:
            kind = "no pool works" if lasting is None else "the store takes no writes"
            told = "; ".join(f"pool {name!r}: {why}" for name, why in islice(troubles.items(), MOST_NAMED))
            raise _not_ready(kind, told, caller)
        if caller is None:
            return reply(HealthAnswer("ready", kind="pools"))
        mine = {name: why for name, why in troubles.items() if caller.may_use(name)}
        return reply(HealthAnswer("ready", mine or msgspec.UNSET))

    async def show_metrics(self, request: Request) -> Response:
        """What this process knows, whether the store answers or not."""
        health = self._host.health
        standings, vitals = None, {}
        with suppress(StoreUnavailable):
            standings = await _in_time(self._pools.store.standings)
            workers = self._pools.workers()
            read = await asyncio.gather(*map(self._read, workers))
            vitals = {worker.pool.name: each for worker, each in zip(workers, read, strict=True) if each is not None}
        # Of a name that was never open here only the store can say whether there is such a pool.
        troubled = [name for name in health.troubles if standings is not None or self._pools.open_worker(name)]
        reading = Reading(standings, vitals, troubled, health.in_trouble(), health.anchored_at)
        return Response(self._host.metrics.expose(reading), media_type=CONTENT_TYPE)

    async def _read(self, worker: PoolWorker) -> Vitals | None:
        """A pool that fails, or that hangs, is told as one that is in trouble; the others are told all the same."""
        name = worker.pool.name
        try:
            async with asyncio.timeout(STORE_SECONDS):
                vitals: Vitals = await worker.call(worker.pool.vitals)
        except TimeoutError:
            late = StoreUnavailable(f"the pool did not answer within {STORE_SECONDS:g} seconds")
            self._host.health.note(name, late)
            return None
        except Exception as error:
            self._host.health.note(name, error)
            return None
        return None if name in self._host.health.in_trouble() else vitals


async def _in_time(ask: Callable[[], Any]) -> Any:
    """What the store says; a store that says nothing for too long is away."""
    try:
        async with asyncio.timeout(STORE_SECONDS):
            return await asyncio.to_thread(ask)
    except TimeoutError:
        raise StoreUnavailable(f"the store did not answer within {STORE_SECONDS:g} seconds") from None


def _not_ready(kind: str, detail: str, caller: Caller | None) -> Refused:
    """Names of pools, paths and addresses are for those who may look at all pools, and for the log."""
    short = f"not ready: {kind} (the log tells more, and so does this page to a key for all pools)"
    return Refused(503, short if caller is None or caller.pools else detail, {"retry-after": "1"}, detail)


async def expire(worker: PoolWorker) -> int:
    """Expire everything overdue, a thousand in a batch, so that others have their turn."""
    total = 0
    while expired := await worker.ask_one(Expire()):
        total += expired
    return total


def _find_action(pool: Pool, text: str) -> Any:
    """The label that a path means: the text itself, or else the label that is written so; None: there is none."""
    known = pool.listing().actions
    if text in known:
        return text
    # Different labels that are no text are never written alike, so the first is the only one.
    return next((label for label in known if not isinstance(label, str) and text in _spellings(label)), None)


def _spellings(label: Any) -> tuple[str, str]:
    return str(label), msgspec.json.encode(label).decode()


def _agree(text: str, found: Any, label: Any) -> Any:
    if text not in _spellings(label) and text != label:
        raise ValueError(f"label: is {label!r}, expected what the path says, {text!r}")
    if found is not None and found != label:
        raise Conflict(f"action: {text!r} is {found!r} already")
    return label


async def _lines(pool: Pool) -> AsyncGenerator[bytes]:
    rows: Iterator[dict[str, Any]] = pool.rows()

    def some() -> bytes:
        return b"".join(msgspec.json.encode(row) + b"\n" for row in islice(rows, ROWS_AT_ONCE))

    try:
        while piece := await asyncio.to_thread(some):
            yield piece
    finally:
        rows.close()  # type: ignore[attr-defined]  # gives the store's reading back, also when the reader went away
