"""What a page shows of a pool's past, kept level with its journal: each event is read once, and old ones are let go.

A page view reads only what was written since the one before. Whoever comes first, or after a long time, starts from
the last WINDOW events: no page ever reads a whole journal. Refreshes are not read; their number is that of the gaps.
"""

from collections.abc import Callable
from itertools import takewhile
from math import log2
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.live.dashboard.buckets import EXPECTED, N_DELAYS, REACHED, SEEN, SQUARES, Buckets
from statepool.live.dashboard.contexts import ContextTallies
from statepool.live.dashboard.lessons import LatestDecisions, Lessons
from statepool.live.events import Corrected, Decided, Expired, Resolved, Seen, decode
from statepool.live.holdout import ARMS
from statepool.live.live_learner import POSSIBLE
from statepool.live.stores.store import View

WINDOW = 50_000
LOOKED_UP = 300
"""Decisions made before the window: their times are looked up for so many outcomes a reading, to know their delays."""

ODDITIES = 100
"""Impossible (action, state) pairs that are remembered."""

Row = Callable[[int], Floats]


class Measures:
    """`row(number)` gives the row of the map of an action of the catalogue; requests bring rows of their own."""

    def __init__(self, n_states: int, row: Row, known_map: bool = True) -> None:
        self.row = row
        self._n_states, self._known_map = n_states, known_map
        self._start(1)

    def _start(self, seq: int) -> None:
        """Begin anew after an event; the first is the catalogue, which may be large and is not needed."""
        self.seq, self.events = seq, 0
        self.began: int | None = None
        self.ended = 0
        self.buckets = Buckets(self._n_states)
        self.lessons = Lessons()
        self.contexts = ContextTallies(self._n_states)
        self.oddities: dict[tuple[int, int], int] = {}
        self._times = LatestDecisions()
        self._unknown: list[tuple[int, int]] = []

    def follow(self, view: View, last: int | None = None) -> None:
        """Read what is new, up to the event `last`: what came after a reading may be of actions that it lacks."""
        last = view.head().seq if last is None else last
        if last - self.seq > WINDOW:
            self._start(last - WINDOW)
        for entry in takewhile(lambda entry: entry.seq <= last, view.entries(self.seq, without="refresh")):
            take = READERS.get(entry.kind)
            if take is not None:
                take(self, decode(entry.body))
                self.began = entry.at if self.began is None else self.began
                self.ended = max(self.ended, entry.at)
                self.events += 1
        self.seq = max(self.seq, last)
        self._look_up(view)

    def _look_up(self, view: View) -> None:
        """Find the delays of outcomes whose decision came before the window; of some, where there are many."""
        some, self._unknown = self._unknown[:LOOKED_UP], []
        bodies = view.bodies_of([number for number, _ in some]) if some else {}
        for number, at in some:
            made = decode(bodies[number]["decision"])
            self._delay(at, at - made.at)

    def _decided(self, event: Decided) -> None:
        bucket, row = self.buckets.at(event.at), self._row_of(event)
        bucket.tallies["decisions"] += 1
        bucket.by_state[REACHED] += row
        bucket.by_state[SQUARES] += row * row
        self._times.keep(event.number, event.at)
        self.contexts.decide(event, row)

    def _seen(self, event: Seen) -> None:
        assert event.state is not None
        bucket = self.buckets.at(event.at)
        row = np.frombuffer(event.reached) if event.is_request else self.row(event.action)
        bucket.tallies["states"] += 1
        bucket.by_state[SEEN, event.state] += 1
        bucket.by_state[EXPECTED] += row
        possible = np.frombuffer(event.carried)[POSSIBLE] if event.is_request else row[event.state]
        if self._known_map and possible == 0:
            self._wonder(event.action, event.state)
        self._teach(event)

    def _row_of(self, event: Decided) -> Floats:
        """The row of the action that was played, as it was for this request."""
        if not event.is_request:
            return self.row(event.action)
        return np.frombuffer(event.carry).reshape(self._n_states, -1)[:, POSSIBLE]

    def _wonder(self, action: int, state: int) -> None:
        if (action, state) in self.oddities or len(self.oddities) < ODDITIES:
            self.oddities[action, state] = self.oddities.get((action, state), 0) + 1

    def _resolved(self, event: Resolved) -> None:
        self.buckets.at(event.at).tallies["outcomes"] += 1
        made_at = self._times.find(event.number)
        if made_at is None:
            self._unknown.append((event.number, event.at))
        else:
            self._delay(event.at, event.at - made_at)
        self._lose(event)

    def _expired(self, event: Expired) -> None:
        self.buckets.at(event.at).tallies["expiries"] += 1
        self._lose(event)

    def _corrected(self, event: Corrected) -> None:
        """Curves show losses as they came, so the default stays in them; means use the outcome."""
        self.buckets.at(event.at).tallies["corrections"] += 1
        if event.loss is not None:
            self.lessons.correct(event.number, event.loss)
        self.contexts.correct(event)

    def _lose(self, event: Resolved | Expired) -> None:
        if event.loss is not None:
            arm, tallies = ARMS[event.is_holdout], self.buckets.at(event.at).tallies
            tallies[arm] += 1
            tallies[f"{arm}_loss"] += event.loss
        self.contexts.lose(event)
        self._teach(event)

    def _teach(self, event: Seen | Resolved | Expired) -> None:
        if event.state is not None and event.loss is not None:
            self.lessons.add(event.number, event.decisions - 1 - event.number, event.action, event.state, event.loss)

    def _delay(self, at: int, microseconds: int) -> None:
        place = int(log2(max(microseconds / 1000, 1)))
        self.buckets.at(at).delays[min(place, N_DELAYS - 1)] += 1


READERS: dict[str, Callable[[Measures, Any], None]] = {
    "decision": Measures._decided,
    "state": Measures._seen,
    "outcome": Measures._resolved,
    "expiry": Measures._expired,
    "correction": Measures._corrected,
}
