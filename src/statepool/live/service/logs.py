"""One JSON line a request, written a few times a second: a write for each would cost as much as the request."""

import asyncio
from datetime import UTC, datetime
from typing import IO

import msgspec

EVERY = 0.1


class RequestLog:
    """`stream` None: silent."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._encoder = msgspec.json.Encoder()

    def add(self, method: str, route: str, status: int, seconds: float, pool: str | None) -> None:
        if self._stream is None:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(EVERY, self.flush)
        line = {
            "time": datetime.now(UTC), "method": method, "path": route, "status": status,
            "ms": round(seconds * 1e3, 3), "pool": pool,
        }  # fmt: skip
        self._lines.append(self._encoder.encode(line))

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines and self._stream is not None:
            self._stream.write(b"\n".join(lines).decode() + "\n")
            self._stream.flush()
