"""How fast travellers learn which line to take: the third part of `make flights`.

They ask from the first of July on, one for every fifth flight, and choose among the lines to their destination. Nobody
has told them an outcome; how often each line leaves how late is known until then (or until the week before, if rows
are kept fresh: departures are public, arrivals are learnt from the own flight only, when it arrives).

A flight does not depend on who takes it, so the log says what every other line would have brought. A traveller who
chooses a line gets one of its flights of that week, the same one whoever chooses it, and is judged by the line's share
of late arrivals in that week.
"""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

import statepool as sp
from destinations import WEEK, Flights, Lines, line_means, line_rows, means_through_states, weekly

ONE_IN = 5
SEEDS = range(3)
RECENT = 4 * WEEK
KEPT = 10.0
"""How many flights an earlier row counts for beside the flights of the latest weeks."""
STAGES = (1_000, 3_000, 10_000)
OURS, UCB = "SelfTuned, rows of the latest 4 weeks", "UCB for each line, no states"


class World(NamedTuple):
    """Who asks when, and what each line to the destination would bring; places as in `Lines`, contexts are requests
    of one destination in one week."""

    time: Any
    context: Any
    available: Any
    """By context: does the line fly in that week? Timetables are public."""
    mean: Any
    """By context: the line's share of late arrivals in that week."""
    flown: Any
    """The place of the line that was flown."""
    flight: Any
    """By request: the flight that whoever chooses the line gets."""


def week_of(flights: Flights) -> Any:
    return ((flights.time - flights.time[0]) // WEEK).astype(int)


def make_world(flights: Flights, lines: Lines, seed: int) -> World:
    """Every fifth of these flights is a traveller's request."""
    counts, late = weekly(flights, lines)
    by_place = lines.places.ravel()
    available = (by_place >= 0) & (counts[:, by_place] > 0)
    mean = np.where(available, late[:, by_place] / np.maximum(counts[:, by_place], 1), np.nan)
    asking, week = np.arange(seed % ONE_IN, flights.time.size, ONE_IN), week_of(flights)
    order = np.lexsort((flights.line, week))
    first = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    candidates = lines.places[flights.destination[asking]]
    cell = week[asking, None], candidates
    luck = np.random.default_rng(seed).random(candidates.shape)
    flight = order[np.minimum(first[cell] + luck * counts[cell], order.size - 1).astype(int)]
    context = week[asking] * len(lines.places) + flights.destination[asking]
    shape = -1, lines.places.shape[1]
    return World(
        flights.time[asking], context, available.reshape(shape), mean.reshape(shape),
        lines.place[flights.line[asking]], flight,
    )  # fmt: skip


def recent(flights: Flights, start: float) -> Flights:
    return flights.part((flights.time >= start - RECENT) & (flights.time < start))


def fresh_rows(latest: list[Flights], rows: Any) -> Any:
    """For each week, every line's row of the four weeks before it; earlier rows count for a few flights."""
    found = []
    for flights in latest:
        counts = KEPT * rows
        np.add.at(counts, (flights.line, flights.state), 1)
        found.append(counts / counts.sum(axis=1, keepdims=True))
    return found


def play(learner: sp.learners.Learner, world: World, flights: Flights, rows: Any, seed: int) -> Any:
    """The place that a learner chooses for each traveller, taught by the outcomes as they come."""
    delay = round(float(flights.wait.mean() / np.diff(world.time).mean()))
    player = learner.player(rows, world.time.size, delay, seed, available=world.available)
    waiting: list[tuple[float, int, Any, float]] = []
    places = np.empty(world.time.size, dtype=int)
    for i, (time, context) in enumerate(zip(world.time.tolist(), world.context.tolist(), strict=True)):
        while waiting and waiting[0][0] <= time:
            player.update(*heappop(waiting)[2:])
        decision = player.act(context=context)
        taken = world.flight[i, decision.number]
        player.observe(decision, int(flights.state[taken]))
        heappush(waiting, (time + flights.wait[taken], i, decision, float(flights.loss[taken])))
        places[i] = decision.number
    return places


def play_ucb(world: World, flights: Flights, n_destinations: int) -> Any:
    """UCB1 with a count and a sum for each line: neither states nor other lines teach it."""
    counts, sums = np.zeros((2, n_destinations, world.flight.shape[1]))
    waiting: list[tuple[float, int, tuple[int, int], float]] = []
    places = np.empty(world.time.size, dtype=int)
    for i, (time, context) in enumerate(zip(world.time.tolist(), world.context.tolist(), strict=True)):
        while waiting and waiting[0][0] <= time:
            line, loss = heappop(waiting)[2:]
            counts[line] += 1
            sums[line] += loss
        n = counts[context % n_destinations]
        bonus = np.sqrt(0.5 * np.log(n.sum() + 1) / np.maximum(n, 1))
        hopes = np.where(n == 0, -np.inf, sums[context % n_destinations] / np.maximum(n, 1) - bonus)
        places[i] = place = int(np.where(world.available[context], hopes, np.inf).argmin())
        taken = world.flight[i, place]
        heappush(
            waiting, (time + flights.wait[taken], i, (context % n_destinations, place), float(flights.loss[taken]))
        )
    return places


def by_context(values: Any, lines: Lines, available: Any) -> Any:
    """A table by week and line as one by context and place; 0 where there is no such line."""
    table = np.asarray(values)[:, lines.places]
    table = table.reshape(-1, *table.shape[2:])
    return np.where(available.reshape(available.shape + (1,) * (table.ndim - 2)), table, 0.0)


def learn(flights: Flights, lines: Lines) -> dict[str, Any]:
    """By how much each way of choosing lowers a traveller's chance to be late, one row a seed."""
    n = lines.destination.size
    early, late = flights.part(~flights.late_half), flights.part(flights.late_half)
    starts = late.time[0] + WEEK * np.arange(week_of(late)[-1] + 1)
    latest = [recent(flights, start) for start in starts]
    rows = line_rows(early, n)
    every_week = [rows] * len(starts)
    fresh = fresh_rows(latest, rows)
    gains: dict[str, list[Any]] = {}
    for seed in SEEDS:
        world = make_world(late, lines, seed)
        known = {"January to June": [early] * len(starts), "the latest 4 weeks": latest}
        tables = {"January to June": every_week, "the latest 4 weeks": fresh}
        tables = {name: by_context(table, lines, world.available) for name, table in tables.items()}
        chosen = {
            f"{type(learner).__name__}, rows of {name}": play(learner, world, late, table, 90_000 + seed)
            for learner in (sp.SelfTuned(),)
            for name, table in tables.items()
        }
        chosen[UCB] = play_ucb(world, late, len(lines.places))
        for name, parts in known.items():
            for by, means in (("each line's mean", line_means), ("through the states", means_through_states)):
                # A line of which nothing is known comes after those that are known and before those that do not fly.
                table = by_context([np.minimum(means(part, n), 2.0) for part in parts], lines, world.available)
                best = np.where(world.available, table, 3.0).argmin(axis=1)
                chosen[f"all arrivals of {name} known, {by}"] = best[world.context]
        for name, places in chosen.items():
            lost = world.mean[world.context, places]
            gains.setdefault(name, []).append(world.mean[world.context, world.flown] - lost)
    shortest = min(len(row) for rows in gains.values() for row in rows)
    return {name: np.array([row[:shortest] for row in rows]) for name, rows in gains.items()}


def plus_minus(values: Any) -> str:
    """A mean over time and its standard error, from the means of 26 stretches: days and weeks are alike within."""
    means = np.array([part.mean() for part in np.array_split(values, 26)])
    return f"{values.mean():7.4f} ± {means.std(ddof=1) / np.sqrt(means.size):.4f}"


def print_learning(flights: Flights, lines: Lines) -> None:
    gains = {name: rows.mean(axis=0) for name, rows in learn(flights, lines).items()}
    size = next(iter(gains.values())).size
    stages = {f"first {stage:,}": slice(0, stage) for stage in STAGES} | {"latter half": slice(size // 2, size)}
    print("Travellers who begin on July 1: how many fewer are late than as flown, among the")
    print(" " * 60 + "".join(f"{name:>13}" for name in stages) + f"      all {size:,}")
    gains["SelfTuned, rows of the latest 4 weeks, less UCB"] = gains[OURS] - gains[UCB]
    for name, path in gains.items():
        print(f"{name:60}" + "".join(f"{path[stage].mean():13.4f}" for stage in stages.values()), plus_minus(path))
