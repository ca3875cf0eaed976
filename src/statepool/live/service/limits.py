"""How much of a request is read, how many are taken, and from whom."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from statepool.live.service.keys import Door
from statepool.live.service.refusals import Refused

BODY_LIMIT = 1 << 20
LARGEST_IGNORED = 64 << 20
"""A body up to this size is let pass unread, so that its sender gets to read the answer; beyond, the line is cut."""
MOST_CALLERS = 10_000
NOBODY = "others can reach this service and its store has no keys: it answers nobody before `statepool keys add`"
OTHER_SITE = (
    "requests from pages of other sites are refused: this one is of {}, and the service was called {} (a proxy hands "
    "on the name with its port, in nginx: proxy_set_header Host $http_host)"
)
LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


class Headers(NamedTuple):
    """The headers that the service reads."""

    authorization: bytes | None
    length: int | None
    host: bytes
    origin: bytes | None


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    authorization = length = origin = None
    host = b""
    for name, value in headers:
        if name == b"authorization":
            authorization = value
        elif name == b"content-length":
            length = int(value) if value.isdigit() else None
        elif name == b"host":
            host = value
        elif name == b"origin":
            origin = value
    return Headers(authorization, length, host, origin)


def refuse_strangers(headers: Headers, door: Door | None) -> None:
    """A page of another site, open in someone's browser, has no business here; nor, without keys (`door`), have those
    whom the door keeps out."""
    if headers.origin is not None and headers.origin.partition(b"://")[2] != headers.host:
        raise Refused(403, OTHER_SITE.format(_told(headers.origin), _told(headers.host)))
    if door == "nobody":
        raise Refused(403, NOBODY)
    if door == "localhost" and not _is_local(headers.host):
        raise Refused(403, "a service without keys answers to the name localhost only")


def _told(header: bytes) -> str:
    return repr(header[:100].decode("latin-1"))


@lru_cache(maxsize=64)
def _is_local(host: bytes) -> bool:
    try:
        return urlsplit("//" + host.decode("latin-1")).hostname in LOCAL
    except ValueError:  # an address that is none
        return False


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Whom an address belongs to: of IPv6, a caller has a whole /64."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return address if isinstance(parsed, IPv4Address) else str(ip_network(f"{parsed}/64", strict=False))


def forwarded_for(headers: Iterable[tuple[bytes, bytes]], proxies: Collection[str]) -> str:
    """Whom a proxy speaks for: the last address that it was told and that is no proxy's own; none: ""."""
    told = ",".join(value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for")
    hosts = [_host_of(each.strip()) for each in reversed(told.split(","))]
    return next((host for host in hosts if host not in proxies), "")


def _host_of(address: str) -> str:
    """The address without its port: `[host]:port`, and of IPv4 `host:port`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


async def read_body(receive: Any, length: int | None, limit: int) -> bytes:
    """Read the whole body, or raise 413; of one that is too large, no more than the limit is kept."""
    check_length(length, limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body") and len(body) <= limit:
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise Refused(400, "the request ended before its body did")
    if len(body) > limit:
        raise _too_large(limit, True)
    return body


def check_length(length: int | None, limit: int) -> None:
    """Raise 413 for a body that says itself that it is too large."""
    if length is not None and length > limit:
        raise _too_large(limit, length > LARGEST_IGNORED)


def _too_large(limit: int, cut: bool) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes", {"connection": "close"} if cut else {})


class TokenBuckets:
    """A bucket of tokens for each caller: `rate` come in a second, and `size` fit in (by default a second's worth)."""

    def __init__(self, rate: float, what: str = "requests", size: float | None = None) -> None:
        self._rate, self._what, self._size = rate, what, max(rate, 1.0) if size is None else size
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, count: int = 1, paid: int = 0) -> None:
        """Take `count` tokens beside those `paid`, or raise 429 and say when there will be as many."""
        if paid + count > self._size:
            most = f"{self._rate:g} {self._what} a second are allowed, expected at most {int(self._size)} at once"
            raise Refused(429, f"{paid + count} at once: {most}")
        now = monotonic()
        left, since = self._left.pop(caller, (self._size, now))
        left = min(self._size, left + (now - since) * self._rate)
        if len(self._left) >= MOST_CALLERS:
            del self._left[next(iter(self._left))]  # who has been quiet longest has a full bucket anyway
        self._left[caller] = (left - count if left >= count else left, now)
        if left < count:
            raise self._refused(count, left)

    def _refused(self, count: int, left: float) -> Refused:
        seconds = max(1, round((count - left) / self._rate + 0.5))
        sentence = f"more than {self._rate:g} {self._what} a second, try again in {seconds} s"
        return Refused(429, sentence, {"retry-after": str(seconds)})
