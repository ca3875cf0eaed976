"""When each outcome is delivered: by arrival, then by round.

Round r's outcome is used at the start of round r + delay + 1, before playing. One fixed delay is served by a ring, one
delay a round by a heap; both hand out the slot in which a decision waits, so that memory follows what is in flight.
What would arrive after the last round is never read and shares one slot.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Ints
from statepool.compiling import compiled, compiled_allocating

NOTHING = -1


class Calendar(NamedTuple):
    """One delay for all: slot r mod (delay + 1). One a round: a binary heap of (arrival, round), and the free slots.

    One type serves both, so that each learner's loop is compiled once.
    """

    delay: int
    n_slots: int
    given: Ints
    delays: Ints
    """Empty where one delay serves all."""
    keys: Ints
    slots: Ints
    free: Ints
    counts: Ints


def make_calendar(delay: int | Ints, horizon: int) -> Calendar:
    """The calendar of a delay (checked before)."""
    given, none = np.zeros(1, np.int64), np.empty(0, np.int64)
    if isinstance(delay, int):
        delivered = delay + 1 < horizon
        return Calendar(delay, delay + 1 if delivered else 1, given, none, none, none, none, none)
    capacity = int(_most_in_flight(delay))
    keys, slots, free = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.arange(capacity)
    return Calendar(0, capacity + 1, given, delay, keys, slots, free, np.array([0, capacity]))


@compiled
def book(calendar: Any, t: int) -> int:
    """The slot for the decision of round t."""
    return t % calendar.n_slots if calendar.delays.size == 0 else _book_heap(calendar, t)


@compiled
def due(calendar: Any, t: int) -> tuple[int, int]:
    """The next (round, slot) to deliver at the start of round t, or (-1, -1)."""
    if calendar.delays.size > 0:
        return _due_heap(calendar, t)
    r = calendar.given[0]
    if r + calendar.delay + 1 > t:
        return NOTHING, NOTHING
    calendar.given[0] = r + 1
    return r, r % calendar.n_slots


@compiled
def _book_heap(calendar: Any, t: int) -> int:
    horizon = calendar.delays.size
    arrival = t + calendar.delays[t] + 1
    if arrival >= horizon:
        return calendar.keys.size
    calendar.counts[1] -= 1
    slot = calendar.free[calendar.counts[1]]
    _push(calendar.keys, calendar.slots, calendar.counts[0], arrival * horizon + t, slot)
    calendar.counts[0] += 1
    return slot


@compiled
def _due_heap(calendar: Any, t: int) -> tuple[int, int]:
    horizon = calendar.delays.size
    if calendar.counts[0] == 0 or calendar.keys[0] >= (t + 1) * horizon:
        return NOTHING, NOTHING
    key, slot = calendar.keys[0], calendar.slots[0]
    calendar.counts[0] -= 1
    _drop_first(calendar.keys, calendar.slots, calendar.counts[0])
    calendar.free[calendar.counts[1]] = slot
    calendar.counts[1] += 1
    return key % horizon, slot


@compiled
def _push(keys: Any, slots: Any, size: int, key: int, slot: int) -> None:
    i = size
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], slots[i] = keys[(i - 1) // 2], slots[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], slots[i] = key, slot


@compiled
def _drop_first(keys: Any, slots: Any, size: int) -> None:
    # The entry at `size` is the last one: it sinks from the top to its place.
    key, slot = keys[size], slots[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], slots[i] = keys[child], slots[child]
        i = child
    keys[i], slots[i] = key, slot


@compiled_allocating
def _most_in_flight(delays: Any) -> int:
    horizon = delays.size
    keys = np.empty(16, np.int64)
    size = 0
    most = 0
    for t in range(horizon):
        while size > 0 and keys[0] <= t:
            size -= 1
            _drop_first(keys, keys, size)
        arrival = t + delays[t] + 1
        if arrival < horizon:
            if size == keys.size:
                grown = np.empty(2 * size, np.int64)
                for i in range(size):
                    grown[i] = keys[i]
                keys = grown
            _push(keys, keys, size, arrival, arrival)
            size += 1
            most = max(most, size)
    return most
