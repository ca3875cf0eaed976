"""All that the page of a pool shows, as plain numbers for its templates and charts."""

import dataclasses
import threading
import time
from typing import Any

from statepool.live.dashboard import shown
from statepool.live.dashboard.alarms import Alarm, alarms_of
from statepool.live.dashboard.curves import curves_of, delays_of, median_of
from statepool.live.dashboard.glance import Dimension, Glance, Rows, glance
from statepool.live.dashboard.measures import Measures
from statepool.live.dashboard.panels import (
    Lift,
    Played,
    State,
    actions_of,
    beliefs_of,
    lift_of,
    settings_of,
    states_of,
)  # fmt: skip
from statepool.live.pool import Pool

FRESH = 0.9
"""Seconds for which all who look see the same look."""

RECENT = 10
"""Seconds that "now" is."""


@dataclasses.dataclass(frozen=True)
class Flight:
    count: int
    oldest: float | None
    median: float | None


@dataclasses.dataclass(frozen=True)
class Look:
    name: str
    plays: int
    lessons: int
    counts: dict[str, int]
    speed: float
    loss: float
    dimension: float
    seeded: bool
    n_actions: int
    n_retired: int
    n_states: int
    actions: list[Played]
    states: list[State]
    more_states: int
    widest: float
    """The largest share of a state shown: the length of a full bar."""
    lift: Lift | None
    flight: Flight
    alarms: list[Alarm]
    settings: list[tuple[str, str]]
    window: float | None
    events: int
    journal: int
    curves: dict[str, Any]
    delays: dict[str, Any]


class Watch:
    """A pool, watched: looks are taken at most once in FRESH seconds, whoever asks."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._lock = threading.Lock()
        self._dimension = Dimension()
        self._measures: Measures | None = None
        self._glance: Glance | None = None
        self._look: Look | None = None
        self._at = 0.0

    def look(self) -> Look:
        with self._lock:
            if self._look is None or time.monotonic() - self._at > FRESH:
                self._look = self._take()
                self._at = time.monotonic()
            return self._look

    def _take(self) -> Look:
        seen = self._glance = glance(self.pool, self._glance)
        if self._measures is None:
            self._measures = Measures(len(seen.fold.catalogue.states), Rows(seen.fold), not seen.fold.ledger.learns_map)
        measures = self._measures
        measures.row = Rows(seen.fold)
        with self.pool._journal.store.view(self.pool.name) as view:
            measures.follow(view)
            pending, oldest, journal = view.n_pending(), view.pending(limit=1), view.head().seq
        now = self.pool._journal.now()
        since = (now - oldest[0].at) / 1e6 if oldest else None
        return self._put_together(seen, measures, now, Flight(pending, since, None), journal)

    def _put_together(self, seen: Glance, measures: Measures, now: int, flight: Flight, journal: int) -> Look:
        catalogue, lessons, whole = seen.fold.catalogue, measures.lessons, measures.buckets.total()
        of_states = lessons.of_states(len(catalogue.states))
        beliefs = beliefs_of(seen.fold.ledger.beliefs(), of_states)
        states, more_states = states_of(seen, whole, of_states, beliefs)
        return Look(
            name=self.pool.name,
            plays=seen.plays,
            lessons=seen.lessons,
            counts=seen.counts,
            speed=_speed(measures, now),
            loss=_mean_loss(whole.tallies),
            dimension=self._dimension.of(seen),
            seeded=seen.fold.seeded,
            n_actions=len(seen.ids),
            n_retired=len(catalogue.actions) - catalogue.n_active,
            n_states=len(catalogue.states),
            actions=actions_of(seen, measures, beliefs),
            states=states,
            more_states=more_states,
            widest=max((share for each in states for share in (each.played, each.expected) if share > 0), default=1.0),
            lift=lift_of(seen),
            flight=dataclasses.replace(flight, median=median_of(whole.delays)),
            alarms=alarms_of(
                lessons,
                measures.oddities,
                lambda number: shown.label(catalogue.actions[number]),
                [shown.label(state) for state in catalogue.states],
            ),
            settings=settings_of(seen),
            window=(now - measures.began) / 1e6 if measures.began else None,
            events=measures.events,
            journal=journal,
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
