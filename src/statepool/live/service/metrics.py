"""Prometheus metrics. What a pool has come to is read from its store, so every process tells the same; requests,
batches, trouble and how level a process is are those of the process that answers the scrape. Where several share a port
these have the label `worker`, so that the counts of one are not taken for those of another.

Every pool is told by what its store keeps of it, at the price of one query. What only its learner knows is told of the
pools that are open in this process: a scrape opens none. While the store does not answer, what it knows is left out.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from math import inf, isfinite
from time import time
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
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


OF_THE_STORE = frozenset(
    f"statepool_{name}"
    for name in (
        "decisions", "journal_events", "pending", "oldest_pending_age_seconds", "in_lanes", "events", "actions",
        "mean_loss", "build_info",
    )
)  # fmt: skip
"""What every process tells alike; the rest is the process's own."""


class Reading(NamedTuple):
    """What a scrape found."""

    standings: Standings | None
    """None: the store did not answer."""
    vitals: Mapping[str, Vitals]
    troubled: Collection[str]
    """The pools that are in trouble."""
    silent: Collection[str]
    """Those among them that answer nobody: nothing else is told of them."""
    anchored_at: float | None


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
        self.refused_reports: Counter[int] = Counter()
        """Reports that were refused among several, by the status that each would have had alone."""

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
        for status, count in self.refused_reports.items():
            refusals[REASONS.get(status, "other")] += count
        refused = CounterMetricFamily(
            "statepool_refusals", "Requests refused, and reports refused among several, by reason", labels=["reason"]
        )
        for reason, count in refusals.items():
            refused.add_metric([reason], count)
        yield from (seconds, requests, refused)


class Metrics:
    """The requests and batches of this process; `worker` tells it from others behind the same port."""

    def __init__(self, worker: str | None = None) -> None:
        self._worker = worker
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

    def add_refused_reports(self, statuses: Iterable[int]) -> None:
        """Count those that were refused while others of their request were done."""
        self._requests.refused_reports.update(statuses)

    def expose(self, reading: Reading) -> bytes:
        """The text that Prometheus reads."""
        pools = CollectorRegistry()
        pools.register(_PoolCollector(reading))
        if self._worker is None:
            return generate_latest(self._registry) + generate_latest(pools)
        told = CollectorRegistry()
        told.register(_Labelled([*self._registry.collect(), *pools.collect()], self._worker))
        return generate_latest(told)


class _Labelled(Collector):
    """Metrics with the label `worker` on those that are one process's own."""

    def __init__(self, metrics: Iterable[Metric], worker: str) -> None:
        self._metrics, self._worker = metrics, worker

    def collect(self) -> Iterator[Metric]:
        for metric in self._metrics:
            if metric.name not in OF_THE_STORE:
                metric.samples = [self._own(sample) for sample in metric.samples]
            yield metric

    def _own(self, sample: Sample) -> Sample:
        return sample._replace(labels={**sample.labels, "worker": self._worker})


class _PoolCollector(Collector):
    def __init__(self, reading: Reading) -> None:
        self._clock, self._standings = (0, {}) if reading.standings is None else reading.standings
        self._reading = reading

    def collect(self) -> Iterator[Any]:
        answered, anchored_at = self._reading.standings is not None, self._reading.anchored_at
        yield GaugeMetricFamily("statepool_store_up", "1: the store answered; 0: what it knows is left out", answered)
        yield from self._of_all()
        yield from self._of_open()
        if anchored_at is not None:
            yield GaugeMetricFamily(
                "statepool_anchor_age_seconds",
                "Since the place of the anchors had the latest heads; where it never had them, since the start",
                time() - anchored_at,
            )

    def _of_all(self) -> Iterator[Any]:
        up = _gauge("pool_up", "1: the pool works; 0: it, or its expiry, is in trouble in this process")
        decisions = _counter("decisions", "Decisions acknowledged")
        events = _counter("journal_events", "Events in the journal")
        pending = _gauge("pending", "Decisions without an outcome")
        oldest = _gauge("oldest_pending_age_seconds", "Since the oldest decision without an outcome was made; 0: none")
        lanes = _gauge("in_lanes", "Decisions that the journal has not taken over yet")
        for name in self._reading.troubled if self._reading.standings is None else self._standings:
            up.add_metric([name], name not in self._reading.troubled)
        for name, (head, waiting, since, in_lanes) in self._standings.items():
            if name in self._reading.silent:
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
        for name, vitals in self._reading.vitals.items():
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
