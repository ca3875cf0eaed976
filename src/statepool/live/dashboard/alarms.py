"""What a person should look at: three ways in which a pool's assumptions fail, the last two tested against luck.

    impossible      a state was seen after an action whose row gives it probability 0
    contradiction   in the same states and at the same time, an action's losses differ from those of the others

        z(a) = sum w (mean of a - mean of others) / sqrt(sum w var),  w = n n' / (n + n')  over (state, time) cells

    drift           a state's mean loss of late differs from what it was before

z is compared with the normal quantile of ERROR, shared among all that were tested. Only decisions old enough for
nearly all their outcomes to have come are compared.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.live.dashboard.lessons import Lessons

ERROR = 1e-4
SPANS = 8
FEWEST = 30
OTHERS = 5
"""A cell with fewer outcomes of other actions says nothing."""

LATE = 0.25
SMALLEST_DRIFT = 0.05
MOST = 5

Name = Callable[[int], str]
Oddities = dict[tuple[int, int], int]
"""How often (action, state) was seen that the map calls impossible."""


class Alarm(NamedTuple):
    kind: str
    title: str
    text: str


def alarms_of(lessons: Lessons, oddities: Oddities, action: Name, states: Sequence[Any]) -> list[Alarm]:
    """All alarms that ring, the gravest first."""
    return _impossible(oddities, action, states) + _contradictions(lessons, action) + _drifts(lessons, states)


def _impossible(oddities: Oddities, action: Name, states: Sequence[str]) -> list[Alarm]:
    worst = sorted(oddities.items(), key=lambda item: -item[1])[:MOST]
    text = "“{}” was seen {} after “{}”, whose row of P says never."
    return [
        Alarm("impossible", "Impossible state", text.format(states[s], _times(count), action(number)))
        for (number, s), count in worst
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _contradictions(lessons: Lessons, action: Name) -> list[Alarm]:
    numbers, z, gaps = contradictions(lessons)
    text = "In the same states, “{}” loses {:.2f} {} than other actions (z = {:+.1f}): its states do not tell all."
    return [
        Alarm(
            "contradiction",
            "Outcomes contradict the states",
            text.format(action(int(numbers[a])), abs(gaps[a]), "more" if gaps[a] > 0 else "less", z[a]),
        )
        for a in np.argsort(-np.abs(z))[:MOST]
    ]


def contradictions(lessons: Lessons) -> tuple[Ints, Floats, Floats]:
    """The actions that ring: their numbers, z, and by how much they lose more than others."""
    ripe = lessons.ripe()
    losses, states, decisions = lessons.losses[ripe], lessons.column("state")[ripe], lessons.column("number")[ripe]
    if losses.size < FEWEST:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    span = np.argsort(np.argsort(decisions, kind="stable")) * SPANS // losses.size
    numbers, mine = np.unique(lessons.column("action")[ripe], return_inverse=True)
    _, stratum = np.unique(states * SPANS + span, return_inverse=True)
    cells, cell = np.unique(stratum * numbers.size + mine, return_inverse=True)
    of_stratum, of_action = cells // numbers.size, cells % numbers.size

    n, total = np.bincount(cell), np.bincount(cell, losses)
    all_n, all_total = np.bincount(stratum), np.bincount(stratum, losses)
    variance = np.maximum(np.bincount(stratum, losses**2) / all_n - (all_total / all_n) ** 2, 0)
    others = (all_n[of_stratum] - n).astype(float)
    told = others >= OTHERS
    weight = np.where(told, n * others / (n + others), 0)
    gap = total / n - (all_total[of_stratum] - total) / np.maximum(others, 1)

    def by_action(values: Floats) -> Floats:
        return np.asarray(np.bincount(of_action, values, minlength=numbers.size), np.float64)

    weights, spread = by_action(weight), by_action(weight * variance[of_stratum])
    alike = numbers >= 0  # what requests brought is numbered anew in each: such a number is no action
    tested = alike & (by_action(np.where(told, n, 0)) >= FEWEST) & (spread > 0)
    differs = by_action(weight * gap)
    z = np.divide(differs, np.sqrt(spread), out=np.zeros(numbers.size), where=tested)
    rings = np.abs(z) > threshold(int(tested.sum()))
    return numbers[rings], z[rings], differs[rings] / weights[rings]


def _drifts(lessons: Lessons, states: Sequence[str]) -> list[Alarm]:
    moved = drifts(lessons, len(states))
    return [
        Alarm("drift", "Drift", f"The mean loss in “{states[s]}” went from {before:.2f} to {late:.2f} (z = {z:+.1f}).")
        for s, before, late, z in sorted(moved, key=lambda each: -abs(each[3]))[:MOST]
    ]


def drifts(lessons: Lessons, n_states: int) -> list[tuple[int, float, float, float]]:
    """The states that ring: (state, mean before, mean of late, z)."""
    ripe = lessons.ripe()
    losses, states, decisions = lessons.losses[ripe], lessons.column("state")[ripe], lessons.column("number")[ripe]
    if losses.size < FEWEST:
        return []
    late = decisions > np.quantile(decisions, 1 - LATE)

    def sums(which: Any, weights: Any = None) -> Floats:
        return np.bincount(states[which], None if weights is None else weights[which], n_states).astype(float)

    n, m = sums(~late), sums(late)
    enough = (n >= FEWEST) & (m >= FEWEST)
    n, m = np.where(enough, n, 1), np.where(enough, m, 1)
    before, now = sums(~late, losses) / n, sums(late, losses) / m
    variance = np.maximum(sums(late | ~late, losses**2) - n * before**2 - m * now**2, 0) / (n + m)
    error = np.sqrt(variance * (1 / n + 1 / m))
    z = np.divide(now - before, error, out=np.zeros(n_states), where=enough & (error > 0))
    rings = (np.abs(z) > threshold(int(enough.sum()))) & (np.abs(now - before) >= SMALLEST_DRIFT)
    return [(int(s), float(before[s]), float(now[s]), float(z[s])) for s in np.flatnonzero(rings)]


def threshold(tests: int) -> float:
    """What |z| must pass when so many are looked at."""
    return NormalDist().inv_cdf(1 - ERROR / 2 / max(tests, 1))
