"""What a pool's page shows, computed from its latest decisions: values for the templates and charts, and the alarms."""

from math import nan
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from scipy.stats import chi2, norm

from statepool.checks import Floats, Ints
from statepool.live.dashboard.formatting import label, outcome, share, span
from statepool.live.pool import Pool
from statepool.live.status import Status

LATEST, RECENT = 20_000, 1_000
"""Decisions that a page looks at: no page reads a whole table. Those of which it shows shares, with contexts."""
N_ACTIONS, N_STATES, N_POINTS, N_AGES = 20, 12, 60, 24
"""Actions and states that are listed, points of a curve, bars of the decisions that wait."""
STALE = 600.0
"""Seconds after which a report that is due and not learnt raises an alarm."""
ERROR = 1e-4
"""Probability of a false alarm of one test."""
FEWEST = 100
"""States observed, or outcomes, before a share or a mean is judged."""
SMOOTH = 50
"""Outcomes of one point of a curve, and of the curve of waits, at least."""


class Alarm(NamedTuple):
    kind: str
    title: str
    text: str


class Means(NamedTuple):
    """By group: how many values, their mean and its standard error."""

    number: Ints
    mean: Floats
    error: Floats


def means_of(group: Ints, size: int, values: Floats) -> Means:
    """Means of the values that are numbers, by group; a group below 0 is left out."""
    known = np.isfinite(values) & (group >= 0)
    group, values = group[known], values[known]
    count, total, squares = (np.bincount(group, weight, size) for weight in (None, values, values * values))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
        error = np.sqrt(np.maximum(squares - total * mean, 0.0) / (count - 1) / count)
    return Means(count, mean, np.where(count > 1, error, nan))


def page_of(pool: Pool) -> dict[str, Any]:
    """The values of the templates of a pool's page; amounts are in the user's unit."""
    status, now = pool.status(), pool.now()  # reads the latest version, which another process may have made
    settings, unit, reading = status.settings, status.unit, Reading(pool, status, now)
    lift = status.lift
    since = reading.at.min(initial=now)
    drawn_from = min(since, now - N_POINTS)  # a point of a curve is a second at least
    first_known = since + (settings.window or 0.0)
    oldest = status.counts["oldest_pending"]
    return {
        "name": pool.name,
        "unit": unit.name,
        "is_rate": reading.is_rate,
        "decisions": status.decisions,
        "recent": reading.n_recent,
        "pending": status.pending,
        "oldest": None if oldest is None else max(0.0, now - oldest),
        "expired": status.counts["expiries"] - status.counts["corrected"],
        "arms": {name: {"outcomes": tally.count, "mean": unit.mean(tally)} for name, tally in status.losses.items()},
        "has_holdout": settings.holdout > 0,
        "lift": lift,
        "worth": None if lift is None or lift.low <= 0 <= lift.high else lift.value * status.losses["learner"].count,
        "window": settings.window,
        "first_known": first_known - now if reading.at.size and first_known > now else None,
        "covers": now - since if reading.at.size else None,
        "in_reading": reading.at.size,
        "n_actions": len(status.numbers),
        "fixed": None if settings.fixed_action is None else label(settings.fixed_action),
        "actions": reading.actions(),
        "states": reading.states(),
        "n_states": len(status.catalogue.states),
        "has_map": reading.has_map,
        "has_contexts": bool(status.catalogue.contexts),
        "has_effects": settings.prior is not None and bool(settings.prior.cells),
        "waiting": reading.waiting(now),
        "alarms": reading.alarms(now),
        "curves": _curves(reading, drawn_from, now, 100.0 if reading.is_rate else 1.0),
        "pace": span((now - drawn_from) / N_POINTS),
    }


class Reading:
    """The latest decisions of a pool, the newest first: actions, states, and what does not fit together.

    Attributes
    ----------
    at, is_holdout, is_waiting
        Of each decision: when it was made, whether it is the holdout's, and whether it waits for its outcome.
    action, state
        Numbers; -1 for a candidate that is not in the catalogue, and for a state that was not reported.
    value
        The outcome within the bounds, or the default; not a number: there is none, or the window is not over.
    wait
        Seconds until the outcome; not a number: there is none.
    """

    def __init__(self, pool: Pool, status: Status, now: float) -> None:
        self._status, self._catalogue, settings = status, status.catalogue, status.settings
        self._bounds = settings.reward_bounds or settings.loss_bounds
        tables = pool.database.tables
        self._log, d, r = tables.log_name, tables.decisions.c, tables.reports.c
        joined, s, o, e = tables.joined()
        rewards = settings.reward_bounds is not None
        known = [(each.c.is_reward.is_(rewards), each.c.reported) for each in (o, e)]
        default = pool.definition.scale.default(settings)
        if settings.window is not None and default.is_reward is rewards:  # of old decisions it may not be stored yet
            known.append((o.c.at.is_(None) & e.c.at.is_(None), sa.literal(default.reported)))
        value = sa.case(*known)
        plain = sa.and_(d.context.is_(None), d.candidates.is_(None))
        columns = (d.decided_at, d.is_holdout, d.action, s.c.state, plain, value, o.c.at, e.c.at)
        latest = sa.select(*columns).select_from(joined).where(d.pool == pool.definition.id)
        clipped = r.pool == pool.definition.id, r.is_clipped.is_(True), r.decision == d.id
        with pool.database.read() as connection:
            rows = connection.execute(latest.order_by(d.decided_at.desc()).limit(LATEST)).all()
            last = sa.select(d.ticket).where(*clipped).order_by(d.id.desc()).limit(1)
            self._clipped = connection.execute(last).scalar_one_or_none()
            hour = sa.select(sa.func.count()).where(d.pool == pool.definition.id, d.decided_at > now - 3600)
            self.n_recent = connection.execute(hour).scalar_one()
        table = np.array([tuple(row) for row in rows], np.float64).reshape(-1, len(columns)).T  # None is not a number
        self.at, held, action, state, is_plain, given, come, expired = table
        self.is_holdout, self.action = held == 1, action.astype(np.int64)
        self.state = np.where(np.isnan(state), -1, state).astype(np.int64)
        self.value = np.where(self.at <= now - (settings.window or 0.0), given.clip(*self._bounds), nan)
        self.wait, self._is_expired = come - self.at, np.isnan(come) & ~np.isnan(expired)
        self.is_waiting = np.isnan(come) & np.isnan(expired)
        self.has_map = not status.learner.learns_map
        self.is_rate = self._bounds == (0.0, 1.0)
        self._by_state = means_of(self.state, len(status.catalogue.states), self.value)
        said = {} if settings.prior is None else settings.prior.states or {}
        self._said = np.array([said.get(str(each), (nan, 0.0))[0] for each in status.catalogue.states], np.float64)
        """What the audit says that each state is worth."""
        self._is_said = np.isfinite(self._said) & (self._by_state.number < FEWEST)
        self._values = np.where(self._is_said, self._said, self._by_state.mean)
        seen = (is_plain == 1) & (self.action >= 0) & (self.state >= 0)
        actions, counts = np.unique(self.action[seen], return_counts=True)
        self._seen = np.bincount(self.state[seen], minlength=len(status.catalogue.states)).astype(float)
        self._expected = counts @ self._catalogue.rows[actions]
        """How often each state was observed, and how often the map expects it."""

    def actions(self) -> list[dict[str, Any]]:
        """The most likely actions: how likely, what their states are worth, and what their own outcomes were."""
        own = means_of(self.action, len(self._catalogue.rows), self.value)
        values, shown, lines = self._values, self._status.policy, []
        if self._catalogue.contexts:  # each has a policy of its own: what was shown of late says more than any of them
            recent = self.action[~self.is_holdout & (self.action >= 0)][:RECENT]
            counts = np.bincount(recent, minlength=len(self._catalogue.rows))
            shown = counts[self._status.numbers] / max(recent.size, 1)
        for place in np.argsort(-shown, kind="stable")[:N_ACTIONS]:
            number = int(self._status.numbers[place])
            row = self._catalogue.rows[number]
            is_known = self.has_map and row[np.isnan(values)].sum() <= 0.01
            lines.append({
                "label": label(self._catalogue.labels[number]), "probability": float(shown[place]),
                "outcomes": int(own.number[number]), "mean": float(own.mean[number]),
                "by_states": float(row @ np.nan_to_num(values)) if is_known else nan,
                "why": self._why(row) if self.has_map else "",
            })  # fmt: skip
        return lines

    def _why(self, row: Floats) -> str:
        """The state that sets an action apart from the others, with its probability."""
        values = self._values
        known = np.isfinite(values)
        middle = values[known].mean() if known.any() else 0.0
        gain = np.abs((row - self._status.state_probabilities) * np.where(known, values - middle, 0.0))
        state = int(np.argmax(gain))
        return "" if gain[state] < 1e-12 else f"· {share(float(row[state]))} {label(self._catalogue.states[state])}"

    def states(self) -> list[dict[str, Any]]:
        """The states, the most observed where there are many."""
        n, state = len(self._catalogue.states), self.state
        counts = np.bincount(state[state >= 0], minlength=n)
        seen = counts / counts.sum() if counts.sum() else np.full(n, nan)
        expected = self._expected / self._expected.sum() if self.has_map and self._expected.sum() else np.full(n, nan)
        widest = max([each for each in (*seen, *expected) if each > 0], default=1.0)
        order = range(n) if n <= N_STATES else np.argsort(-counts, kind="stable")[:N_STATES].tolist()
        return [
            {
                "label": label(self._catalogue.states[s]), "seen": float(seen[s]), "expected": float(expected[s]),
                "outcomes": int(self._by_state.number[s]), "mean": float(self._values[s]), "widest": widest,
                "is_said": bool(self._is_said[s]),
            }
            for s in order
        ]  # fmt: skip

    def waiting(self, now: float) -> dict[str, Any]:
        """Bars of decisions that wait, by age, and the share of outcomes that have come by that age.

        The last bar has everything that is older than the window, or than the longest wait so far.
        """
        waits = self.wait[np.isfinite(self.wait)]
        longest = max(self._status.settings.window or waits.max(initial=0.0), 1e-6)
        ages = (now - self.at)[self.is_waiting]
        bars, come = (
            np.bincount(np.clip(each * (N_AGES / longest), 0, N_AGES).astype(int), minlength=N_AGES + 1)
            for each in (ages, waits)
        )
        tallest, come = int(bars.max()), np.cumsum(come)
        return {
            "bars": (100 * bars / max(tallest, 1)).tolist(), "tallest": tallest, "longest": longest,
            "curve": (100 * come / come[-1]).tolist() if come[-1] >= SMOOTH else [],
        }  # fmt: skip

    def alarms(self, now: float) -> list[Alarm]:
        """What a person should look at."""
        counts, judged = self._status.counts, (self._early(now), self._audit(), self._odds())
        found = [alarm for alarm in judged if alarm is not None]
        if counts["out_of_bounds"]:
            low, high = self._bounds
            text = (
                f"Reported outside the bounds, which are {low:g} to {high:g} now: {counts['out_of_bounds']}, learnt as "
                f"the nearest bound. The latest is ticket {self._clipped or '(erased)'}. All of them: "
                f"SELECT ticket, reward, loss FROM {self._log} WHERE pool = '{self._status.name}' AND clipped"
            )
            found.append(Alarm("bounds", "Outcomes out of bounds", text))
        if counts["impossible"]:
            text = f"Reported after actions whose row of P gives them probability 0: {counts['impossible']}."
            found.append(Alarm("impossible", "Impossible states", text))
        if self.has_map and not fits(self._seen, self._expected):
            text = "The states observed differ from what P says by more than chance: estimate P again from recent rows."
            found.append(Alarm("map", "States do not fit the map", text))
        if counts["late"] and now - counts["late_since"] > STALE:
            age = span(now - counts["late_since"])
            text = f"Reports not learnt yet: {counts['late']}, the oldest for {age}. Is a service running that writes?"
            found.append(Alarm("stale", "Learning is stale", text))
        outcomes = int(np.isfinite(self.value).sum())
        if outcomes >= FEWEST and self._is_expired.sum() >= outcomes:
            text = f"All {outcomes} recent decisions expired without an outcome: are outcomes reported?"
            found.append(Alarm("expired", "No outcomes", text))
        return found

    def _early(self, now: float) -> Alarm | None:
        """Without a window, decisions that nothing follows are never learnt: only early outcomes count."""
        waits = self.wait[np.isfinite(self.wait)]
        if self._status.settings.window is not None or waits.size < FEWEST:
            return None
        late = float(np.quantile(waits, 0.95))
        overdue = int(((now - self.at)[self.is_waiting] > late).sum())
        if overdue < max(FEWEST, 0.2 * waits.size):
            return None
        text = f"{overdue} decisions wait longer than {span(late)}, in which 95 % of the outcomes came: set a window."
        return Alarm("early", "Early outcomes only", text)

    def _audit(self) -> Alarm | None:
        """The audit's means of the states (the prior) against the holdout's outcomes."""
        held = self.is_holdout & (self.state >= 0) & np.isfinite(self.value)
        [count], [mean], [error] = means_of(np.zeros(held.sum(), np.int64), 1, self.value[held])
        said = self._said[self.state[held]].mean() if count else nan
        if count < FEWEST or not _differ(mean, said, error, ERROR):
            return None
        unit, seen, expected = self._status.unit.name, outcome(mean, self.is_rate), outcome(said, self.is_rate)
        text = f"The holdout's mean {unit} is {seen}, the audit's states say {expected}: audit recent rows again."
        return Alarm("audit", "Audit and holdout disagree", text)

    def _odds(self) -> Alarm | None:
        """Actions whose own outcomes differ from those of their states."""
        size = len(self._catalogue.rows)
        known = (self.state >= 0) & np.isfinite(self.value)
        action = self.action[known]
        own, expected = means_of(action, size, self.value[known]), means_of(
            action, size, self._by_state.mean[self.state[known]])  # fmt: skip
        level = ERROR / max(int((own.number > 0).sum()), 1)
        wrong = np.flatnonzero((own.number >= FEWEST) & _differ(own.mean, expected.mean, own.error, level))
        if not wrong.size or (self._status.settings.prior and self._status.settings.prior.cells):
            return None  # or the audit has found this, and the pool started from it
        labels = ", ".join(label(self._catalogue.labels[each]) for each in wrong[:3])
        others = " and others" if wrong.size > 3 else ""
        text = f"{labels}{others}: outcomes differ from what the states seen are worth. Audit recent rows for how much."
        return Alarm("odds", "Actions at odds with their states", text)


def _differ(mean: Any, other: Any, error: Any, level: float) -> Any:
    """Whether means with these standard errors differ from numbers, at a level; unknown ones do not."""
    return np.abs(mean - other) > norm.isf(level / 2) * np.where(error > 0, error, np.inf)


def fits(seen: Floats, expected: Floats) -> bool:
    """Pearson's test of the state mix; states that the map hardly expects are put together."""
    if seen.sum() < FEWEST:
        return True
    often = expected >= 5
    pairs = np.array([[*seen[often], seen[~often].sum()], [*expected[often], expected[~often].sum()]])
    pairs = pairs[:, pairs[1] > 0]
    statistic = float(((pairs[0] - pairs[1]) ** 2 / pairs[1]).sum())
    return bool(pairs.shape[1] < 2 or statistic <= chi2.isf(ERROR, pairs.shape[1] - 1))


def _curves(reading: Reading, since: float, now: float, scale: float) -> dict[str, list[Any]]:
    """Time in seconds, then one column per curve: decisions, and mean outcomes of both arms; None: no value."""
    if not reading.at.size:
        return {"time": [], "decisions": [], "learner": [], "holdout": []}
    width = (now - since) / N_POINTS
    point = np.clip((reading.at - since) / width, 0, N_POINTS - 1).astype(int)
    held, value = reading.is_holdout, scale * reading.value
    return {
        "time": (since + width * np.arange(1, N_POINTS + 1)).tolist(),
        "decisions": np.bincount(point, minlength=N_POINTS).tolist(),
        "learner": _trailing_means(point[~held], value[~held]),
        "holdout": _trailing_means(point[held], value[held]),
    }


def _trailing_means(point: Ints, values: Floats) -> list[float | None]:
    """Means over as many points back as it takes to have SMOOTH outcomes; None before there are that many."""
    known = np.isfinite(values)
    count = np.cumsum(np.bincount(point[known] + 1, minlength=N_POINTS + 1))
    total = np.cumsum(np.bincount(point[known] + 1, values[known], N_POINTS + 1))
    first = np.searchsorted(count, count[1:] - SMOOTH, "right") - 1
    return [
        round(float((total[place + 1] - total[start]) / (count[place + 1] - count[start])), 9)
        if start >= 0 and count[place + 1] > count[place] else None
        for place, start in enumerate(first)
    ]  # fmt: skip
