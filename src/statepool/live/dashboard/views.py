"""The dashboard's pages; the service adds who may see them.

/                          the only pool, or the list of pools
/pools/{name}              the page of a pool
/pools/{name}/live         its panels, polled by htmx
/pools/{name}/curves       decisions and mean outcomes over time, as JSON
/pools/{name}/fixed        POST: show one action only, or let the learner choose again
/static/…                  styles and scripts; nothing is fetched from elsewhere
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from statepool.live.dashboard.formatting import FILTERS, label
from statepool.live.dashboard.page import PageModel, page_of
from statepool.live.errors import NoSuchPool, StoreUnavailable
from statepool.live.pool import Pool

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}
LISTED = 100
FRESH = 0.9
"""Seconds for which all viewers get the same reading."""

Show = Callable[[Request], Response]


class PoolSource(Protocol):
    """The pools of a service."""

    def names(self) -> list[str]: ...

    def get(self, name: str) -> Pool: ...


class Dashboard:
    """Pages are plain functions, which the server runs in threads; `may_change`: with the switch."""

    def __init__(self, pools: PoolSource, may_change: bool = True) -> None:
        self._pools, self._may_change = pools, may_change
        self._kept: dict[str, tuple[float, PageModel]] = {}
        self._lock = threading.Lock()
        self._templates = Environment(
            loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(FILTERS)

    def pages(self) -> list[tuple[str, Show, str]]:
        """Paths, what they show, and their method."""
        shown = [
            ("/", self._home, "GET"),
            ("/pools/{name}", lambda request: self._page(_name(request)), "GET"),
            ("/pools/{name}/live", lambda request: self._html("live.html", page=self._model(_name(request))), "GET"),
            ("/pools/{name}/curves", lambda request: _json(self._model(_name(request))["curves"]), "GET"),
        ]
        if self._may_change:
            shown.append(("/pools/{name}/fixed", self._fix, "POST"))
        return [(path, self._guarded(show), method) for path, show, method in shown]

    def static(self) -> BaseRoute:
        return Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")

    def _home(self, request: Request) -> Response:
        names = self._pools.names()
        if len(names) == 1:
            return self._page(names[0])
        return self._html("pools.html", pools=[self._summary(name) for name in names[:LISTED]], n_pools=len(names))

    def _page(self, name: str) -> Response:
        page, n_pools = self._model(name), len(self._pools.names())
        return self._html("pool.html", page=page, n_pools=n_pools, may_change=self._may_change)

    def _fix(self, request: Request) -> Response:
        """The switch: `?action=` is the action's label as text; none: the learner chooses."""
        pool, text = self._pools.get(_name(request)), request.query_params.get("action", "")
        pool.refresh()
        found = [each for each in pool.catalogue.labels_of(pool.catalogue.active_numbers) if label(each) == text]
        if text and not found:
            raise ValueError(f"action: {text!r} is not an active action")
        pool.change(fixed_action=found[0] if found else None)
        self._kept.pop(pool.name, None)
        return RedirectResponse(f"/pools/{quote(pool.name)}", 303)

    def _model(self, name: str) -> PageModel:
        pool = self._pools.get(name)
        with self._lock:
            at, model = self._kept.get(name, (float("-inf"), None))
            if model is None or time.monotonic() - at > FRESH:
                model = page_of(pool)
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


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), 200, HEADERS, "application/json")
