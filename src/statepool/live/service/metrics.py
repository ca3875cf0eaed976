"""Prometheus metrics. What is told of a pool comes from its journal, so every process tells the same; requests, batches
and their times are those of the process that answers the scrape (with several workers: a sample of them).

Every pool is told by what its store keeps of it, at the price of one query. What only its learner knows is told of the
pools that are open in this process: a scrape opens none.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import inf, isfinite
from time import time
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from statepool.live.format import FORMAT, RULE
from statepool.live.journal import Timed
from statepool.live.status import Vitals
from statepool.live.stores.store import Standing, Standings

BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REASONS = {
    400: "invalid", 401: "unknown_key", 403: "forbidden", 404: "unknown", 409: "conflict", 413: "too_large",
    422: "invalid", 429: "limit", 500: "mistake", 503: "unavailable",
}  # fmt: skip


class _Times:
    """How many requests took how long. Only the event loop counts here, so it takes none of a library's locks."""

    def __init__(self) -> None:
        self.counts, self.total = [0] * (len(BUCKETS) + 1), 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many took at most so long."""
        return list(zip(map(floatToGoString, (*BUCKETS, inf)), accumulate(self.counts), strict=True))


class _RequestCollector(Collector):
    """The requests of this process: their times by route, their number by route and status."""

    def __init__(self) -> None:
        self.times: dict[str, _Times] = {}
        self.counts: Counter[tuple[str, int]] = Counter()

    def collect(self) -> Iterator[Any]:
        seconds = HistogramMetricFamily("statepool_request_seconds", "Time to answer, by route", labels=["route"])
        for route, times in self.times.items():
            seconds.add_metric([route], times.buckets(), times.total)
        requests = CounterMetricFamily("statepool_requests", "Requests by route and status", labels=["route", "status"])
        refusals: Counter[str] = Counter()
        for (route, status), count in self.counts.items():
            requests.add_metric([route, str(status)], count)
            if status >= 400:
                refusals[REASONS.get(status, "other")] += count
        refused = CounterMetricFamily("statepool_refusals", "Requests refused, by reason", labels=["reason"])
        for reason, count in refusals.items():
            refused.add_metric([reason], count)
        yield from (seconds, requests, refused)


class Metrics:
    """The requests and batches of this process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = _RequestCollector()
        registry.register(self._requests)
        batch = Histogram(
            "statepool_batch_seconds",
            "Time of a durable batch: wait (for the pool's lock), work (in it), commit (until it is on disk)",
            ["phase"], buckets=BUCKETS, registry=registry,
        )  # fmt: skip
        self._phases = [batch.labels(phase) for phase in ("wait", "work", "commit")]
        self._sizes = Histogram(
            "statepool_batch_events", "Events acknowledged together", buckets=SIZES, registry=registry
        )
        info = Gauge(
            "statepool_build_info", "1, with the format of journals and the rule of this release", ["format", "rule"],
            registry=registry,
        )  # fmt: skip
        info.labels(str(FORMAT), str(RULE)).set(1)

    def add(self, route: str, status: int, seconds: float) -> None:
        times = self._requests.times.get(route)
        if times is None:
            times = self._requests.times[route] = _Times()
        times.add(seconds)
        self._requests.counts[route, status] += 1

    def add_batch(self, timed: Timed) -> None:
        """Count a batch; called by the thread that wrote it."""
        for phase, seconds in zip(self._phases, timed[:3], strict=True):
            phase.observe(seconds)
        self._sizes.observe(timed.events)

    def expose(
        self, standings: Standings, vitals: Mapping[str, Vitals], troubled: frozenset[str],
        anchored_at: float | None = None,
    ) -> bytes:  # fmt: skip
        """The text that Prometheus reads."""
        pools = CollectorRegistry()
        pools.register(_PoolCollector(standings, vitals, troubled, anchored_at))
        return generate_latest(self._registry) + generate_latest(pools)


class _PoolCollector(Collector):
    def __init__(
        self, standings: Standings, vitals: Mapping[str, Vitals], troubled: frozenset[str], anchored_at: float | None
    ) -> None:
        self._clock, self._standings = standings
        self._vitals, self._troubled, self._anchored_at = vitals, troubled, anchored_at

    def collect(self) -> Iterator[Any]:
        yield from self._of_all()
        yield from self._of_open()
        if self._anchored_at is not None:
            yield GaugeMetricFamily(
                "statepool_anchor_age_seconds",
                "Since the heads were last noted outside; where they never were, since the start",
                time() - self._anchored_at,
            )

    def _of_all(self) -> Iterator[Any]:
        up = _gauge("pool_up", "1: the pool works; 0: it is in trouble")
        decisions = _counter("decisions", "Decisions acknowledged")
        events = _counter("journal_events", "Events in the journal")
        pending = _gauge("pending", "Decisions without an outcome")
        oldest = _gauge("oldest_pending_age_seconds", "Since the oldest decision without an outcome was made; 0: none")
        lanes = _gauge("in_lanes", "Decisions that the journal has not taken over yet")
        for name, (head, waiting, since, in_lanes) in self._standings.items():
            up.add_metric([name], name not in self._troubled)
            if name in self._troubled:
                continue
            decisions.add_metric([name], head.decisions + in_lanes)
            lanes.add_metric([name], in_lanes)
            events.add_metric([name], head.seq)
            pending.add_metric([name], waiting)
            oldest.add_metric([name], 0 if since is None else max(0.0, (self._clock - since) / 1e6))
        yield from (up, decisions, lanes, events, pending, oldest)

    def _of_open(self) -> Iterator[Any]:
        events = _counter(
            "events", "States, outcomes, expiries, corrections, and states the map calls impossible", "kind"
        )
        actions = _gauge("actions", "Actions that are played")
        loss = _gauge("mean_loss", "Mean loss of an arm, since the holdout last changed", "arm")
        lag = _gauge("fold_lag_events", "Events of other processes that this one had not taken in when asked")
        age = _gauge("version_age_seconds", "Since the version was made that this process plays from")
        versions = _counter("versions_made", "Versions of the play made by this process")
        refused = _counter("snapshots_refused", "Stored snapshots that were of no use")
        for name, vitals in self._vitals.items():
            standing: Standing | None = self._standings.get(name)
            actions.add_metric([name], vitals.n_actions)
            versions.add_metric([name], vitals.versions_made)
            refused.add_metric([name], vitals.refused_snapshots)
            if standing is not None and vitals.folded:
                lag.add_metric([name], max(0, standing.head.seq - vitals.folded))
            if vitals.version_at is not None:
                age.add_metric([name], max(0.0, (self._clock - vitals.version_at) / 1e6))
            for kind, count in vitals.counts.items():
                events.add_metric([name, kind], count)
            for arm, mean in vitals.mean_losses.items():
                if isfinite(mean):
                    loss.add_metric([name, arm], mean)
        yield from (events, actions, loss, lag, age, versions, refused)


def _gauge(name: str, said: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"statepool_{name}", said, labels=["pool", *labels])


def _counter(name: str, said: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"statepool_{name}", said, labels=["pool", *labels])
