"""Deliveries against a naive sorted list: by arrival, then by round; slots never taken while in use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from statepool.calendar import book, due, make_calendar
from statepool.checks import check_delay


@njit
def deliveries(calendar, horizon, owners, out):
    n = 0
    for t in range(horizon):
        r = due(calendar, t)
        while r >= 0:
            if owners[calendar.slots[r]] != r:
                return -1
            out[n, 0], out[n, 1] = t, r
            n += 1
            r = due(calendar, t)
        owners[book(calendar, t, 0.0)] = t
    return n


def delivered(delay, horizon):
    calendar = make_calendar(check_delay(delay, horizon), horizon)
    out = np.empty((horizon, 2), np.int64)
    n = deliveries(calendar, horizon, np.full(calendar.n_slots, -1), out)
    assert n >= 0, "a slot was taken while its decision was waiting"
    return [tuple(row) for row in out[:n]]


def naive(delays, horizon):
    arrivals = [(r + int(d) + 1, r) for r, d in enumerate(delays)]
    return sorted((t, r) for t, r in arrivals if t < horizon)


def naive_in_flight(delays, horizon):
    """The most that wait at once, of what will ever be delivered: booked, and not yet delivered."""
    spans = [(r, r + int(d) + 1) for r, d in enumerate(delays) if r + int(d) + 1 < horizon]
    return max((sum(r <= t < end for r, end in spans) for t in range(horizon)), default=0)


@given(horizon=st.integers(1, 60), data=st.data())
@settings(max_examples=200)
def test_arrays_of_delays(horizon, data):
    one = st.one_of(st.integers(0, 5), st.integers(0, 70), st.sampled_from([0, 10**9, 2**63 - 1]))
    delays = np.array(data.draw(st.lists(one, min_size=horizon, max_size=horizon)))
    assert delivered(delays, horizon) == naive(delays, horizon)
    assert make_calendar(check_delay(delays, horizon), horizon).free.size == naive_in_flight(delays, horizon)


@pytest.mark.parametrize("horizon", [1, 2, 3, 20])
@pytest.mark.parametrize("delay", [0, 1, 2, 3, 7, 17, 18, 19, 20, 21, 10**9, 2**63 - 1, 10**40])
def test_fixed_delays(delay, horizon):
    assert delivered(delay, horizon) == naive([delay] * horizon, horizon)
    slots = make_calendar(check_delay(delay, horizon), horizon).n_slots
    assert slots == (delay + 2 if delay + 1 < horizon else 1)  # one is shared by what never arrives


def test_several_in_a_round_come_by_round():
    assert delivered(np.array([3, 2, 1, 0, 9, 0]), 6) == [(4, 0), (4, 1), (4, 2), (4, 3)]


def test_zero_delay_arrives_before_the_next_round():
    assert delivered(0, 4) == [(1, 0), (2, 1), (3, 2)]


def test_what_never_arrives_takes_no_room():
    calendar = make_calendar(check_delay(np.full(1000, 10**9), 1000), 1000)
    assert calendar.n_slots == 1
    assert delivered(np.full(1000, 10**9), 1000) == []


def test_many_in_flight():
    rng = np.random.default_rng(0)
    delays = rng.integers(0, 400, size=3000)
    assert delivered(delays, 3000) == naive(delays, 3000)
    assert make_calendar(delays, 3000).free.size == naive_in_flight(delays, 3000) > 100


def test_conversions_come_first():
    """A loss of 1 is delivered when the window closes; a loss below 1 after its wait."""
    calendar = make_calendar(np.array([2, 1, 0, 3, 0, 0, 0, 0]), 8, silence=4)
    arrived = []
    for t, outcome in enumerate([0.0, 1.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0]):
        r = due.py_func(calendar, t)
        while r >= 0:
            arrived.append((t, int(r)))
            r = due.py_func(calendar, t)
        book.py_func(calendar, t, outcome)
    assert arrived == [(3, 0), (3, 2), (5, 4), (6, 1), (6, 5), (7, 6)]
