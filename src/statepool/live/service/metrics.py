"""Prometheus metrics.

Pools are read from the store, so every process reports the same. Requests are those of the process that answers the
scrape: where several share a port they have the label `worker`. While the store is away, its metrics are left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from statepool.live.database import Database
from statepool.live.status import count
from statepool.live.tables import EXPIRY, OUTCOME, STATE

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 4.096)
REASONS = {
    400: "invalid", 401: "unknown_key", 403: "forbidden", 404: "unknown", 409: "conflict", 413: "too_large",
    422: "invalid", 500: "failure", 503: "unavailable",
}  # fmt: skip


GAUGES = {
    "pending": "Decisions without an outcome",
    "oldest_pending_age_seconds": "Age of the oldest decision without an outcome; 0: none",
    "version": "Number of the latest policy version",
    "version_age_seconds": "Age of the latest policy version",
    "unlearned_reports": "Reports that are due and not learnt yet",
    "oldest_unlearned_age_seconds": "Age of the oldest of them; 0: none",
}


class Standing(NamedTuple):
    """What the store says about one pool."""

    decisions: int
    reports: dict[str, int]
    """By kind; also `out_of_bounds` and `impossible`."""
    gauges: dict[str, float]


def standings(database: Database) -> dict[str, Standing]:
    """Counts of all pools by name."""
    p, v, now = database.tables.pools.c, database.tables.versions.c, database.time()
    found = {}
    with database.read() as connection:
        for pool, name in connection.execute(sa.select(p.id, p.name)).all():
            latest = sa.select(v.number, v.made_at, v.impossible).where(v.pool == pool).order_by(v.number.desc())
            number, made_at, impossible = connection.execute(latest.limit(1)).one()
            counts = count(connection, database.tables, pool, now)
            ages = [now if at is None else at for at in (counts["oldest_pending"], made_at, counts["late_since"])]
            pending, age, late = (max(0.0, now - at) for at in ages)
            values = counts["pending"], pending, number, age, counts["late"], late
            reports = {
                STATE: counts["states"], OUTCOME: counts["outcomes"], EXPIRY: counts["expiries"],
                "out_of_bounds": counts["out_of_bounds"], "impossible": impossible,
            }  # fmt: skip
            found[name] = Standing(counts["decisions"], reports, dict(zip(GAUGES, values, strict=True)))
    return found


class Metrics:
    """Counts requests; `worker` names this process among several."""

    def __init__(self, worker: str | None = None) -> None:
        self._registry = CollectorRegistry()
        own = {} if worker is None else {"worker": worker}
        self._own = tuple(own.values())
        names = tuple(own)
        self._requests = Counter(
            "statepool_requests", "Requests by route and status", ("route", "status", *names), registry=self._registry
        )
        self._refusals = Counter(
            "statepool_refusals", "Refused requests by reason", ("reason", *names), registry=self._registry
        )
        self._seconds = Histogram(
            "statepool_request_seconds", "Time to answer, by route", ("route", *names), buckets=BUCKETS,
            registry=self._registry,
        )  # fmt: skip
        self._children: dict[tuple[str, int], tuple[Any, Any]] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        found = self._children.get((route, status))
        if found is None:
            found = self._requests.labels(route, str(status), *self._own), self._seconds.labels(route, *self._own)
            self._children[route, status] = found
        found[0].inc()
        found[1].observe(seconds)
        if status >= 400:
            self._refusals.labels(REASONS.get(status, "other"), *self._own).inc()

    def expose(self, standings: Mapping[str, Standing] | None) -> bytes:
        """The text that Prometheus reads; None: the store is away."""
        pools = CollectorRegistry()
        pools.register(_Pools(standings))
        return generate_latest(self._registry) + generate_latest(pools)


class _Pools(Collector):
    def __init__(self, standings: Mapping[str, Standing] | None) -> None:
        self._standings = standings

    def collect(self) -> Iterator[Any]:
        yield GaugeMetricFamily("statepool_store_up", "1: the store answers", self._standings is not None)
        decisions = CounterMetricFamily("statepool_decisions", "Decisions stored", labels=["pool"])
        reports = CounterMetricFamily("statepool_reports", "Reports by kind", labels=["pool", "kind"])
        gauges = {name: GaugeMetricFamily(f"statepool_{name}", says, labels=["pool"]) for name, says in GAUGES.items()}
        for pool, each in (self._standings or {}).items():
            decisions.add_metric([pool], each.decisions)
            for kind, number in each.reports.items():
                reports.add_metric([pool, kind], number)
            for name, value in each.gauges.items():
                gauges[name].add_metric([pool], value)
        yield from (decisions, reports, *gauges.values())
