"""The arithmetic of `make flights`, on a made-up log and against loops; the log itself is not installed for tests."""

from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import destinations
    import flights
    import travellers

    assert callable(flights.main)
    return destinations, travellers


@pytest.fixture
def made_up(modules):
    """Two destinations with two and three lines; the last line stops flying after the third week."""
    destinations, _ = modules
    rng = np.random.default_rng(0)
    lines = destinations.Lines(np.array([0, 0, 1, 1, 1]), np.array([[0, 1, -1], [2, 3, 4]]), np.array([0, 1, 0, 1, 2]))
    time = np.sort(rng.uniform(0, 6 * destinations.WEEK, 600))
    line = rng.integers(5, size=600)
    line[(line == 4) & (time > 3 * destinations.WEEK)] = 2
    state, loss = rng.integers(3, size=600), (rng.random(600) < 0.1 + 0.1 * line).astype(float)
    late_half = time > 3 * destinations.WEEK
    return destinations.Flights(
        lines.destination[line], line, state, loss, time, late_half, rng.uniform(0, 9e4, 600)
    ), lines


def test_what_a_choice_saves(modules, made_up):
    destinations, _ = modules
    flights, lines = made_up
    chosen = lines.best(destinations.line_means(flights, 5))
    counts, late = (table.sum(axis=0) for table in destinations.weekly(flights, lines))
    expected = [
        loss - flights.loss[flights.line == chosen[where]].mean()
        for where, loss in zip(flights.destination, flights.loss, strict=True)
    ]
    assert destinations.saved(counts, late, lines, chosen) == pytest.approx(np.mean(expected))
    middle, low, high = destinations.interval(flights, lines, chosen)
    assert middle == pytest.approx(np.mean(expected))
    assert low < middle < high
    assert destinations.interval(flights, lines, chosen, chosen) == (0, 0, 0)


def test_a_traveller_gets_a_flight_of_the_line_in_that_week(modules, made_up):
    _, travellers = modules
    flights, lines = made_up
    world, week = travellers.make_world(flights, lines, seed=1), travellers.week_of(flights)
    assert world.time.size == 120
    for i, context in enumerate(world.context):
        asked_in, destination = divmod(int(context), 2)
        for place, line in enumerate(lines.places[destination]):
            flown = np.flatnonzero((flights.line == line) & (week == asked_in))
            assert world.available[context, place] == (flown.size > 0)
            if flown.size:
                assert world.flight[i, place] in flown
                assert world.mean[context, place] == pytest.approx(flights.loss[flown].mean())
        assert world.available[context, world.flown[i]]
    played = travellers.play_ucb(world, flights, n_destinations=2)
    assert world.available[world.context, played].all()
