"""When each outcome is delivered: by arrival, then by round.

Round r's outcome is used at the start of round r + delay + 1, before the policy is computed. Rounds that arrive
together are a linked list. A decision waits in a slot, so memory for what is saved follows what is in flight. Outcomes
that would arrive after the last round are never read and share one slot.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Ints
from statepool.compiling import compiled

NOTHING = -1


class Calendar(NamedTuple):
    delays: NDArray[np.int32]
    """Of each round; the horizon where an outcome does not come."""
    silence: int
    """With conversions: the delay of a loss of 1, which means that nothing happened; else 0."""
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    """The first and the last round that arrive at the start of each round, or NOTHING."""
    following: NDArray[np.int32]
    """The round that is delivered after each round."""
    slots: NDArray[np.int32]
    """The slot of each round."""
    free: NDArray[np.int32]
    n_free: Ints

    @property
    def n_slots(self) -> int:
        return self.free.size + 1


def make_calendar(delay: int | Ints, horizon: int, silence: int = 0) -> Calendar:
    """The calendar of a delay (checked before)."""
    silence = min(silence, horizon)
    if isinstance(delay, int):
        delays = np.full(horizon, min(delay, horizon), np.int32)
        capacity = delay + 1 if delay + 1 < horizon else 0
    else:
        delays = np.minimum(delay, horizon).astype(np.int32)
        capacity = _most_in_flight(np.maximum(delays, silence) if silence < horizon else delays)
    first, last, following = (np.full(horizon, NOTHING, np.int32) for _ in range(3))
    slots, free = np.empty(horizon, np.int32), np.arange(capacity, dtype=np.int32)
    return Calendar(delays, silence, first, last, following, slots, free, np.array([capacity]))


def _most_in_flight(delays: NDArray[np.int32]) -> int:
    """The largest number of decisions that wait for an outcome that will come."""
    arrivals = np.arange(delays.size) + delays + 1
    arrives = arrivals < delays.size
    landed = np.bincount(arrivals[arrives], minlength=delays.size)
    return int((np.cumsum(arrives) - np.cumsum(landed)).max())


@compiled
def book(calendar: Any, t: int, outcome: float) -> int:
    """The slot for the decision of round t, whose outcome is on its way."""
    nothing_happened = calendar.silence > 0 and outcome >= 1.0
    arrival = t + (calendar.silence if nothing_happened else calendar.delays[t]) + 1
    if arrival >= calendar.first.size:
        return calendar.free.size
    calendar.n_free[0] -= 1
    slot = calendar.free[calendar.n_free[0]]
    calendar.slots[t] = slot
    if calendar.first[arrival] < 0:
        calendar.first[arrival] = t
    else:
        calendar.following[calendar.last[arrival]] = t
    calendar.last[arrival] = t
    return slot


@compiled
def due(calendar: Any, t: int) -> int:
    """The next round to deliver at the start of round t, or NOTHING; its slot is free for the decision of round t."""
    r = calendar.first[t]
    if r >= 0:
        calendar.first[t] = calendar.following[r]
        calendar.free[calendar.n_free[0]] = calendar.slots[r]
        calendar.n_free[0] += 1
    return r
