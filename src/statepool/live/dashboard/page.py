"""What a pool's page shows, as values for its templates and charts, and its alarms."""

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from statepool.checks import Floats
from statepool.live.dashboard import formatting
from statepool.live.dashboard.reading import Reading, Tally, read
from statepool.live.pool import Pool
from statepool.live.status import Status

N_ACTIONS, N_STATES, N_COMPARED = 20, 12, 500
RECENT = 10.0
"""Seconds that count as now."""
STALE = 600.0
"""Seconds after which a report that is due and not learnt raises an alarm."""
ERROR = 1e-4
"""Probability of a false alarm of one test."""
FEWEST = 100
"""States observed, or outcomes, before a share or a mean is judged."""
SMOOTH = 50
"""Outcomes of one point of a curve at least."""

PageModel = dict[str, Any]
"""The values of the templates of a pool's page; amounts are in the user's unit."""


class Alarm(NamedTuple):
    kind: str
    title: str
    text: str


def page_of(pool: Pool) -> PageModel:
    """Read a pool and put its page together."""
    status, now = pool.status(), pool.now()  # reads the latest version, which another process may have made
    settings, unit, reading = status.settings, status.unit, read(pool, now)
    view = _View(status, reading)
    arms = {name: {"outcomes": tally.count, "mean": unit.mean(tally)} for name, tally in status.losses.items()}
    curves, pace = _curves(reading, now)
    lift = None if status.lift is None else unit.lift(status.lift)
    return {
        "name": pool.name,
        "unit": unit.name,
        "is_rate": (settings.reward_bounds or settings.loss_bounds) == (0.0, 1.0),
        "decisions": status.decisions,
        "speed": formatting.pace(_speed(reading, now)),
        "pace": pace,
        "pending": status.pending,
        "oldest": None if reading.since is None else max(0.0, now - (status.counts["oldest_pending"] or now)),
        "expired": status.counts["expiries"],
        "corrected": status.counts["corrected"],
        "arms": arms,
        "has_holdout": settings.holdout > 0,
        "lift": lift,
        "worth": None if lift is None or lift.low <= 0 <= lift.high else lift.value * status.losses["learner"].count,
        "window": settings.window,
        "covers": None if reading.since is None else now - reading.since,
        "in_reading": reading.sum().decisions,
        "n_actions": len(status.numbers),
        "fixed": None if settings.fixed_action is None else formatting.label(settings.fixed_action),
        "actions": view.actions(),
        "states": view.states()[:N_STATES],
        "more_states": max(0, len(status.states) - N_STATES),
        "has_map": view.has_map,
        "waiting": _waiting(reading),
        "alarms": view.alarms(now),
        "settings": _settings(status),
        "curves": curves,
    }


def _speed(reading: Reading, now: float) -> float:
    """Decisions per second of late: over RECENT seconds, or the latest point where points are wider."""
    first = int((now - max(RECENT, reading.width)) // reading.width)
    count = sum(tally.decisions for (point, _), tally in reading.curve.items() if point > first)
    return count / max(now - (first + 1) * reading.width, 1.0)


class _View:
    """Actions and states of a reading, and what does not fit together."""

    def __init__(self, status: Status, reading: Reading) -> None:
        self._status, self._reading = status, reading
        self.has_map = not status.learner.learns_map
        n = len(status.states)
        self._by_state = [reading.sum(cell for cell in reading.cells if cell.state == state) for state in range(n)]
        self._values = np.array([tally.mean for tally in self._by_state])
        self._by_action: dict[int, Tally] = {}
        self._observed: dict[int, Floats] = {}
        """By action: how often each state was observed in decisions without context and candidates."""
        self._expected: dict[int, Tally] = {}
        """By action: its outcomes, were each as its state's outcomes are on average."""
        for cell in reading.cells:
            if cell.action < 0:
                continue
            self._by_action[cell.action] = self._by_action.get(cell.action, Tally()) + cell.tally
            if cell.state is not None:
                seen = self._observed.setdefault(cell.action, np.zeros(n))
                seen[cell.state] += cell.tally.states if cell.is_plain else 0
                value = self._values[cell.state]
                known = Tally(
                    outcomes=cell.tally.outcomes, total=cell.tally.outcomes * value if isfinite(value) else 0.0
                )
                self._expected[cell.action] = self._expected.get(cell.action, Tally()) + known

    def actions(self) -> list[dict[str, Any]]:
        """The most likely actions: how likely, what their states are worth, and what their own outcomes were."""
        catalogue, numbers = self._status.catalogue, self._status.numbers
        lines = []
        for place in np.argsort(-self._status.policy, kind="stable")[:N_ACTIONS]:
            number = int(numbers[place])
            row, tally = catalogue.rows[number], self._by_action.get(number, Tally())
            known = np.nan_to_num(self._values)
            missing = row[~np.isfinite(self._values)].sum() > 0.01
            lines.append({
                "label": formatting.label(catalogue.labels[number]), "probability": float(self._status.policy[place]),
                "decisions": tally.decisions, "outcomes": tally.outcomes, "mean": tally.mean,
                "by_states": nan if missing or not self.has_map else float(row @ known),
                "why": self._why(row) if self.has_map else "",
            })  # fmt: skip
        return lines

    def _why(self, row: Floats) -> str:
        """The state that sets an action apart from the others: with its probability, and that of the average."""
        known = np.isfinite(self._values)
        middle = self._values[known].mean() if known.any() else 0.0
        gain = (row - self._status.state_probabilities) * np.where(known, self._values - middle, 0.0)
        state = int(np.argmax(np.abs(gain)))
        if abs(gain[state]) < 1e-12:
            return ""
        return f"{formatting.label(self._status.states[state])} {formatting.share(float(row[state]))}"

    def states(self) -> list[dict[str, Any]]:
        """All states, the most observed first where there are many."""
        n = len(self._status.states)
        counts = np.array([tally.states for tally in self._by_state], float)
        seen = counts / counts.sum() if counts.sum() else np.full(n, nan)
        _, expected = self._mix()
        share = expected / expected.sum() if self.has_map and expected.sum() else np.full(n, nan)
        widest = max([each for each in (*seen, *share) if each > 0], default=1.0)
        shades = _shades(self._values.tolist(), self._status.unit.name == "reward")
        order = range(n) if n <= N_STATES else np.argsort(-counts, kind="stable").tolist()
        return [
            {
                "label": formatting.label(self._status.states[s]), "seen": float(seen[s]), "expected": float(share[s]),
                "outcomes": self._by_state[s].outcomes, "mean": self._by_state[s].mean, "shade": shades[s],
                "widest": widest,
            }
            for s in order
        ]  # fmt: skip

    def _mix(self) -> tuple[Floats, Floats]:
        """How often each state was observed after frequent actions, and how often the map expects it."""
        frequent = sorted(self._observed, key=lambda action: -self._observed[action].sum())[:N_COMPARED]
        seen, expected = np.zeros(len(self._status.states)), np.zeros(len(self._status.states))
        for action in frequent:
            seen += self._observed[action]
            expected += self._observed[action].sum() * self._status.catalogue.rows[action]
        return seen, expected

    def alarms(self, now: float) -> list[Alarm]:
        """What a person should look at."""
        status, reading = self._status, self._reading
        counts, settings = status.counts, status.settings
        found = []
        if counts["out_of_bounds"]:
            low, high = settings.reward_bounds or settings.loss_bounds
            n = formatting.counted(counts["out_of_bounds"], "outcome")
            text = f"{n} outside {low:g} to {high:g}: stored as reported, learnt as the nearest bound."
            found.append(Alarm("bounds", "Outcomes out of bounds", text))
        if counts["impossible"]:
            n = formatting.counted(counts["impossible"], "state")
            text = f"{n} observed after actions whose row of P gives them probability 0."
            found.append(Alarm("impossible", "Impossible states", text))
        if self.has_map and not fits(*self._mix()):
            text = "The states observed differ from what P says by more than chance: estimate P again from recent rows."
            found.append(Alarm("map", "States do not fit the map", text))
        if counts["late"] and now - counts["late_since"] > STALE:
            n, age = formatting.counted(counts["late"], "report"), formatting.span(now - counts["late_since"])
            text = f"{n} not learnt yet, the oldest for {age}: is a service running that writes?"
            found.append(Alarm("stale", "Learning is stale", text))
        outcomes = reading.sum().outcomes
        if outcomes >= FEWEST and reading.expired == outcomes:
            text = f"All {outcomes} recent decisions expired without an outcome: are outcomes reported?"
            found.append(Alarm("expired", "No outcomes", text))
        found += [alarm for alarm in (self._early(), self._audit(), self._odds()) if alarm is not None]
        return found

    def _early(self) -> Alarm | None:
        """Without a window, decisions that nothing follows are never learnt: only early outcomes count."""
        waits, pending = np.cumsum(self._reading.waits or [0]), self._reading.pending
        if self._status.settings.window is not None or waits[-1] < FEWEST:
            return None
        late = int(np.searchsorted(waits, 0.95 * waits[-1])) + 1
        overdue = sum(pending[late:])
        if overdue < max(FEWEST, 0.2 * waits[-1]):
            return None
        age = formatting.span(late * self._reading.age)
        text = f"{overdue} decisions wait longer than {age}, in which 95 % of the outcomes came: set a window."
        return Alarm("early", "Early outcomes only", text)

    def _audit(self) -> Alarm | None:
        """The audit's means of the states (the prior) against the holdout's outcomes."""
        prior = self._status.settings.prior
        cells = [cell for cell in self._reading.cells if cell.is_holdout and cell.state is not None]
        if prior is None or not prior.states:
            return None
        means = [prior.states.get(str(label), (nan, 0.0))[0] for label in self._status.states]
        seen = self._reading.sum(cells)
        said = sum(cell.tally.outcomes * means[cell.state or 0] for cell in cells) / max(seen.outcomes, 1)
        if seen.outcomes < FEWEST or not _differ(seen.mean, said, seen.error):
            return None
        text = f"The holdout's mean {self._status.unit.name} is {formatting.amount(seen.mean)}, the audit's states say "
        return Alarm(
            "audit", "Audit and holdout disagree", f"{text}{formatting.amount(said)}: audit recent rows again."
        )

    def _odds(self) -> Alarm | None:
        """Actions whose own outcomes differ from those of their states."""
        level = ERROR / max(len(self._by_action), 1)
        wrong = [
            action for action, tally in self._by_action.items()
            if tally.outcomes >= FEWEST and action in self._expected
            and _differ(tally.mean, self._expected[action].mean, tally.error, level)
        ]  # fmt: skip
        if not wrong:
            return None
        labels = ", ".join(formatting.label(self._status.actions[action]) for action in wrong[:3])
        text = (
            f"{labels}{' and others' if len(wrong) > 3 else ''}: outcomes differ from what the states seen are worth."
        )
        return Alarm("odds", "Actions at odds with their states", text)


def _differ(mean: float, other: float, error: float, level: float = ERROR) -> bool:
    return bool(error > 0 and abs(mean - other) > norm.isf(level / 2) * error)


def _shades(means: Sequence[float], rewards: bool, count: int = 7) -> list[int]:
    """From 0, the best outcome, to count - 1; the middle where nothing is known."""
    known = [mean for mean in means if isfinite(mean)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        return [count // 2] * len(means)
    places = [(mean - low) / (high - low) if isfinite(mean) else 0.5 for mean in means]
    return [min(int((1 - place if rewards else place) * count), count - 1) for place in places]


def fits(seen: Floats, expected: Floats) -> bool:
    """Pearson's test of the state mix; states that the map hardly expects are put together."""
    if seen.sum() < FEWEST:
        return True
    often = expected >= 5
    pairs = np.array([[*seen[often], seen[~often].sum()], [*expected[often], expected[~often].sum()]])
    pairs = pairs[:, pairs[1] > 0]
    statistic = float(((pairs[0] - pairs[1]) ** 2 / pairs[1]).sum())
    return bool(pairs.shape[1] < 2 or statistic <= chi2.isf(ERROR, pairs.shape[1] - 1))


def _waiting(reading: Reading) -> dict[str, Any]:
    """Bars of decisions that wait, by age, and the share of outcomes that have come by that age."""
    come = np.cumsum(reading.waits or [0])
    tallest = max(reading.pending, default=0)
    return {
        "bars": [100 * n / tallest if tallest else 0.0 for n in reading.pending],
        "curve": (100 * come / come[-1]).tolist() if come[-1] else [],
        "tallest": tallest,
        "longest": reading.age * max(len(reading.waits) - 1, 0),
    }


def _curves(reading: Reading, now: float) -> tuple[dict[str, list[Any]], str]:
    """Time in seconds, then one column per curve, and the unit of time of the decisions; None: no value.

    The point of this moment is not complete.
    """
    latest = int(now // reading.width)
    points = sorted({point for point, _ in reading.curve if point < latest})
    tallies = {held: [reading.curve.get((point, held), Tally()) for point in points] for held in (False, True)}
    counts = [one.decisions + other.decisions for one, other in zip(tallies[False], tallies[True], strict=True)]
    seconds, pace = formatting.pace_unit(max(counts, default=0) / reading.width)
    return {
        "time": [(point + 1) * reading.width for point in points],
        "decisions": [count / reading.width * seconds for count in counts],
        "learner": _trailing_means(tallies[False]),
        "holdout": _trailing_means(tallies[True]),
    }, pace


def _trailing_means(tallies: Sequence[Tally]) -> list[float | None]:
    """Means over as many points back as it takes to have SMOOTH outcomes; None before there are that many."""
    means: list[float | None] = []
    first, sums = 0, Tally()
    for tally in tallies:
        sums += tally
        while sums.outcomes - tallies[first].outcomes >= SMOOTH:
            sums.outcomes, sums.total = sums.outcomes - tallies[first].outcomes, sums.total - tallies[first].total
            first += 1
        means.append(round(sums.mean, 9) if tally.outcomes and sums.outcomes >= SMOOTH else None)
    return means


def _settings(status: Status) -> list[tuple[str, str]]:
    settings = status.settings
    low, high = settings.reward_bounds or settings.loss_bounds
    lines = [(f"{status.unit.name}s", f"from {low:g} to {high:g}")]
    if settings.window is not None:
        default = settings.default_reward if settings.default_reward is not None else settings.default_loss
        lines.append(("window", formatting.span(settings.window) + ("" if default is None else f", then {default:g}")))
    if settings.holdout:
        action = "every action alike" if settings.holdout_action is None else formatting.label(settings.holdout_action)
        lines.append(("holdout", f"{formatting.share(settings.holdout)}, {action}"))
    for action, least, most in settings.probability_bounds[:N_ACTIONS]:
        lines.append((formatting.label(action), f"{formatting.share(least)} to {formatting.share(most)}"))
    return lines
