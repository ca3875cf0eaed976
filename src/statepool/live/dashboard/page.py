"""What a pool's page shows, as plain numbers for its templates and charts, and its alarms."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from statepool.checks import Floats
from statepool.live.dashboard import formatting
from statepool.live.dashboard.reading import Reading, Tally, read
from statepool.live.dashboard.units import unit_of
from statepool.live.database import Database
from statepool.live.pool import Pool
from statepool.live.status import Status

N_ACTIONS, N_STATES = 20, 12
SHADES = 7
RECENT = 10.0
"""Seconds that count as now."""
STALE = 600.0
"""Seconds after which a report that is due and not learnt raises an alarm."""
ERROR = 1e-4
"""Probability of a false alarm of the test of the state mix."""
SMOOTH = 50
"""Outcomes of one point of a curve at least."""
FEWEST = 100
"""States observed, or outcomes, before a share is judged."""


class ActionLine(NamedTuple):
    label: str
    probability: float
    decisions: int
    outcomes: int
    mean: float


class StateLine(NamedTuple):
    label: str
    seen: float
    expected: float
    outcomes: int
    mean: float
    shade: int


class Arm(NamedTuple):
    outcomes: int
    mean: float


class Alarm(NamedTuple):
    kind: str
    title: str
    text: str


PageModel = dict[str, Any]
"""The values of the templates of a pool's page; amounts are in the user's unit."""


def page_of(database: Database, pool: Pool) -> PageModel:
    """Read a pool and put its page together."""
    pool.refresh()  # another process may have changed it
    status, unit = pool.status(), unit_of(pool)
    rewards, counts = unit.name == "reward", status.counts
    now = database.time()
    reading = read(database, pool.name, now, rewards)
    has_map = not status.learner.learns_map
    states = _state_lines(status, reading, has_map, rewards)
    shares = [share for line in states for share in (line.seen, line.expected) if share > 0]
    expected = _expected(reading, len(status.states)) if has_map else None
    return {
        "name": pool.name,
        "unit": unit.name,
        "decisions": status.decisions,
        "pending": status.pending,
        "oldest": None if reading.oldest_pending is None else max(0.0, now - reading.oldest_pending),
        "speed": _speed(reading, now),
        "learner": Arm(status.losses["learner"].count, unit.mean(status.losses["learner"])),
        "holdout": Arm(status.losses["holdout"].count, unit.mean(status.losses["holdout"])),
        "has_holdout": status.settings.holdout > 0,
        "lift": None if status.lift is None else unit.lift(status.lift),
        "expired": counts["expiries"],
        "corrected": status.pending - status.decisions + counts["outcomes"] + counts["expiries"],
        "version": status.version,
        "unlearned": reading.unlearned,
        "n_actions": len(status.numbers),
        "actions": _action_lines(status, reading),
        "states": states[:N_STATES],
        "more_states": max(0, len(states) - N_STATES),
        "widest": max(shares, default=1.0),
        "has_map": has_map,
        "alarms": alarms_of(status, reading, expected, now),
        "settings": _settings(status),
        "window": None if reading.since is None else now - reading.since,
        "in_window": reading.decisions,
        "curves": _curves(reading, now),
    }


def _speed(reading: Reading, now: float) -> float:
    """Decisions per second of late: over RECENT seconds, or the latest point where points are wider."""
    first = int((now - max(RECENT, reading.width)) // reading.width)
    count = sum(tally.decisions for (point, _), tally in reading.curve.items() if point > first)
    return count / max(now - (first + 1) * reading.width, 1.0)


def _action_lines(status: Status, reading: Reading) -> list[ActionLine]:
    """The most likely actions."""
    by_label = {status.actions[number]: tally for (number, label), tally in reading.by_action.items() if number >= 0}
    policy = status.distribution
    places = np.argsort(-np.fromiter(policy.values(), float), kind="stable")[:N_ACTIONS]
    labels = list(policy)
    lines = []
    for label in (labels[place] for place in places):
        tally = by_label.get(label, Tally())
        lines.append(ActionLine(formatting.label(label), policy[label], tally.decisions, tally.outcomes, tally.mean))
    return lines


def _expected(reading: Reading, n_states: int) -> tuple[Floats, Floats]:
    """How often each state was observed after actions with a known row, and how often the map expects it."""
    seen, expected = np.zeros(n_states), np.zeros(n_states)
    for action, row in reading.rows.items():
        counts = reading.observed[action]
        for state, count in counts.items():
            seen[state] += count
        expected += sum(counts.values()) * row
    return seen, expected


def _state_lines(status: Status, reading: Reading, has_map: bool, rewards: bool) -> list[StateLine]:
    """All states, the most observed first where there are many."""
    n_states = len(status.states)
    counts = np.array([reading.by_state[state].states if state in reading.by_state else 0 for state in range(n_states)])
    seen = counts / counts.sum() if counts.sum() else np.full(n_states, np.nan)
    _, expected = _expected(reading, n_states)
    share = expected / expected.sum() if has_map and expected.sum() else np.full(n_states, np.nan)
    tallies = [reading.by_state.get(state, Tally()) for state in range(n_states)]
    shades = _shades([tally.mean for tally in tallies], rewards)
    order = range(n_states) if n_states <= N_STATES else np.argsort(-counts, kind="stable").tolist()
    return [
        StateLine(
            formatting.label(status.states[s]), float(seen[s]), float(share[s]), tallies[s].outcomes, tallies[s].mean,
            shades[s],
        )
        for s in order
    ]  # fmt: skip


def _shades(means: Sequence[float], rewards: bool) -> list[int]:
    """From 0, the best outcome, to SHADES - 1; the middle where nothing is known."""
    known = [mean for mean in means if isfinite(mean)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        return [SHADES // 2] * len(means)
    places = [(mean - low) / (high - low) if isfinite(mean) else 0.5 for mean in means]
    return [min(int((1 - place if rewards else place) * SHADES), SHADES - 1) for place in places]


def alarms_of(status: Status, reading: Reading, expected: tuple[Floats, Floats] | None, now: float) -> list[Alarm]:
    """What a person should look at."""
    alarms = []
    counts = status.counts
    if reading.clipped:
        bounds = status.settings.reward_bounds or status.settings.loss_bounds
        text = f"{reading.clipped} outcomes are outside {bounds[0]:g} to {bounds[1]:g}: learnt as the nearest bound."
        alarms.append(Alarm("bounds", "Outcomes out of bounds", text))
    if counts.get("impossible"):
        text = f"{counts['impossible']} states were observed after actions whose row of P gives them probability 0."
        alarms.append(Alarm("impossible", "Impossible states", text))
    if expected is not None and not fits(*expected):
        text = "The states observed differ from what P says by more than chance: estimate P again from recent rows."
        alarms.append(Alarm("map", "States do not fit the map", text))
    if reading.oldest_unlearned is not None and now - reading.oldest_unlearned > STALE:
        age = formatting.span(now - reading.oldest_unlearned)
        text = (
            f"{reading.unlearned} reports are not learnt yet, the oldest for {age}: is a service running that writes?"
        )
        alarms.append(Alarm("stale", "Learning is stale", text))
    outcomes = sum(tally.outcomes for tally in reading.curve.values())
    if outcomes >= FEWEST and reading.expired == outcomes:
        text = f"All {outcomes} recent decisions expired without an outcome: are outcomes reported?"
        alarms.append(Alarm("expired", "No outcomes", text))
    return alarms


def fits(seen: Floats, expected: Floats) -> bool:
    """Pearson's test of the state mix; states that the map hardly expects are put together."""
    if seen.sum() < FEWEST:
        return True
    often = expected >= 5
    pairs = np.array([[*seen[often], seen[~often].sum()], [*expected[often], expected[~often].sum()]])
    pairs = pairs[:, pairs[1] > 0]
    statistic = float(((pairs[0] - pairs[1]) ** 2 / pairs[1]).sum())
    return bool(pairs.shape[1] < 2 or statistic <= chi2.isf(ERROR, pairs.shape[1] - 1))


def _curves(reading: Reading, now: float) -> dict[str, list[Any]]:
    """Time in seconds, then one column per curve; None: no value. The point of this moment is not complete."""
    latest = int(now // reading.width)
    points = sorted({point for point, _ in reading.curve if point < latest})
    tallies = {held: [reading.curve.get((point, held), Tally()) for point in points] for held in (False, True)}
    pairs = zip(tallies[False], tallies[True], strict=True)
    return {
        "time": [(point + 1) * reading.width for point in points],
        "decisions": [(one.decisions + other.decisions) / reading.width for one, other in pairs],
        "learner": _trailing_means(tallies[False]),
        "holdout": _trailing_means(tallies[True]),
    }


def _trailing_means(tallies: Sequence[Tally]) -> list[float | None]:
    """Means over as many points back as it takes to have SMOOTH outcomes; None before there are that many."""
    means: list[float | None] = []
    first = outcomes = 0
    total = 0.0
    for tally in tallies:
        outcomes, total = outcomes + tally.outcomes, total + tally.total
        while outcomes - tallies[first].outcomes >= SMOOTH:
            outcomes, total = outcomes - tallies[first].outcomes, total - tallies[first].total
            first += 1
        means.append(total / outcomes if outcomes >= SMOOTH else None)
    return means


def _settings(status: Status) -> list[tuple[str, str]]:
    settings = status.settings
    lines = [("learner", repr(status.learner))]
    if settings.window is not None:
        default = settings.default_reward if settings.default_reward is not None else settings.default_loss
        lines.append(("window", formatting.span(settings.window) + ("" if default is None else f", then {default:g}")))
    if settings.reward_bounds is not None:
        lines.append(("rewards", "from {:g} to {:g}".format(*settings.reward_bounds)))
    else:
        lines.append(("losses", "from {:g} to {:g}".format(*settings.loss_bounds)))
    every = settings.update_every
    lines.append(("new version", "as often as costs little" if every is None else f"after {every} reports"))
    if settings.holdout:
        action = "every action alike" if settings.holdout_action is None else formatting.label(settings.holdout_action)
        lines.append(("holdout", f"{formatting.share(settings.holdout)}, {action}"))
    if settings.fixed_action is not None:
        lines.append(("fixed action", formatting.label(settings.fixed_action)))
    for action, low, high in settings.probability_bounds[:N_ACTIONS]:
        lines.append((formatting.label(action), f"{formatting.share(low)} to {formatting.share(high)}"))
    return lines
