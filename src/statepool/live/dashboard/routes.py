"""The dashboard's addresses; the service mounts them at `/`.

/                          the only pool, or the list of pools
/pools/{name}              the page of a pool
/pools/{name}/live         its panels, polled by htmx
/pools/{name}/curves       losses, effective dimension and in-flight count over time, as JSON
/pools/{name}/delays       the histogram of delays, as JSON
/static/…                  style, scripts; nothing is fetched from elsewhere
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from statepool.live.dashboard.formatting import FILTERS
from statepool.live.dashboard.page import PageCache, PageModel
from statepool.live.errors import Damaged, NoSuchPool, StoreUnavailable
from statepool.live.pool import Pool

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LISTED = 100
WATCHED = 100
"""Pools whose curves are kept in memory: those that were looked at last."""


class PoolSource(Protocol):
    """The pools of a service, opened when they are asked for."""

    def names(self) -> list[str]: ...

    def get(self, name: str) -> Pool: ...


def routes(pools: PoolSource) -> list[BaseRoute]:
    """Everything to mount at `/`."""
    dashboard = Dashboard(pools)
    return [
        Route("/", dashboard.home),
        Route("/pools/{name}", dashboard.page),
        Route("/pools/{name}/live", dashboard.live),
        Route("/pools/{name}/curves", dashboard.curves),
        Route("/pools/{name}/delays", dashboard.delays),
        Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static"),
    ]


class Dashboard:
    """Routes are plain functions: the server runs them in threads of their own, beside its loop."""

    def __init__(self, pools: PoolSource) -> None:
        self._pools = pools
        self._kept: dict[str, PageCache] = {}
        self._lock = threading.Lock()
        self._templates = Environment(
            loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(FILTERS)

    def home(self, request: Request) -> Response:
        return self._guarded(self._home)

    def _home(self) -> Response:
        names = self._pools.names()
        if len(names) == 1:
            return self._page(names[0], names)
        listed = [self._summary(name) for name in names[:LISTED]]
        return self._html("pools.html", pools=listed, n_pools=len(names))

    def page(self, request: Request) -> Response:
        return self._guarded(lambda: self._page(_name(request), self._pools.names()))

    def _page(self, name: str, names: list[str]) -> Response:
        return self._answer(name, lambda model: self._html("pool.html", page=model, pools=names))

    def live(self, request: Request) -> Response:
        return self._answer(_name(request), lambda model: self._html("live.html", page=model))

    def curves(self, request: Request) -> Response:
        return self._answer(_name(request), lambda model: _json(model.curves))

    def delays(self, request: Request) -> Response:
        return self._answer(_name(request), lambda model: _json(model.delays))

    def _answer(self, name: str, show: Callable[[PageModel], Response]) -> Response:
        return self._guarded(lambda: show(self._page_of(name).model()))

    def _guarded(self, answer: Callable[[], Response]) -> Response:
        try:
            return answer()
        except NoSuchPool as missing:
            return self._html("message.html", 404, title="No such pool", text=f"This store has no pool “{missing}”.")
        except Damaged as damage:
            text = f"Nothing is decided on top of it: {damage}."
            return self._html("message.html", 503, title="This pool is damaged", text=text)
        except StoreUnavailable:
            text = "The store cannot be reached at present. Decisions wait for it too."
            return self._html("message.html", 503, title="The store does not answer", text=text)

    def _open(self, name: str) -> Pool:
        if name not in self._pools.names():
            raise NoSuchPool(name)
        try:
            return self._pools.get(name)
        except NoSuchPool:  # its first event is still to come
            raise NoSuchPool(name) from None

    def _page_of(self, name: str) -> PageCache:
        pool = self._open(name)
        with self._lock:
            page = self._kept.get(name)
            if page is None or page.pool is not pool:
                page = PageCache(pool)
            self._kept.pop(name, None)
            self._kept[name] = page  # the latest last
            if len(self._kept) > WATCHED:
                del self._kept[next(iter(self._kept))]
            return page

    def _summary(self, name: str) -> dict[str, Any]:
        """Two numbers that a store has at hand; a pool that is in trouble says so, and the others are listed beside."""
        unknown = {"name": name, "decisions": None, "in_flight": None, "trouble": None}
        try:
            with self._open(name).view() as view:
                return unknown | {"decisions": view.head().decisions, "in_flight": view.n_pending()}
        except NoSuchPool:
            return unknown
        except StoreUnavailable as error:
            return unknown | {"trouble": str(error)}
        except Exception:
            return unknown | {"trouble": "It cannot be read at present; the log tells more."}

    def _html(self, template: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._templates.get_template(template).render(values), status, HEADERS)


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _json(value: Any) -> Response:
    """An answer in JSON; msgspec writes what is no number as null."""
    return Response(msgspec.json.encode(value), 200, HEADERS, "application/json")
