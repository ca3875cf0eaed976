"""When each outcome is delivered: by arrival, then by round.

Round r's outcome is used at the start of round r + delay + 1, before playing. A `Ring` serves one fixed delay,
a `Heap` one delay a round; both hand out the slot in which a decision waits, so that memory follows what is in
flight. What would arrive after the last round is never read and shares one slot.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from statepool.checks import Ints
from statepool.compiling import compiled, compiled_allocating

NOTHING = -1


class Ring(NamedTuple):
    """One delay for all: slot r mod (delay + 1)."""

    delay: int
    n_slots: int
    given: Any


class Heap(NamedTuple):
    """One delay a round: a binary heap of (arrival, round), and the free slots."""

    delays: Ints
    keys: Ints
    slots: Ints
    free: Ints
    counts: Ints


def make_calendar(delay: int | Ints, horizon: int) -> Ring | Heap:
    """The calendar of a delay (checked before)."""
    if isinstance(delay, int):
        delivered = delay + 1 < horizon
        return Ring(delay, delay + 1 if delivered else 1, np.zeros(1, dtype=np.int64))
    capacity = int(_most_in_flight(delay))
    counts = np.array([0, capacity])
    return Heap(delay, np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.arange(capacity), counts)


def slots_of(calendar: Ring | Heap) -> int:
    """How many tickets must be held at once."""
    return calendar.n_slots if isinstance(calendar, Ring) else calendar.keys.size + 1


def book(calendar: Any, t: int) -> int:
    """The slot for the decision of round t. Compiled code only."""
    raise NotImplementedError


def due(calendar: Any, t: int) -> tuple[int, int]:
    """The next (round, slot) to deliver at the start of round t, or (-1, -1). Compiled code only."""
    raise NotImplementedError


def _book_ring(calendar: Any, t: int) -> int:
    return t % calendar.n_slots


def _due_ring(calendar: Any, t: int) -> tuple[int, int]:
    r = calendar.given[0]
    if r + calendar.delay + 1 > t:
        return NOTHING, NOTHING
    calendar.given[0] = r + 1
    return r, r % calendar.n_slots


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


@overload(book, strict=False)
def _book(calendar, t):  # type: ignore[no-untyped-def]
    return {Ring: _book_ring, Heap: _book_heap}[calendar.instance_class]


@overload(due, strict=False)
def _due(calendar, t):  # type: ignore[no-untyped-def]
    return {Ring: _due_ring, Heap: _due_heap}[calendar.instance_class]


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
                grown[:size] = keys
                keys = grown
            _push(keys, keys, size, arrival, arrival)
            size += 1
            most = max(most, size)
    return most
