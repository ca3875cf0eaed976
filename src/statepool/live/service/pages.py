"""The dashboard's door: open without keys; else an admin's key, given once in a form for a session in a cookie."""

import asyncio
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from statepool.live.service.admission import Admission
from statepool.live.service.keys import Keys
from statepool.live.service.limits import read_body, read_headers
from statepool.live.service.refusals import Refused
from statepool.live.service.sessions import COOKIE, SECONDS, Sessions

LOGIN = "/login"
FORM_LIMIT = 4096
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>statepool</title><style>:root{{color-scheme:light dark}}body{{font:16px system-ui;margin:20vh auto;width:18rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;margin:.3rem 0;padding:.4rem}}</style>
<form method="post" action="/login"><label>An admin's key<input name="key" type="password" autofocus required></label>
<button>Open the dashboard</button><p role="alert">{word}</p></form></html>
"""


def is_page(path: str) -> bool:
    return path == "/" or path.startswith(("/pools", "/dashboard"))


async def may_see(keys: Keys, sessions: Sessions, scope: Any) -> bool:
    """Whether the cookie of a request is of an admin's session, or an admin's key itself is there."""
    if not keys.are_needed():
        return True
    cookie = Request(scope).cookies.get(COOKIE)
    if cookie is not None and await asyncio.to_thread(sessions.admits, cookie):
        return True
    try:
        keys.caller(read_headers(scope["headers"]).authorization, "admin")
    except Refused:
        return False
    return True


def login_routes(sessions: Sessions, admission: Admission) -> list[Route]:
    async def show(request: Request) -> Response:
        return _form("")

    async def enter(request: Request) -> Response:
        body = await read_body(request.receive, read_headers(request.scope["headers"]).length, FORM_LIMIT)
        [key] = parse_qs(body.decode("latin-1")).get("key", [""])[:1]
        session = await asyncio.to_thread(sessions.begin, key)
        if session is None:
            return _refuse_key(request)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            COOKIE, session, max_age=SECONDS, httponly=True, samesite="strict", secure=_is_encrypted(request)
        )
        return response

    def _refuse_key(request: Request) -> Response:
        try:
            admission.count_wrong_key(request.scope.get("client"))
        except Refused as refused:
            return _form("Too many wrong keys from your address. Wait a little.", 429, refused.headers)
        return _form("This is no admin's key.", 401)

    return [Route(LOGIN, show, methods=["GET"]), Route(LOGIN, enter, methods=["POST"])]


def _form(word: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return HTMLResponse(FORM.format(word=word), status, HEADERS | (headers or {}))


def _is_encrypted(request: Request) -> bool:
    """Whoever claims a proxy's header falsely only keeps the cookie from themselves."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
