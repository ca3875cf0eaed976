"""Prometheus metrics, and logs as JSON lines.

Metrics of pools are read from the store, so every process reports the same; while the store is away they are left out.
Requests are those of the process that answers the scrape, which the label `worker` names.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import IO, Any

import msgspec
import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
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

disable_created_metrics()  # type: ignore[no-untyped-call]


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
        asked, took = ("route", "status", "worker"), ("route", "worker")
        requests = Counter("statepool_requests", "Requests by route and status", asked, registry=self.registry)
        times = Histogram("statepool_request_seconds", "Time to answer", took, registry=self.registry, buckets=BUCKETS)
        self._requests, self._times = cache(requests.labels), cache(times.labels)  # looked up by each request
        self.registry.register(self)

    def add(self, route: str, status: int, seconds: float) -> None:
        self._requests(route, status, self._worker).inc()
        self._times(route, self._worker).observe(seconds)

    def collect(self) -> Iterator[Any]:
        """The metrics of the store; without pools while it is away."""
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


def log_request(
    stream: IO[str], method: str, route: str, status: int, seconds: float, pool: str | None, error: str | None
) -> None:
    """Write one line about a request; `route` is the pattern, so that the log holds no tickets."""
    line = {"time": datetime.now(UTC), "method": method, "path": route, "status": status,
            "ms": round(seconds * 1e3, 3), "pool": pool}  # fmt: skip
    stream.write(msgspec.json.encode(line if error is None else line | {"error": error}).decode() + "\n")
    stream.flush()


class JSONHandler(logging.StreamHandler[IO[str]]):
    """A logging handler that writes one JSON line per record, without tracebacks."""

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
