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
KINDS = (STATE, OUTCOME, EXPIRY)


class Standing(NamedTuple):
    """What the store says about one pool."""

    decisions: int
    reports: dict[str, int]
    """By kind; also `out_of_bounds` and `impossible`."""
    gauges: dict[str, float]


def standings(database: Database) -> dict[str, Standing]:
    """Counts of all pools by name, in grouped queries."""
    d, r, v, pools = (getattr(database.tables, name) for name in ("decisions", "reports", "versions", "pools"))
    now, count = database.time(), sa.func.count()
    unsettled = ~sa.exists().where(r.c.decision == d.c.id, r.c.kind.in_((OUTCOME, EXPIRY)))
    unlearned = sa.and_(r.c.learned_in.is_(None), r.c.kind != EXPIRY, r.c.due <= now)
    by_kind = [count.filter(r.c.kind == kind) for kind in KINDS]
    with database.read() as connection:

        def grouped(table: sa.Table, *columns: Any, where: Any = True) -> dict[int, Any]:
            statement = sa.select(table.c.pool, *columns).where(where).group_by(table.c.pool)
            return {row[0]: row[1:] for row in connection.execute(statement)}

        names = connection.execute(sa.select(pools.c.id, pools.c.name)).all()
        made = grouped(d, count)
        kinds = grouped(r, *by_kind, count.filter(r.c.is_clipped.is_(True)))
        pending = grouped(d, count, sa.func.min(d.c.decided_at), where=unsettled)
        waiting = grouped(r, count, sa.func.min(r.c.at), where=unlearned)
        latest = grouped(v, sa.func.max(v.c.number), sa.func.max(v.c.made_at), sa.func.max(v.c.impossible))

    def age(since: float | None) -> float:
        return 0.0 if since is None else max(0.0, now - since)

    found = {}
    for pool, name in names:
        n_pending, oldest = pending.get(pool, (0, None))
        n_waiting, since = waiting.get(pool, (0, None))
        number, made_at, impossible = latest.get(pool, (0, None, 0))
        reports = dict(zip((*KINDS, "out_of_bounds"), kinds.get(pool, (0, 0, 0, 0)), strict=True))
        values = n_pending, age(oldest), number, age(made_at), n_waiting, age(since)
        gauges = dict(zip(GAUGES, values, strict=True))
        found[name] = Standing(made.get(pool, (0,))[0], reports | {"impossible": impossible}, gauges)
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
            for kind, count in each.reports.items():
                reports.add_metric([pool, kind], count)
            for name, value in each.gauges.items():
                gauges[name].add_metric([pool], value)
        yield from (decisions, reports, *gauges.values())
