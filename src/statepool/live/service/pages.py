"""The dashboard's door: open without keys; else an admin's key, given once in a form, kept as a cookie."""

from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from statepool.live.service.keys import COOKIE, Keys
from statepool.live.service.limits import read_body, read_headers
from statepool.live.service.refusals import Refused

LOGIN = "/login"
FORM_LIMIT = 4096
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>statepool</title><style>:root{{color-scheme:light dark}}body{{font:16px system-ui;margin:20vh auto;width:18rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;margin:.3rem 0;padding:.4rem}}</style>
<form method="post" action="/login"><label>An admin's key<input name="key" type="password" autofocus required></label>
<button>Open the dashboard</button><p role="alert">{word}</p></form></html>
"""


def is_page(path: str) -> bool:
    return path == "/" or path.startswith(("/pools", "/dashboard"))


def may_see(keys: Keys, scope: Any) -> bool:
    """Whether the cookie of a request is of an admin's key, or the key itself is there."""
    if not keys.needed:
        return True
    cookie = Request(scope).cookies.get(COOKIE)
    if cookie is not None and keys.admits_cookie(cookie):
        return True
    try:
        keys.caller(read_headers(scope["headers"]).authorization, "admin")
    except Refused:
        return False
    return True


def login_routes(keys: Keys) -> list[Route]:
    async def show(request: Request) -> Response:
        return HTMLResponse(FORM.format(word=""))

    async def enter(request: Request) -> Response:
        length = request.headers.get("content-length", "")
        body = await read_body(request.receive, int(length) if length.isdigit() else None, FORM_LIMIT)
        [key] = parse_qs(body.decode("latin-1")).get("key", [""])[:1]
        cookie = keys.cookie_of(key)
        if cookie is None:
            return HTMLResponse(FORM.format(word="This is no admin's key."), 401)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure)
        return response

    return [Route(LOGIN, show, methods=["GET"]), Route(LOGIN, enter, methods=["POST"])]
