"""What a connection may cost before anybody is known: how many there are, how large a head, how long each part takes.

uvicorn reads heads of any size, waits for ever for their end, and takes as many connections as there are file
descriptors. Here a connection is cut that is late with its head or its body, or that does not read its answer; a head
that is too large is refused while it comes in; and where there are too many connections, those that have waited longest
without asking anything make room for the next.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from statepool.live.service.limits import network_of
from statepool.live.service.refusals import Refused, body_of

PIECE = 16 << 10
"""Bytes given to the parser at once: what it keeps of a head beyond the limit is never more."""
SWEEP_EVERY = 0.5
MOST_PIPELINED = 16
WHOLE = "statepool.whole"
"""The extension of a request's scope that sends a small answer as a whole (`send_whole`)."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
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
    """Addresses that speak for many others, and are not limited by themselves."""


class Crowd:
    """The connections of this process."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._inside: dict[GuardedProtocol, None] = {}
        self._of: Counter[str] = Counter()

    def enter(self, guest: "GuardedProtocol") -> bool:
        """Whether there is room, or could be made."""
        crowded = guest.address not in self.limits.proxies and self._of[guest.address] >= self.limits.of_an_address
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


def send_whole(cycle: Any, content: bytes) -> bool:
    """Send JSON with status 200 in one write, where uvicorn would make two.

    False, and nothing is sent, where more is to be heeded: a reader that is slow or gone, a connection to be closed,
    headers of the server's own.
    """
    if cycle.flow.write_paused or cycle.disconnected or not cycle.keep_alive or cycle.default_headers:
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(HEAD % len(content) + content)
    cycle.message_event.set()
    cycle.on_response()
    return True


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
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            self._unfinished += min(PIECE, len(data) - start)
            super().data_received(data if len(data) <= PIECE else data[start : start + PIECE])
            if self._unfinished > self._limits.head_bytes and not self.transport.is_closing():
                self._refuse(431, f"the head of the request is larger than {self._limits.head_bytes} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._due = min(self._due, self.loop.time() + self._limits.head_seconds)

    def on_headers_complete(self) -> None:
        if len(self.headers) > self._limits.headers:
            self._stop_parser(431, f"the request has more than {self._limits.headers} headers")
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop_parser(400, f"more than {MOST_PIPELINED} requests were sent without waiting for an answer")
        self._unfinished = 0
        self._due = self.loop.time() + self._limits.body_seconds
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.scope["extensions"] = {WHOLE: partial(send_whole, self.cycle)}  # type: ignore[dict-item]

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        self._due += len(body) / self._limits.body_bytes_a_second
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self._due = self._idle_until() if self.cycle.response_complete else float("inf")
        super().on_message_complete()

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
