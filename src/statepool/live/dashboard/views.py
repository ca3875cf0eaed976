"""The dashboard's pages; the service adds who may see them.

/                          the only pool, or the list of pools
/pools/{name}              the page of a pool
/pools/{name}/live         its panels, polled by htmx
/pools/{name}/curves       decisions and mean outcomes over time, as JSON
/static/…                  styles and scripts; nothing is fetched from elsewhere
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from statepool.live.dashboard.formatting import FILTERS
from statepool.live.dashboard.page import PageModel, page_of
from statepool.live.database import Database
from statepool.live.errors import NoSuchPool, StoreUnavailable
from statepool.live.pool import Pool

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
LISTED = 100
FRESH = 0.9
"""Seconds for which all viewers get the same reading."""

Show = Callable[[Request], Response]


class PoolSource(Protocol):
    """The pools of a service."""

    database: Database

    def names(self) -> list[str]: ...

    def get(self, name: str) -> Pool: ...


class Dashboard:
    """Pages are plain functions, which the server runs in threads."""

    def __init__(self, pools: PoolSource) -> None:
        self._pools = pools
        self._kept: dict[str, tuple[float, PageModel]] = {}
        self._lock = threading.Lock()
        self._templates = Environment(
            loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(FILTERS)

    def pages(self) -> list[tuple[str, Show]]:
        """Paths and what they show."""
        return [
            ("/", self._guarded(self._home)),
            ("/pools/{name}", self._guarded(lambda request: self._page(request.path_params["name"]))),
            ("/pools/{name}/live", self._guarded(lambda request: self._html("live.html", page=self._model(request)))),
            ("/pools/{name}/curves", self._guarded(lambda request: _json(self._model(request)["curves"]))),
        ]

    def static(self) -> BaseRoute:
        return Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")

    def _home(self, request: Request) -> Response:
        names = self._pools.names()
        if len(names) == 1:
            return self._page(names[0])
        return self._html("pools.html", pools=[self._summary(name) for name in names[:LISTED]], n_pools=len(names))

    def _page(self, name: str) -> Response:
        return self._html("pool.html", page=self._model_of(name), n_pools=len(self._pools.names()))

    def _model(self, request: Request) -> PageModel:
        return self._model_of(request.path_params["name"])

    def _model_of(self, name: str) -> PageModel:
        pool = self._pools.get(name)
        with self._lock:
            at, model = self._kept.get(name, (float("-inf"), None))
            if model is None or time.monotonic() - at > FRESH:
                model = page_of(self._pools.database, pool)
                self._kept[name] = time.monotonic(), model
            return model

    def _summary(self, name: str) -> dict[str, Any]:
        known: dict[str, Any] = {"name": name, "decisions": None, "pending": None, "trouble": None}
        try:
            status = self._pools.get(name).status()
            return known | {"decisions": status.decisions, "pending": status.pending}
        except (StoreUnavailable, ValueError) as error:
            return known | {"trouble": str(error)}

    def _guarded(self, show: Show) -> Show:
        """Failures as pages."""

        def answer(request: Request) -> Response:
            try:
                return show(request)
            except NoSuchPool as missing:
                return self._html("message.html", 404, title="No such pool", text=str(missing))
            except StoreUnavailable:
                text = "The store cannot be reached at present. Decisions wait for it too."
                return self._html("message.html", 503, title="The store does not answer", text=text)

        return answer

    def _html(self, template: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._templates.get_template(template).render(values), status, HEADERS)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), 200, HEADERS, "application/json")
