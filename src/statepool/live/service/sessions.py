"""The dashboard's login: an admin key, given once, starts a session in a signed cookie.

The signature's secret is stored in table `meta`, so all processes of a store share sessions. A session ends with its
key, or after twelve hours.
"""

from collections.abc import Callable
from secrets import token_urlsafe
from time import time
from typing import Any
from urllib.parse import parse_qs

from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from statepool.live.service.keys import Gate, digest_of
from statepool.live.service.refusals import Refused

LOGIN = "/login"
COOKIE = "statepool"
SECONDS = 12 * 3600
MAX_FORM = 4096
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>statepool</title><style>:root{{color-scheme:light dark}}body{{font:16px system-ui;margin:20vh auto;width:18rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;margin:.3rem 0;padding:.4rem}}</style>
<form method="post" action="/login"><label>An admin key<input name="key" type="password" autofocus required></label>
<button>Open the dashboard</button><p role="alert">{word}</p></form></html>
"""


class Cookies:
    """Starlette's sessions, with the cookie's Secure flag where the request was encrypted."""

    def __init__(self, app: Any, secret: str) -> None:
        self._apps = [
            SessionMiddleware(app, secret, COOKIE, SECONDS, same_site="strict", https_only=secure)
            for secure in (False, True)
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._apps[scope.get("scheme") == "https"](scope, receive, send)


class Sessions:
    """Protects pages; without keys they are open to whom the gate lets in."""

    def __init__(self, gate: Gate, secret: str) -> None:
        self._gate, self._cookies = gate, [Middleware(Cookies, secret)]

    def page(self, path: str, show: Callable[[Request], Response], method: str = "GET") -> Route:
        """The route of a page that needs a session."""

        def answer(request: Request) -> Response:
            request.scope["statepool.route"] = path
            self._gate.check_host(dict(request.scope["headers"]))
            return show(request) if self._may_see(request) else RedirectResponse(LOGIN, 303)

        return Route(path, answer, methods=[method], middleware=self._cookies)

    def _may_see(self, request: Request) -> bool:
        if not self._gate.needs_key():
            return True
        session = request.session
        if time() < session.get("until", 0) and self._gate.is_admin(session.get("key", "")):
            return True
        try:
            return not self._gate.admit(dict(request.scope["headers"]), "admin").pools
        except Refused:
            return False

    def login(self) -> list[BaseRoute]:
        """The routes of the form."""
        return [
            Route(LOGIN, self._show_form, methods=["GET"]),
            Route(LOGIN, self._enter, methods=["POST"], middleware=self._cookies),
        ]

    async def _show_form(self, request: Request) -> Response:
        self._gate.check_host(dict(request.scope["headers"]))
        return _form("")

    async def _enter(self, request: Request) -> Response:
        self._gate.check_host(dict(request.scope["headers"]))
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_FORM:
                raise Refused(413, f"the body is larger than {MAX_FORM} bytes", {"connection": "close"})
        [key] = parse_qs(body.decode("latin-1")).get("key", [""])[:1]
        digest = digest_of(key)
        if not self._gate.is_admin(digest):
            return _form("This is not an admin key.", 401)
        request.session.update(key=digest, until=int(time()) + SECONDS, id=token_urlsafe(8))
        return RedirectResponse("/", 303)


def _form(word: str, status: int = 200) -> Response:
    return HTMLResponse(FORM.format(word=word), status, HEADERS)
