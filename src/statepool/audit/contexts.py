"""Who is asking: a map for each context, and what personalising gains.

**Maps.** A row (context, action) is shrunk to the action's row tilted by the context, as if both moved the states
independently; the tilt is shrunk to none. All strengths are estimated from the counts (`estimates.shrinkage`).

    prior(c, a) ∝ P(a) · tilt(c)        P(c, a) = (n(c, a) + kappa · prior(c, a)) / (n(c, a) + kappa)

**Gain.** Each context's best action by its map and direct effects, against one action for all. Rows that are shrunk by
estimated strengths are posterior means, so the best of them is not overestimated. The interval has room for the errors
of rows and state means, and for the direct effects of actions that the log leaves possible. Its upper end is at least
what the best choice would gain if rows differed by context as much as the log leaves possible, few as they may be.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts, fetch
from statepool.audit.estimates import ActionEffects, Map, shrink_rows
from statepool.audit.log import JOINT, Log
from statepool.checks import Floats, Ints

PAYS, NOT, OPEN = "pays", "does not pay", "cannot tell"
WORTHWHILE = 0.1
"""Less than this share of what choosing well gains over choosing blindly is not worth asking who it is."""
OFFERED = 20.0
"""An action never seen in a context where so many of its rows were to be expected is not offered there."""
MOST_CONTEXTS, MOST_ENTRIES = 1_000, 2_000_000
DRAWS, DOUBT = 100, 1.645
"""`DOUBT`: standard errors by which rows may differ more than they seem to."""


class Gain(NamedTuple):
    """What personalising gains per decision, in losses; positive is better."""

    value: float
    lower: float
    upper: float
    least: float
    """What would be worth it."""

    @property
    def verdict(self) -> str:
        return NOT if self.upper < self.least else PAYS if self.lower > 0 else OPEN


class Contexts(NamedTuple):
    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: Floats
    blank: int
    """Rows without a context: they enter everything but this."""
    P: Floats
    offered: NDArray[np.bool_]
    best: Ints
    """The best action in each context, corrected for direct effects."""
    gain: Gain

    @property
    def pays(self) -> bool:
        return self.gain.verdict == PAYS


def context_names(log: Log, counts: Counts) -> tuple[str, ...]:
    """The contexts of a log, if columns are given for them; refuses those that are blank throughout, or too many."""
    if not log.columns.context:
        return ()
    found = fetch(log.table.filter(log.table.context.notnull()).select("context").distinct())["context"]
    names, title = tuple(sorted(found.tolist())), " and ".join(log.columns.context)
    entries = len(names) * counts.n_actions * counts.n_states
    if not names:
        raise ValueError(f"context: column {title} is blank in every row, expected one that says who is asking")
    if len(names) > MOST_CONTEXTS or entries > MOST_ENTRIES:
        most = f"at most {MOST_CONTEXTS}, and {MOST_ENTRIES} with each action and state"
        raise ValueError(f"context: {title} has {len(names)} different values, expected {most}: coarser classes")
    return names


def examine_contexts(
    columns: tuple[str, ...], names: tuple[str, ...], tables: list[Counts], counts: Counts, map_: Map,
    effects: ActionEffects, level: float,
) -> Contexts:  # fmt: skip
    """From the counts of each context, and of all."""
    n = np.array([table.effective for table in tables])
    tried = n.sum(axis=2)
    totals = tried.sum(axis=1)
    P, strength = context_maps(n, map_.P)
    expected = totals[:, None] * tried.sum(axis=0) / max(tried.sum(), 1e-300)
    offered = (tried > 0) | (expected < OFFERED)
    best = np.where(offered, P @ counts.state_means + effects.direct.mean, np.inf).argmin(axis=1)
    gain = _gain(P, n, strength, best, offered, counts, effects, level)
    gain = gain._replace(upper=max(gain.upper, _possible_gain(n, map_.P, offered, counts.state_means, level)))
    shown = tuple(name.replace(JOINT, " / ") for name in names)
    blank = max(counts.rows - int(sum(table.rows for table in tables)), 0)
    return Contexts(columns, shown, totals, blank, P, offered, best, gain)


def _possible_gain(n: Floats, rows: Floats, offered: NDArray[np.bool_], h: Floats, level: float) -> float:
    """What the best action of each context gains, at the upper end, with rows shrunk as little as the log allows."""
    P, strength = context_maps(n, rows, DOUBT)
    c, visits, rng = P @ h, n.sum(axis=2), np.random.default_rng(17)
    share = visits.sum(axis=1) / n.sum()
    error = np.sqrt(np.maximum(P @ h**2 - c**2, 0.0) / (visits + strength + 1))
    gains = []
    for _ in range(DRAWS):
        drawn = c + error * rng.standard_normal(c.shape)
        one = int((share @ drawn).argmin())
        best = np.where(offered, drawn, np.inf).min(axis=1)
        gains.append(float((share * offered[:, one]) @ (drawn[:, one] - best)))
    return float(np.quantile(gains, 0.5 + level / 2))


def context_maps(n: Floats, rows: Floats, doubt: float = 0.0) -> Map:
    """Maps from counts (contexts, actions, states) and the strength of their prior; `rows` are the actions' rows."""
    visits, seen = n.sum(axis=2), n.sum(axis=1)
    expected = visits @ rows + 1e-12 * rows.mean(axis=0)
    expected /= expected.sum(axis=1, keepdims=True)
    leaning, _ = shrink_rows(seen, expected, doubt=doubt)
    tilt = np.divide(leaning, expected, out=np.ones_like(leaning), where=expected > 0)
    prior = rows[None] * tilt[:, None]
    prior /= prior.sum(axis=2, keepdims=True)
    own = [np.divide(visits, visits.sum(axis=axis, keepdims=True), out=np.ones_like(visits), where=visits > 0)
           for axis in (0, 1)]  # fmt: skip
    flat, priors = n.reshape(-1, n.shape[2]), prior.reshape(-1, n.shape[2])
    # A row's prior was made from its action's and its context's rows, itself among both.
    P, strength = shrink_rows(flat, priors, (1 - (1 - own[0]) * (1 - own[1])).ravel(), doubt)
    return Map(P.reshape(n.shape), strength)


def _gain(
    P: Floats, n: Floats, strength: float, best: Ints, comparable: NDArray[np.bool_], counts: Counts,
    effects: ActionEffects, level: float,
) -> Gain:  # fmt: skip
    """The gain with its interval; `comparable[c, a]`: action a was offered in context c."""
    h, visits, every = counts.state_means, n.sum(axis=2), np.arange(len(n))
    share, c = visits.sum(axis=1) / n.sum(), P @ h
    m = c + effects.direct.mean
    one = int((share @ m).argmin())
    # Where the one action for all was not offered, nothing is said to be gained.
    moved = share * (best != one) * comparable[:, one]
    gap = moved @ (P[:, one] - P[every, best])
    noise = (P @ h**2 - c**2) / (visits + strength + 1)
    # Effects of an action are the same in all contexts and do not average out.
    used = np.bincount(best, moved, c.shape[1])
    used[one] -= moved.sum()
    variance = float(
        moved**2 @ (noise[:, one] + noise[every, best])
        + gap**2 @ counts.state_errors**2
        + used**2 @ effects.open.variance
    )
    value, half = float(moved @ (m[:, one] - m[every, best])), NormalDist().inv_cdf(0.5 + level / 2) * variance**0.5
    least = max(WORTHWHILE * effects.blind, 0.004 * min(counts.mean, 1 - counts.mean))
    return Gain(value, value - half, value + half, least)
