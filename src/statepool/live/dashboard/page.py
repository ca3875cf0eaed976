"""All that the page of a pool shows, as plain numbers for its templates and charts."""

import dataclasses
import threading
import time
from typing import Any

from statepool.live.dashboard import panels
from statepool.live.dashboard.alarms import Alarm, alarms_of
from statepool.live.dashboard.curves import curves_of, delays_of, median_of
from statepool.live.dashboard.measures import Measures
from statepool.live.dashboard.reading import Dimension, Reading, read
from statepool.live.pool import Pool

FRESH = 0.9
"""Seconds for which everybody who looks sees the same."""

RECENT = 10
"""How many seconds "now" is."""


@dataclasses.dataclass(frozen=True)
class Flight:
    count: int
    oldest: float | None
    median: float | None


@dataclasses.dataclass(frozen=True)
class PageModel:
    """What the templates of a pool's page are filled with."""

    name: str
    decisions: int
    lessons: int
    counts: dict[str, int]
    speed: float
    loss: float
    dimension: float
    seeded: bool
    n_actions: int
    n_retired: int
    n_states: int
    actions: list[panels.PlayedAction]
    states: list[panels.SeenState]
    more_states: int
    widest: float
    """The largest share of a state shown: the length of a full bar."""
    contexts: panels.ContextsPanel | None
    lift: panels.LiftTile | None
    flight: Flight
    alarms: list[Alarm]
    settings: list[tuple[str, str]]
    window: float | None
    events: int
    journal: int
    curves: dict[str, Any]
    delays: dict[str, Any]


class PageCache:
    """The page of one pool: taken at most once in FRESH seconds, whoever asks."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._lock = threading.Lock()
        self._dimension = Dimension()
        self._measures: Measures | None = None
        self._model: PageModel | None = None
        self._at = 0.0

    def model(self) -> PageModel:
        with self._lock:
            if self._model is None or time.monotonic() - self._at > FRESH:
                self._model = self._take()
                self._at = time.monotonic()
            return self._model

    def _take(self) -> PageModel:
        reading = read(self.pool)
        if self._measures is None:
            self._measures = Measures(len(reading.states), reading.row, not reading.status.learner.learns_map)
        measures = self._measures
        measures.row = reading.row
        with self.pool.view() as view:
            measures.follow(view, reading.status.events)
            oldest = view.pending(limit=1)
        since = (reading.status.at - oldest[0].at) / 1e6 if oldest else None
        return self._put_together(reading, measures, Flight(reading.status.pending, since, None))

    def _put_together(self, reading: Reading, measures: Measures, flight: Flight) -> PageModel:
        status, lessons, whole = reading.status, measures.lessons, measures.buckets.total()
        of_states = lessons.of_states(len(reading.states))
        beliefs = panels.beliefs_of(status.beliefs, of_states)
        states, more_states = panels.states_of(reading, whole, of_states, beliefs)
        return PageModel(
            name=status.name,
            decisions=status.decisions,
            lessons=status.lessons,
            counts=dict(status.counts),
            speed=_speed(measures, status.at),
            loss=_mean_loss(whole.tallies),
            dimension=self._dimension.of(reading),
            seeded=status.seeded,
            n_actions=reading.distribution.size,
            n_retired=len(status.actions) - reading.distribution.size,
            n_states=len(reading.states),
            actions=panels.actions_of(reading, measures, beliefs),
            states=states,
            more_states=more_states,
            widest=max((share for each in states for share in (each.played, each.expected) if share > 0), default=1.0),
            contexts=panels.contexts_of(reading, measures),
            lift=panels.lift_of(reading),
            flight=dataclasses.replace(flight, median=median_of(whole.delays)),
            alarms=alarms_of(lessons, measures.oddities, reading.label, reading.states),
            settings=panels.settings_of(reading),
            window=(status.at - measures.began) / 1e6 if measures.began else None,
            events=measures.events,
            journal=status.events,
            curves=curves_of(measures, flight.count),
            delays=delays_of(whole.delays),
        )


def _mean_loss(tallies: dict[str, float]) -> float:
    count = tallies["learner"] + tallies["holdout"]
    return (tallies["learner_loss"] + tallies["holdout_loss"]) / count if count else float("nan")


def _speed(measures: Measures, now: int) -> float:
    """Decisions a second, of late: over RECENT seconds, or the latest bucket where buckets are wider."""
    width = measures.buckets.width
    since = now / 1e6 - max(RECENT, width)
    late = [bucket for bucket in measures.buckets if (bucket.number + 1) * width > since]
    if not late or measures.began is None:
        return 0.0
    start = max(late[0].number * width, measures.began / 1e6)
    return sum(bucket.tallies["decisions"] for bucket in late) / max(now / 1e6 - start, 1.0)
