"""JSON lines: one per request, and what libraries log. Lines are buffered for a tenth of a second."""

import asyncio
import logging
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

EVERY = 0.1


class RequestLine(msgspec.Struct, omit_defaults=True):
    """One request; `error` is the sentence of a fault of the service or the store."""

    time: datetime
    method: str
    path: str
    status: int
    ms: float
    pool: str | None
    error: str | None = None


class RequestLog:
    """Writes to a stream, requests only if `with_requests`; without a stream it is silent."""

    def __init__(self, stream: IO[str] | None, with_requests: bool = True) -> None:
        self._stream = stream
        self.is_on = stream is not None and with_requests
        self._lines: list[RequestLine] = []
        self._encoder = msgspec.json.Encoder()

    def add(self, method: str, route: str, status: int, seconds: float, pool: str | None, error: str | None) -> None:
        """Log one request; `route` is the pattern, so that the log holds no tickets."""
        if not self._lines:
            asyncio.get_running_loop().call_later(EVERY, self.flush)
        self._lines.append(RequestLine(datetime.now(UTC), method, route, status, round(seconds * 1e3, 3), pool, error))

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines and self._stream is not None:
            self._stream.write(self._encoder.encode_lines(lines).decode())
            self._stream.flush()


class JSONHandler(logging.StreamHandler[IO[str]]):
    """A logging handler that writes one JSON line per record, without tracebacks."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self.setLevel(logging.WARNING)

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC), "level": record.levelname.lower(),
            "logger": record.name, "message": " ".join(record.getMessage().split()),
        }  # fmt: skip
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = " ".join(f"{type(error).__name__}: {error}".split())
        return msgspec.json.encode(line).decode()


def log_as_json(stream: IO[str]) -> None:
    """Send the warnings of the service's loggers to a stream as JSON lines."""
    for name in ("statepool", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [JSONHandler(stream)], False
