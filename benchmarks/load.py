"""A load generator that costs little: each connection sends the same bytes again as soon as it is answered.

Run in a process of its own, `python load.py HOST PORT CONNECTIONS SECONDS FILE`, FILE holding one request; it prints
requests a second, the 50th and 99th percentile in milliseconds, and how many answers were not 200, as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path
from time import perf_counter

import uvloop


class Connection(asyncio.Protocol):
    """Counts on answers with a Content-Length, which all of ours have."""

    def __init__(self, request: bytes, times: list[float], bad: list[bytes]) -> None:
        self._request, self._times, self._bad = request, times, bad
        self._seen = b""
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]
        self._send()

    def _send(self) -> None:
        self._since = perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, separator, body = self._seen.partition(b"\r\n\r\n")
        if not separator or len(body) < _length(head):
            return
        self._times.append(perf_counter() - self._since)
        if not head.startswith(b"HTTP/1.1 200"):
            self._bad.append(self._seen)
        self._seen = b""
        self._send()


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])


async def load(host: str, port: int, connections: int, seconds: float, request: bytes) -> dict[str, float]:
    """Warm up for a fifth of the time, then measure."""
    times: list[float] = []
    bad: list[bytes] = []
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Connection(request, times, bad), host, port) for _ in range(connections)
    ]
    await asyncio.sleep(seconds / 5)
    times.clear()
    started = perf_counter()
    await asyncio.sleep(seconds)
    took, kept = perf_counter() - started, sorted(times)
    for transport, _ in made:
        transport.abort()
    if bad:
        print(bad[0][:400], file=sys.stderr)
    rank = lambda share: 1e3 * kept[min(int(share * len(kept)), len(kept) - 1)]  # noqa: E731
    return {"rate": len(kept) / took, "p50": rank(0.5), "p99": rank(0.99), "bad": len(bad)}


def main() -> None:
    host, port, connections, seconds, file = sys.argv[1:]
    request = Path(file).read_bytes()
    print(json.dumps(uvloop.run(load(host, int(port), int(connections), float(seconds), request))))


if __name__ == "__main__":
    main()
