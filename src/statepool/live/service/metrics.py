"""Prometheus metrics.

Pools are read from the store, so every process reports the same. Requests are those of the process that answers the
scrape: where several share a port they have the label `worker`. While the store is away, its metrics are left out.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from statepool.live.database import EXPIRY, OUTCOME, STATE, Database
from statepool.live.status import count

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
        self._own = {} if worker is None else {"worker": worker}
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[route, status] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1

    def expose(self, standings: Mapping[str, Standing] | None) -> bytes:
        """The text that Prometheus reads; None: the store is away."""
        registry = CollectorRegistry()
        registry.register(_Families([*self._of_process(), *_of_store(standings)]))
        return generate_latest(registry)

    def _of_process(self) -> Iterator[Any]:
        names, own = list(self._own), list(self._own.values())
        requests = CounterMetricFamily(
            "statepool_requests", "Requests by route and status", labels=["route", "status", *names]
        )
        refusals = CounterMetricFamily("statepool_refusals", "Refused requests by reason", labels=["reason", *names])
        seconds = HistogramMetricFamily("statepool_request_seconds", "Time to answer", labels=["route", *names])
        reasons: Counter[str] = Counter()
        for (route, status), number in self._requests.items():
            requests.add_metric([route, str(status), *own], number)
            if status >= 400:
                reasons[REASONS.get(status, "other")] += number
        for reason, number in reasons.items():
            refusals.add_metric([reason, *own], number)
        for route, counts in self._buckets.items():
            ends = [*map(str, BUCKETS), "+Inf"]
            seconds.add_metric([route, *own], list(zip(ends, accumulate(counts), strict=True)), self._seconds[route])
        return iter((requests, refusals, seconds))


def _of_store(standings: Mapping[str, Standing] | None) -> Iterator[Any]:
    yield GaugeMetricFamily("statepool_store_up", "1: the store answers", standings is not None)
    decisions = CounterMetricFamily("statepool_decisions", "Decisions stored", labels=["pool"])
    reports = CounterMetricFamily("statepool_reports", "Reports by kind", labels=["pool", "kind"])
    gauges = {name: GaugeMetricFamily(f"statepool_{name}", says, labels=["pool"]) for name, says in GAUGES.items()}
    for pool, each in (standings or {}).items():
        decisions.add_metric([pool], each.decisions)
        for kind, number in each.reports.items():
            reports.add_metric([pool, kind], number)
        for name, value in each.gauges.items():
            gauges[name].add_metric([pool], value)
    yield from (decisions, reports, *gauges.values())


class _Families(Collector):
    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        return self._families
