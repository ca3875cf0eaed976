"""The dashboard's pages, and the login that protects them: an admin key, given once, starts a session.

The cookie's secret is stored in table `meta`, so all processes of a store share sessions. A session ends with its key,
or after twelve hours.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from statepool.live import dashboard
from statepool.live.dashboard.formatting import FILTERS, label
from statepool.live.dashboard.page import page_of
from statepool.live.service.keys import Gate, digest_of
from statepool.live.service.monitoring import read_counts
from statepool.live.service.pools import Pools

COOKIE = "statepool"
SECONDS = 12 * 3600
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}


class Cookies:
    """Starlette's sessions, with the cookie's Secure flag where the request was encrypted."""

    def __init__(self, app: Any, secret: str) -> None:
        self._apps = [
            SessionMiddleware(app, secret, COOKIE, SECONDS, same_site="strict", https_only=secure)
            for secure in (False, True)
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._apps[scope.get("scheme") == "https"](scope, receive, send)


class Site:
    """The routes of the pages; `may_change`: with the switch."""

    def __init__(self, gate: Gate, pools: Pools, may_change: bool) -> None:
        self._gate, self._pools, self._may_change = gate, pools, may_change
        self._templates = Environment(
            loader=PackageLoader(dashboard.__name__), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(FILTERS)

    def routes(self) -> list[BaseRoute]:
        cookies = [Middleware(Cookies, self._pools.database.session_secret().hex())]

        def page(path: str, show: Callable[[Request], Response], method: str = "GET", is_open: bool = False) -> Route:
            def answer(request: Request) -> Response:
                request.scope["statepool.route"] = path
                self._gate.check_host(dict(request.scope["headers"]))
                return show(request) if is_open or self._may_see(request) else RedirectResponse("/login", 303)

            return Route(path, answer, methods=[method], middleware=cookies)

        switch = [page("/pools/{name}/fixed", self._fix, "POST")] if self._may_change else []
        static = StaticFiles(directory=Path(dashboard.__file__).with_name("static"))
        return [
            page("/", self._home),
            page("/pools/{name}", self._page),
            page("/pools/{name}/live", lambda request: self._html("live.html", page=self._model(request))),
            *switch,
            page("/login", lambda request: self._html("login.html", word=""), is_open=True),
            Route("/login", self._enter, methods=["POST"], middleware=cookies),
            Mount("/static", static),
        ]

    def _may_see(self, request: Request) -> bool:
        if not self._gate.needs_key or self._gate.is_admin(request.session.get("key", "")):
            return True
        try:
            return not self._gate.admit(dict(request.scope["headers"]), "admin").pools
        except HTTPException:
            return False

    async def _enter(self, request: Request) -> Response:
        self._gate.check_host(dict(request.scope["headers"]))
        [key] = parse_qs((await request.body()).decode("latin-1")).get("key", [""])[:1]
        if not self._gate.is_admin(digest_of(key)):
            return self._html("login.html", 401, word="This is not an admin key.")
        request.session["key"] = digest_of(key)
        return RedirectResponse("/", 303)

    def _home(self, request: Request) -> Response:
        names = self._pools.database.pool_names()
        if len(names) == 1:
            request.path_params["name"] = names[0]
            return self._page(request)
        return self._html("pools.html", pools=read_counts(self._pools.database))

    def _page(self, request: Request) -> Response:
        n_pools = len(self._pools.database.pool_names())
        return self._html("pool.html", page=self._model(request), n_pools=n_pools, may_change=self._may_change)

    def _fix(self, request: Request) -> Response:
        """The switch: `?action=` is the action's label as text; none: the learner chooses."""
        pool, text = self._pools.get(request.path_params["name"]), request.query_params.get("action", "")
        pool.refresh()
        labels = pool.catalogue.labels_of(pool.catalogue.active_numbers)
        found = [each for each in labels if label(each) == text]
        if text and not found:
            raise ValueError(f"action: {text!r} is not an active action")
        pool.change(fixed_action=found[0] if found else None)
        return RedirectResponse(f"/pools/{quote(pool.name)}", 303)

    def _model(self, request: Request) -> dict[str, Any]:
        return page_of(self._pools.get(request.path_params["name"]))

    def _html(self, template: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._templates.get_template(template).render(values), status, HEADERS)
