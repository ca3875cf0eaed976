"""Prometheus metrics. What is told of a pool comes from its journal, so every process tells the same; requests and
their times are those of the process that answers the scrape (with several workers: a sample of them)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from statepool.live.fold import Fold
from statepool.live.pool import Pool

BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Reading(NamedTuple):
    """A pool in numbers that do not move any more."""

    plays: int
    pending: int
    actions: int
    counts: dict[str, int]
    losses: dict[str, float]


def read_pool(pool: Pool) -> Reading:
    """Everything of one moment: the fold does not move while it is looked at."""

    def take(fold: Fold) -> Reading:
        losses = {arm: tally.mean for arm, tally in fold.tallies.items()}
        return Reading(fold.plays, pool.n_pending, fold.catalogue.n_active, dict(fold.counts), losses)

    return pool._journal.look(take)


class Metrics:
    """The requests of this process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "statepool_request_seconds", "Time to answer, by route", ["route"],
            buckets=BUCKETS, registry=self._registry,
        )  # fmt: skip
        self._requests = Counter(
            "statepool_requests", "Requests by route and status", ["route", "status"], registry=self._registry
        )
        self._bound: dict[tuple[str, int], tuple[Any, Any]] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        bound = self._bound.get((route, status))
        if bound is None:
            bound = self._seconds.labels(route), self._requests.labels(route, str(status))
            self._bound[route, status] = bound
        bound[0].observe(seconds)
        bound[1].inc()

    def expose(self, readings: Mapping[str, Reading | None]) -> bytes:
        """The text that Prometheus reads; None: a pool that is in trouble."""
        pools = CollectorRegistry()
        pools.register(_PoolCollector(readings))
        return generate_latest(self._registry) + generate_latest(pools)


class _PoolCollector(Collector):
    def __init__(self, readings: Mapping[str, Reading | None]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Any]:
        up = GaugeMetricFamily("statepool_pool_up", "1: the pool works; 0: it is in trouble", labels=["pool"])
        decisions = CounterMetricFamily("statepool_decisions", "Decisions made", labels=["pool"])
        events = CounterMetricFamily(
            "statepool_events", "States, outcomes, expiries, corrections, and states the map calls impossible",
            labels=["pool", "kind"],
        )  # fmt: skip
        pending = GaugeMetricFamily("statepool_pending", "Decisions without an outcome", labels=["pool"])
        actions = GaugeMetricFamily("statepool_actions", "Actions that are played", labels=["pool"])
        loss = GaugeMetricFamily(
            "statepool_mean_loss", "Mean loss of an arm, since the holdout last changed", labels=["pool", "arm"]
        )
        for name, reading in self._readings.items():
            up.add_metric([name], reading is not None)
            if reading is None:
                continue
            decisions.add_metric([name], reading.plays)
            pending.add_metric([name], reading.pending)
            actions.add_metric([name], reading.actions)
            for kind, count in reading.counts.items():
                events.add_metric([name, kind], count)
            for arm, mean in reading.losses.items():
                loss.add_metric([name, arm], mean)
        yield from (up, decisions, events, pending, actions, loss)
