"""Flights by destination: which line should a traveller take? The second part of `make flights`.

    request    a traveller to one of the destinations that at least two lines serve, 200 flights or more each
    action     the line: carrier and origin
    state      how late the flight leaves; a line's row of P is how often it leaves how late
    outcome    loss 1 if it arrives more than 15 minutes late or not at all

What would choosing by the whole year's means have saved, in hindsight, and what is left of it if one half of the
year chooses and the other half judges? How fast learners get there: travellers.py.
"""

from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

FEWEST = 200
WEEK = 604_800.0
CHOSEN = """
    WITH flights AS (SELECT *, split_part(action, '-', 2) AS destination FROM '{log}'),
    lines AS (
        SELECT action, destination, count(*) AS flights FROM flights GROUP BY action, destination
        HAVING count(*) >= {fewest} QUALIFY count(*) OVER (PARTITION BY destination) >= 2
    )
    SELECT dense_rank() OVER (ORDER BY destination) - 1 AS destination,
        dense_rank() OVER (ORDER BY destination, action) - 1 AS line,
        dense_rank() OVER (ORDER BY state) - 1 AS state,
        loss, epoch(decided_at) AS time, decided_at >= TIMESTAMP '2013-07-01' AS late_half,
        -- When a diverted flight came down is not known: by the next day one has heard of it.
        coalesce(epoch(resolved_at) - epoch(decided_at), 86400) AS wait
    FROM flights JOIN lines USING (action, destination) ORDER BY time, line, state, loss
"""
RESAMPLES = 2_000


class Flights(NamedTuple):
    """One entry a flight, in the order of time; destinations, lines and states are numbers."""

    destination: Any
    line: Any
    state: Any
    loss: Any
    time: Any
    late_half: Any
    wait: Any

    def part(self, which: Any) -> "Flights":
        return Flights(*(column[which] for column in self))


class Lines(NamedTuple):
    """Which lines there are: `places[destination, i]` is its i-th, -1 where it has fewer."""

    destination: Any
    places: Any
    place: Any

    def best(self, values: Any) -> Any:
        """The line with the least of these values, for each destination."""
        table = np.where(self.places < 0, np.inf, values[self.places])
        return self.places[np.arange(len(self.places)), table.argmin(axis=1)]


def read_flights(log: Path) -> tuple[Flights, Lines]:
    columns = duckdb.sql(CHOSEN.format(log=log, fewest=FEWEST)).fetchnumpy()
    flights = Flights(*(np.asarray(columns[name]) for name in Flights._fields))
    destination = np.zeros(flights.line.max() + 1, dtype=int)
    destination[flights.line] = flights.destination
    first = np.searchsorted(destination, np.arange(destination.max() + 1))
    place = np.arange(destination.size) - first[destination]
    places = np.full((first.size, place.max() + 1), -1)
    places[destination, place] = np.arange(destination.size)
    return flights, Lines(destination, places, place)


def line_means(flights: Flights, n: int) -> Any:
    """The share of late arrivals of each line; infinite for lines that do not fly."""
    counts = np.bincount(flights.line, minlength=n)
    late = np.bincount(flights.line, flights.loss, n)
    return np.where(counts == 0, np.inf, late / np.maximum(counts, 1))


def line_rows(flights: Flights, n: int) -> Any:
    """How often each line leaves how late, with one flight of the average line added: no state is impossible."""
    counts = np.zeros((n, flights.state.max() + 1))
    np.add.at(counts, (flights.line, flights.state), 1)
    counts += counts.sum(axis=0) / counts.sum()
    return counts / counts.sum(axis=1, keepdims=True)


def means_through_states(flights: Flights, n: int) -> Any:
    """What each line's row predicts with the means of the states, which all lines share."""
    theta = np.bincount(flights.state, flights.loss) / np.bincount(flights.state)
    return np.where(np.isinf(line_means(flights, n)), np.inf, line_rows(flights, n) @ theta)


def weekly(flights: Flights, lines: Lines) -> tuple[Any, Any]:
    """How many flights each line had in each week, and how many were late."""
    week = ((flights.time - flights.time.min()) // WEEK).astype(int)
    tables = np.zeros((2, week.max() + 1, lines.destination.size))
    np.add.at(tables[0], (week, flights.line), 1)
    np.add.at(tables[1], (week, flights.line), flights.loss)
    return tables[0], tables[1]


def saved(counts: Any, late: Any, lines: Lines, chosen: Any) -> float:
    """By how much the share of late arrivals falls if everybody takes the chosen line of the destination."""
    of_line = late / np.maximum(counts, 1)
    travellers = np.bincount(lines.destination, counts)
    flown = counts[chosen] > 0
    with_choice = np.where(flown, of_line[chosen], np.bincount(lines.destination, late) / np.maximum(travellers, 1))
    return float((late.sum() - travellers @ with_choice) / counts.sum())


def interval(flights: Flights, lines: Lines, *chosen: Any) -> tuple[float, float, float]:
    """What a choice saves in these flights (over a second one, if given), and the 95 % of resampled weeks around it."""
    counts, late = weekly(flights, lines)

    def measure(times: Any) -> float:
        each = [saved(times @ counts, times @ late, lines, choice) for choice in chosen]
        return each[0] - sum(each[1:])

    weeks, rng = len(counts), np.random.default_rng(0)
    drawn = [measure(rng.multinomial(weeks, np.full(weeks, 1 / weeks))) for _ in range(RESAMPLES)]
    return measure(np.ones(weeks)), *np.quantile(drawn, [0.025, 0.975])


def print_choices(flights: Flights, lines: Lines) -> None:
    """What choosing a line saves: where it chose, and where it did not."""
    n = lines.destination.size
    odd = (flights.time - flights.time.min()) // WEEK % 2 == 1
    splits = (
        ("the whole year", "the whole year", flights, flights),
        ("January to June", "July to December", flights.part(~flights.late_half), flights.part(flights.late_half)),
        ("every other week", "the weeks between", flights.part(~odd), flights.part(odd)),
    )
    sizes = (
        f"{len(lines.places)} destinations, {n} lines, {flights.loss.size:,} flights, {flights.loss.mean():.3f} late"
    )
    print(f"Choosing a line by destination: {sizes}")
    print(f"{'chosen in':18}{'judged in':19}{'by':22}fewer late, 95 %")
    for chose, judged, before, after in splits:
        own, pooled = lines.best(line_means(before, n)), lines.best(means_through_states(before, n))
        for by, choice in (
            ("each line's mean", (own,)),
            ("through the states", (pooled,)),
            ("difference", (pooled, own)),
        ):
            middle, low, high = interval(after, lines, *choice)
            print(f"{chose:18}{judged:19}{by:22}{middle:.4f} ({low:.4f} to {high:.4f})")
