"""Prometheus metrics, and logs as JSON lines.

Metrics of pools are read from the store, so every process reports the same; while the store is away they are left out.
Requests are those of the process that answers the scrape, which the label `worker` names.
"""

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import accumulate
from typing import IO, Any

import msgspec
import sqlalchemy as sa
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from statepool.live.database import Database
from statepool.live.errors import StoreUnavailable
from statepool.live.service.messages import COUNTS
from statepool.live.status import count

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 4.096)
GAUGES = {
    "pending": "Decisions without an outcome",
    "oldest_pending_age_seconds": "Age of the oldest decision without an outcome; 0: none",
    "version": "Number of the latest policy version",
    "version_age_seconds": "Age of the latest policy version",
    "unlearned_reports": "Reports that are due and not learnt yet",
    "oldest_unlearned_age_seconds": "Age of the oldest of them; 0: none",
}


def read_counts(database: Database) -> dict[str, dict[str, Any]]:
    """By pool: what `status.count` counts, and the gauges."""
    p, v, now = database.tables.pools.c, database.tables.versions.c, database.time()
    found = {}
    with database.read() as connection:
        for pool, name in connection.execute(sa.select(p.id, p.name).order_by(p.name)).all():
            latest = sa.select(v.number, v.made_at, v.impossible).where(v.pool == pool).order_by(v.number.desc())
            number, made_at, impossible = connection.execute(latest.limit(1)).one()
            counts = count(connection, database.tables, pool, now)
            times = counts["oldest_pending"], made_at, counts["late_since"]
            pending, age, late = (0.0 if at is None else max(0.0, now - at) for at in times)
            gauges = dict(zip(GAUGES, (counts["pending"], pending, number, age, counts["late"], late), strict=True))
            found[name] = counts | gauges | {"impossible": impossible}
    return found


class Metrics(Collector):
    """Counts the requests of this process, `worker`, and reads the store when Prometheus asks."""

    def __init__(self, database: Database, worker: str = "1") -> None:
        self._database, self._worker, self.registry = database, worker, CollectorRegistry()
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._seconds: dict[str, float] = defaultdict(float)
        self._by_bucket: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.registry.register(self)

    def add(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        self._seconds[route] += seconds
        self._by_bucket[route][bisect_left(BUCKETS, seconds)] += 1

    def collect(self) -> Iterator[Any]:
        """The requests, and the metrics of the store; without pools while it is away."""
        requests = CounterMetricFamily(
            "statepool_requests", "Requests by route and status", labels=["route", "status", "worker"]
        )
        for (route, status), number in tuple(self._requests.items()):
            requests.add_metric([route, str(status), self._worker], number)
        times = HistogramMetricFamily("statepool_request_seconds", "Time to answer", labels=["route", "worker"])
        for route, by_bucket in tuple(self._by_bucket.items()):
            buckets = zip((*map(str, BUCKETS), "+Inf"), accumulate(by_bucket), strict=True)
            times.add_metric([route, self._worker], list(buckets), self._seconds[route])
        yield from (requests, times)
        found: dict[str, dict[str, Any]] | None = None
        with suppress(StoreUnavailable):
            found = read_counts(self._database)
        yield GaugeMetricFamily("statepool_store_up", "1: the store answers", found is not None)
        decisions = CounterMetricFamily("statepool_decisions", "Decisions stored", labels=["pool"])
        reports = CounterMetricFamily("statepool_reports", "Reports by kind", labels=["pool", "kind"])
        gauges = {name: GaugeMetricFamily(f"statepool_{name}", says, labels=["pool"]) for name, says in GAUGES.items()}
        for pool, counts in (found or {}).items():
            decisions.add_metric([pool], counts["decisions"])
            for kind, name in COUNTS.items():
                if kind != "unlearned":  # that may fall: it is a gauge
                    reports.add_metric([pool, kind], counts[name])
            for name, gauge in gauges.items():
                gauge.add_metric([pool], counts[name])
        yield from (decisions, reports, *gauges.values())


class RequestLog:
    """Writes one line per request to a stream; without a stream it is silent."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream

    def add(self, method: str, route: str, status: int, seconds: float, pool: str | None, error: str | None) -> None:
        """Log one request; `route` is the pattern, so that the log holds no tickets."""
        if self._stream is None:
            return
        line = {"time": datetime.now(UTC), "method": method, "path": route, "status": status,
                "ms": round(seconds * 1e3, 3), "pool": pool}  # fmt: skip
        self._stream.write(msgspec.json.encode(line if error is None else line | {"error": error}).decode() + "\n")
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
