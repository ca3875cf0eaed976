"""What a connection may cost before anybody is known: how many there are, how large a head, how long each part takes.

uvicorn reads heads of any size, waits for ever for their end, and takes as many connections as there are file
descriptors. Here a connection is cut that is late with its head or its body, or that does not read its answer; a head
that is too large is refused while it comes in; and where there are too many connections, those that have waited longest
without asking anything make room for the next.

Requests that are many go a short way: where the application offers one (`ShortWay`), a small request that is in hand is
given to it as a plain call, and answered in one write. Whatever is unusual goes uvicorn's own way. A client that keeps
its connection sends the same head again and again: what was read of it once holds for the next (`Known`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from statepool.live.service.limits import Headers, forwarded_for, network_of, read_headers
from statepool.live.service.refusals import Refused, body_of

PIECE = 16 << 10
"""Bytes given to the parser at once: what it keeps of a head beyond the limit is never more."""
SWEEP_EVERY = 0.5
MOST_PIPELINED = 16
SHORT = 16 << 10
"""Bytes of a body that may go the short way: it is kept in memory before anybody knows whose it is."""
JSON = b"content-type: application/json\r\n"
HEAD = STATUS_LINE[200] + JSON + b"content-length: %d\r\n\r\n"
ROOM = 8
"""A crowd that is full loses an eighth of those who wait, so that finding them costs little each."""


@dataclass(frozen=True)
class ConnectionLimits:
    connections: int = 1000
    of_an_address: int = 256
    head_bytes: int = 16 << 10
    headers: int = 100
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    body_bytes_a_second: int = 16 << 10
    """A large body has this much more time for each byte that has come."""
    reading_seconds: float = 60.0
    """How long a caller may leave its answer unread, with more of it waiting."""
    proxies: tuple[str, ...] = ()
    """Addresses that speak for many others, say for whom, and are not limited by themselves."""


class Crowd:
    """The connections of this process."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._proxies = frozenset(map(network_of, limits.proxies))
        self._inside: dict[GuardedProtocol, None] = {}
        self._of: Counter[str] = Counter()

    def enter(self, guest: "GuardedProtocol") -> bool:
        """Whether there is room, or could be made."""
        crowded = guest.address not in self._proxies and self._of[guest.address] >= self.limits.of_an_address
        if crowded and not self._make_room(each for each in self._inside if each.address == guest.address):
            return False
        if len(self._inside) >= self.limits.connections and not self._make_room(self._inside):
            return False
        if not self._inside:
            guest.loop.call_later(SWEEP_EVERY, self._sweep, guest.loop)
        self._inside[guest] = None
        self._of[guest.address] += 1
        return True

    def leave(self, guest: "GuardedProtocol") -> None:
        if guest in self._inside:
            del self._inside[guest]
            self._of[guest.address] -= 1
            if not self._of[guest.address]:
                del self._of[guest.address]

    def _make_room(self, among: Iterable["GuardedProtocol"]) -> bool:
        waiting = sorted((each for each in among if not each.is_being_answered()), key=lambda each: each.waits_since)
        for each in waiting[: max(1, len(waiting) // ROOM)]:
            self.leave(each)
            each.transport.abort()
        return bool(waiting)

    def _sweep(self, loop: Any) -> None:
        now = loop.time()
        for each in [each for each in self._inside if each.is_late(now)]:
            self.leave(each)
            each.transport.abort()
        if self._inside:
            loop.call_later(SWEEP_EVERY, self._sweep, loop)


Answered = Callable[[int, Mapping[str, str], bytes], None]
"""Told a status, headers beside the usual ones, and the content, which is JSON."""


class ShortWay(Protocol):
    """What an application offers that answers some requests as plain calls."""

    def short_call(self, method: str, path: str) -> Any:
        """What such a request asks for; None: it goes the ordinary way."""

    def take(self, call: Any, headers: Headers, client: Any, body: bytes, answered: Answered) -> None:
        """Answer it, now or later, in the event loop."""


class _NobodyWaits:
    def set(self) -> None:
        """uvicorn wakes whoever waits for a body or for the end of a connection."""


class Known(NamedTuple):
    """The head of the latest request that came whole and went the short way, and what was read of it."""

    head: bytes
    size: int
    """Of head and body together."""
    what: Any
    headers: Headers
    caller: Any


class ShortCycle:
    """A request on the short way, in the place where uvicorn keeps the one that is being answered."""

    __slots__ = ("_protocol", "body", "disconnected", "headers", "keep_alive", "more_body", "response_complete", "what")

    message_event = _NobodyWaits()

    def __init__(self, protocol: "GuardedProtocol", what: Any, headers: Headers, body: bytes | None = None) -> None:
        self._protocol, self.what, self.headers = protocol, what, headers
        self.body, self.more_body = body or b"", body is None
        self.keep_alive = True
        self.disconnected = self.response_complete = False

    def answer(self, status: int, more: Mapping[str, str], content: bytes) -> None:
        """Send the answer in one write; a connection that is to end is told so, and ends."""
        transport = self._protocol.transport
        self.response_complete = True
        if self.disconnected or transport.is_closing():
            return
        keep_alive = self.keep_alive and more.get("connection") != "close"
        if status == 200 and not more and keep_alive:
            transport.write(HEAD % len(content) + content)
        else:
            told = {**more, "content-length": str(len(content))} | ({} if keep_alive else {"connection": "close"})
            head = "".join(f"{name}: {value}\r\n" for name, value in told.items()).encode("latin-1")
            transport.write(STATUS_LINE[status] + JSON + head + b"\r\n" + content)
        if not keep_alive:
            transport.close()
        self._protocol.on_short_answer()


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol within the limits of a crowd."""

    def __init__(self, crowd: Crowd, **given: Any) -> None:
        super().__init__(**given)
        self._crowd, self._limits = crowd, crowd.limits
        self.address = ""
        self.waits_since = self._due = 0.0
        self._unread_since: float | None = None
        self._unfinished = 0
        """Bytes since the parser last finished something: more than a head's worth, and it is hoarding them."""
        self._refusal = 400, "the request is not HTTP/1.1 that can be read"
        self._short_way: ShortWay | None = self.app if hasattr(self.app, "short_call") else None
        self._is_between = True
        """Whether the parser waits for a request to begin."""
        self._known: Known | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = network_of(self.client[0] if self.client else "")
        self.waits_since = self.loop.time()
        self._due = self.waits_since + self._limits.head_seconds
        if not self._crowd.enter(self):
            self._refuse(503, "too many connections, try again in a moment")

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.leave(self)
        super().connection_lost(exc)

    def is_being_answered(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def is_late(self, now: float) -> bool:
        if self._unread_since is not None and now - self._unread_since > self._limits.reading_seconds:
            return True
        return now > self._due and not self.flow.read_paused  # while we do not read, it is us who are late

    def data_received(self, data: bytes) -> None:
        known = self._known
        if known is not None and len(data) == known.size and data.startswith(known.head) and self._may_take():
            self._unset_keepalive_if_required()
            self._take(ShortCycle(self, known.what, known.headers, data[len(known.head) :]), known.caller)
            return
        self._known, was_between = None, self._is_between
        self._parse(data)
        if was_between and self._is_between and isinstance(self.cycle, ShortCycle):
            self._learn(data, self.cycle)

    def _learn(self, data: bytes, cycle: ShortCycle) -> None:
        head, separator, body = data.partition(b"\r\n\r\n")
        if len(body) == cycle.headers.length:
            self._known = Known(head + separator, len(data), cycle.what, cycle.headers, self._caller())

    def _may_take(self) -> bool:
        """Whether a request that is known may be taken at once: nothing is before it, and nothing is unread."""
        return self.cycle.response_complete and not self.flow.write_paused and not self.transport.is_closing()

    def _parse(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            self._unfinished += min(PIECE, len(data) - start)
            super().data_received(data if len(data) <= PIECE else data[start : start + PIECE])
            if self._unfinished > self._limits.head_bytes and not self.transport.is_closing():
                self._refuse(431, f"the head of the request is larger than {self._limits.head_bytes} bytes")

    def on_message_begin(self) -> None:
        self._is_between = False
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._due = min(self._due, self.loop.time() + self._limits.head_seconds)

    def on_headers_complete(self) -> None:
        if len(self.headers) > self._limits.headers:
            self._stop_parser(431, f"the request has more than {self._limits.headers} headers")
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop_parser(400, f"more than {MOST_PIPELINED} requests were sent without waiting for an answer")
        self._unfinished = 0
        self._due = self.loop.time() + self._limits.body_seconds
        cycle = self._short_cycle()
        if cycle is None:
            self._go_the_ordinary_way()
        else:
            self.cycle = cycle  # type: ignore[assignment]

    def _go_the_ordinary_way(self) -> None:
        """uvicorn makes its scope when a request begins, which most of ours do not need."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        self.scope["client"] = self._caller()
        super().on_headers_complete()

    def _caller(self) -> tuple[str, int] | None:
        """Who asks: whoever is connected, or for whom a proxy says that it speaks."""
        if self.client is None or self.client[0] not in self._limits.proxies:
            return self.client
        told = forwarded_for(self.headers, self._limits.proxies)
        return (told, 0) if told else self.client

    def _short_cycle(self) -> ShortCycle | None:
        """The request that has begun, if it may go the short way: small, with nothing before it and nothing special."""
        if self._short_way is None or (self.cycle is not None and not self.cycle.response_complete):
            return None
        parser, headers = self.parser, read_headers(self.headers)
        if headers.length is None or headers.length > SHORT or self.expect_100_continue or self.flow.write_paused:
            return None
        if not parser.should_keep_alive() or parser.should_upgrade() or parser.get_http_version() != "1.1":
            return None
        if b"#" in self.url or not self.url.startswith(b"/") or self.server_state.default_headers or self.root_path:
            return None
        path = self.url.partition(b"?")[0].decode("ascii")
        what = self._short_way.short_call(parser.get_method().decode("ascii"), unquote(path) if "%" in path else path)
        return None if what is None else ShortCycle(self, what, headers)

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        self._due += len(body) / self._limits.body_bytes_a_second
        if isinstance(self.cycle, ShortCycle):
            self.cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self._is_between = True
        cycle: Any = self.cycle
        if isinstance(cycle, ShortCycle):
            cycle.more_body = False
            self._take(cycle, self._caller())
            return
        self._due = self._idle_until() if cycle.response_complete else float("inf")
        super().on_message_complete()

    def _take(self, cycle: ShortCycle, caller: tuple[str, int] | None) -> None:
        assert self._short_way is not None
        self._due = float("inf")
        self.cycle = cycle  # type: ignore[assignment]
        self._short_way.take(cycle.what, cycle.headers, caller, cycle.body, cycle.answer)

    def on_short_answer(self) -> None:
        """An answer went the short way. The crowd's sweep ends a connection that waits, without a timer for each."""
        if self.pipeline:
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self.waits_since = self.loop.time()
        self._due = self.waits_since + self.timeout_keep_alive

    def on_response_complete(self) -> None:
        self.waits_since = self.loop.time()
        if not self.pipeline and not self.cycle.more_body:
            self._due = self._idle_until()
        super().on_response_complete()

    def _idle_until(self) -> float:
        """uvicorn's own timer stops at the first byte, whatever that is, and is not set by an answer that is early."""
        return self.loop.time() + self.timeout_keep_alive + self._limits.head_seconds

    def pause_writing(self) -> None:
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def _stop_parser(self, status: int, sentence: str) -> None:
        self._refusal = status, sentence
        raise ValueError(sentence)

    def _refuse(self, status: int, sentence: str) -> None:
        self._refusal = status, sentence
        self.send_400_response(sentence)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls when its parser has stopped; answered as JSON, like every other refusal."""
        status, sentence = self._refusal
        content = body_of(Refused(status, sentence))
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(content)
        self.transport.write(STATUS_LINE[status] + head + content)
        self.transport.close()
