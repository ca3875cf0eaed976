"""JSON lines, of each request and of pools in trouble, written a few times a second: a write for each would cost as
much as the request. What libraries log becomes such a line, too, without a traceback."""

import asyncio
import logging
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from statepool.live.stores.store import Call

EVERY = 0.1


class RequestLine(msgspec.Struct, omit_defaults=True):
    """What is logged of a request; `error`: the sentence of what is our fault or the store's."""

    time: datetime
    method: str
    path: str
    status: int
    ms: float
    pool: str | None
    error: str | None = None


class RequestLog:
    """Writes to a stream, requests only if they are wanted; without a stream it is silent."""

    def __init__(self, stream: IO[str] | None, with_requests: bool = True) -> None:
        self._stream, self._with_requests = stream, with_requests
        self._lines: list[Any] = []
        self._encoder = msgspec.json.Encoder()

    def add(
        self, method: str, route: str, status: int, seconds: float, pool: str | None, error: str | None = None
    ) -> None:
        """One request."""
        if self._with_requests and self._stream is not None:
            self._write(RequestLine(datetime.now(UTC), method, route, status, round(seconds * 1e3, 3), pool, error))

    def say(self, pool: str, trouble: str | None) -> None:
        """A pool got into trouble, or out of it."""
        self._write({"time": datetime.now(UTC), "pool": pool, "trouble": trouble})

    def tell(self, call: Call) -> None:
        """What an administrator did, where no store can keep it."""
        at = datetime.fromtimestamp(call.at / 1e6, UTC)
        self._write({"time": at, "call": call.did, "who": call.who, "from": call.address, "status": call.status})

    def _write(self, line: RequestLine | dict[str, Any]) -> None:
        if self._stream is None:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(EVERY, self.flush)
        self._lines.append(line)

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines and self._stream is not None:
            self._stream.write(self._encoder.encode_lines(lines).decode())
            self._stream.flush()


class JSONHandler(logging.Handler):
    """What Python's loggers say, one line each: when, how grave, who, what, and of an exception its last line."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC), "level": record.levelname.lower(),
            "logger": record.name, "message": " ".join(record.getMessage().split()),
        }  # fmt: skip
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = " ".join(f"{type(error).__name__}: {error}".split())
        try:
            self._stream.write(msgspec.json.encode(line).decode() + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self.handleError(record)


def log_as_json(stream: IO[str]) -> None:
    """From here on the loggers of the service write lines of JSON."""
    for name in ("statepool", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [JSONHandler(stream)], False
