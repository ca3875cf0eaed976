"""Who is asking: does the context move the outcome beyond the state, a map for each context, what personalising gains.

**Test.** That of `sufficiency` with contexts in the place of actions.

**Maps.** A row (context, action) is shrunk to the action's row tilted by the context, as if both moved the states
independently; the tilt is shrunk to none. All strengths are estimated from the counts (`estimates.shrinkage`).

    prior(c, a) ∝ P(a) · tilt(c)        P(c, a) = (n(c, a) + kappa · prior(c, a)) / (n(c, a) + kappa)

**Gain.** Each context's best action by its map, against one action for all. Three quarters of the sample choose, the
last quarter judges, in turns: sum_c share(c) [m(c, one) - m(c, best)], where m is the judging rows' states at the state
means and, on a hint of direct effects, what pairs of context and action add beyond their state and moment. Without a
hint the interval has room for the effects that the log leaves possible. A better choice than the log's may be left to
find: the upper end is no lower than that of draws from what is known of the maps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts, Rows
from statepool.audit.effects import LEVEL, ActionEffects, open_effects
from statepool.audit.estimates import Map, shrinkage
from statepool.audit.log import JOINT
from statepool.audit.sufficiency import Sufficiency, label_sums, sufficiency_test
from statepool.checks import Floats, Ints

PAYS, NOT, OPEN = "pays", "does not pay", "cannot tell"
PARTS = 4
WORTHWHILE = 0.1
"""Less than this share of what choosing well gains over choosing blindly is not worth asking who it is."""
COMMON = 0.9
"""The one action for all was tried in contexts that make up this share of the rows."""
HINT = 0.25
"""Direct effects are counted from this p on."""
OFFERED = 20.0
"""An action never seen in a context where so many of its rows were to be expected is not offered there."""
MOST_CONTEXTS, MOST_ENTRIES = 1_000, 2_000_000
DRAWS = 200
POWER, MARGIN, MOST_NEEDED = 0.9, 1.5, 1e12


@dataclass(frozen=True, eq=False)
class Gain:
    """What personalising gains per decision, in losses; positive is better."""

    value: float
    error: float
    lower: float
    upper: float
    least: float
    """What would be worth it."""
    through_states: bool
    """Whether it is judged through the states alone, without a hint of direct effects."""

    @property
    def verdict(self) -> str:
        return NOT if self.upper < self.least else PAYS if self.lower > 0 else OPEN


@dataclass(frozen=True, eq=False)
class Contexts:
    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: Floats
    blank: int
    """Rows without a context: they enter everything but this."""
    P: Floats = field(repr=False)
    offered: NDArray[np.bool_] = field(repr=False)
    best: Ints = field(repr=False)
    """The action that looks best in each context."""
    one: int
    """The one that looks best for all; -1 if no action was tried nearly everywhere."""
    test: Sufficiency = field(repr=False)
    gain: Gain | None
    more: int
    """If it cannot be told, about how many more rows for each context would tell."""

    @property
    def pays(self) -> bool:
        return self.gain is not None and self.gain.verdict == PAYS

    @property
    def least_gain(self) -> float:
        """What personalising through the states gains at the least."""
        known = self.gain is not None and self.gain.through_states and self.test.p >= LEVEL
        return max(self.gain.lower, 0.0) if known and self.gain is not None else 0.0


def check_contexts(columns: tuple[str, ...], names: tuple[str, ...], counts: Counts) -> None:
    """Refuse contexts that are blank throughout, or too many."""
    title, entries = " and ".join(columns), len(names) * counts.n_actions * counts.n_states
    if not names:
        raise ValueError(f"context: column {title} is blank in every row, expected who is asking")
    if len(names) > MOST_CONTEXTS or entries > MOST_ENTRIES:
        raise ValueError(
            f"context: {title} has {len(names)} different values for {counts.n_actions} actions and {counts.n_states} "
            f"states, expected at most {MOST_CONTEXTS} and maps of at most {MOST_ENTRIES} entries: coarser classes, or "
            "another column"
        )


def examine_contexts(
    columns: tuple[str, ...], names: tuple[str, ...], tables: list[Counts], counts: Counts, rows: Rows, map_: Map,
    effects: ActionEffects, level: float, seed: int,
) -> Contexts:  # fmt: skip
    """From the counts of each context, and the sample with final outcomes."""
    assert rows.context is not None
    n = np.array([table.effective for table in tables])
    tried = n.sum(axis=2)
    totals = tried.sum(axis=1)
    known = replace(rows, loss=np.where(rows.context >= 0, rows.loss, np.nan))
    test = sufficiency_test(replace(known, action=np.maximum(rows.context, 0)), len(names), counts.n_states, seed)
    P, strength = context_maps(n, map_.P)
    expected = totals[:, None] * tried.sum(axis=0) / max(tried.sum(), 1e-300)
    offered = (tried > 0) | (expected < OFFERED)
    c, share = P @ counts.state_means, totals / totals.sum()
    one = best_for_all(c, share, tried > 0)
    gain = None
    if one >= 0 and counts.has_outcomes and min(len(names), counts.n_actions) > 1:
        spread = np.maximum(P @ counts.state_means**2 - c**2, 0)
        doubt = np.sqrt(spread / (tried + strength))
        drawn = _drawn(c, doubt, offered, tried, share, seed)
        gain = _judge(known, counts, spread, share, np.quantile(drawn, (0.5 - level / 2, 0.5 + level / 2)), effects,
                      level, seed)  # fmt: skip
    more = _rows_needed(gain, totals.sum() / len(names), level) if gain is not None and gain.verdict == OPEN else 0
    shown = tuple(name.replace(JOINT, " / ") for name in names)
    best = np.where(offered, c, np.inf).argmin(axis=1)
    return Contexts(columns, shown, totals, max(counts.rows - int(sum(table.rows for table in tables)), 0), P, offered,
                    best, one, test, gain, more)  # fmt: skip


def context_maps(n: Floats, rows: Floats | None = None) -> tuple[Floats, float]:
    """Maps from counts (contexts, actions, states) and the strength of their prior; `rows` are the actions' rows."""
    visits, seen = n.sum(axis=2), n.sum(axis=1)
    if rows is None:
        overall = (n.sum(axis=(0, 1)) + 1e-9) / (n.sum() + 1e-9 * n.shape[2])
        rows, _ = _shrunk(n.sum(axis=0), np.tile(overall, (n.shape[1], 1)))
    expected = visits @ rows + 1e-12 * rows.mean(axis=0)
    expected /= expected.sum(axis=1, keepdims=True)
    leaning, _ = _shrunk(seen, expected)
    tilt = np.divide(leaning, expected, out=np.ones_like(leaning), where=expected > 0)
    prior = rows[None] * tilt[:, None]
    prior /= prior.sum(axis=2, keepdims=True)
    own = [np.divide(visits, visits.sum(axis=axis, keepdims=True), out=np.ones_like(visits), where=visits > 0)
           for axis in (0, 1)]  # fmt: skip
    flat, priors = n.reshape(-1, n.shape[2]), prior.reshape(-1, n.shape[2])
    # A row's prior was made from its action's and its context's rows, itself among both.
    P, strength = _shrunk(flat, priors, (1 - (1 - own[0]) * (1 - own[1])).ravel())
    return P.reshape(n.shape), strength


def _shrunk(n: Floats, prior: Floats, own: Floats | None = None) -> tuple[Floats, float]:
    strength = shrinkage(n, prior, own)
    P = (n + strength * prior) / (n.sum(axis=1, keepdims=True) + strength)
    return P / P.sum(axis=1, keepdims=True), strength


def best_for_all(c: Floats, share: Floats, tried: NDArray[np.bool_]) -> int:
    """The best action for all contexts, among those tried nearly everywhere; -1 if there is none."""
    common = share @ tried >= COMMON
    return int(np.where(common, share @ c, np.inf).argmin()) if common.any() else -1


def _judge(
    rows: Rows, counts: Counts, spread: Floats, share: Floats, drawn: Floats, effects: ActionEffects, level: float,
    seed: int,
) -> Gain | None:  # fmt: skip
    """The gain with its interval; None if no action was tried nearly everywhere in every part.

    `spread` is the variance of the state's mean in each context and action; `drawn` the ends of `_drawn`.
    """
    assert rows.context is not None
    C, K = spread.shape
    S, h = counts.n_states, counts.state_means
    asked = rows.context >= 0
    pair = np.maximum(rows.context, 0) * K + rows.action
    part = np.random.default_rng((seed, 17)).integers(PARTS, size=rows.action.size)
    tables = [
        np.bincount((pair * S + rows.state)[asked & (part == i)], minlength=C * K * S).reshape(C, K, S).astype(float)
        for i in range(PARTS)
    ]
    pairs = replace(rows, action=pair)
    found = sufficiency_test(pairs, C * K, S, seed).p < HINT
    gains, variances, used = [], [], np.zeros((C, K))
    for i, judging in enumerate(tables):
        visits = judging.sum(axis=2)
        choosing = np.sum([table for j, table in enumerate(tables) if j != i], axis=0)
        chosen = _weights(choosing, visits, share, h)
        if chosen is None:
            return None
        states = judging / np.maximum(visits, 1e-300)[:, :, None]
        gap = np.einsum("ck,cks->s", chosen, states)
        gain = float(gap @ h)
        noise = chosen**2 * np.divide(spread, visits, out=np.zeros_like(visits), where=visits > 0)
        variance = float(noise.sum()) + PARTS * float(gap**2 @ counts.state_errors**2)
        if found:
            sums = label_sums(replace(pairs, loss=np.where(part == i, rows.loss, np.nan)), C * K, S)
            D = np.divide(sums.U, sums.C, out=np.zeros_like(sums.U), where=sums.C > 0).reshape(C, K)
            left = np.divide(np.maximum(sums.V, sums.own), sums.C**2, out=np.full_like(sums.C, 0.25), where=sums.C > 0)
            gain += float((chosen * D).sum())
            variance += float((chosen**2 * left.reshape(C, K)).sum())
        gains.append(gain)
        variances.append(variance)
        used += chosen / PARTS
    value, variance = float(np.mean(gains)), float(np.mean(variances)) / PARTS
    if not found:
        left = open_effects(label_sums(pairs, C * K, S), counts.deviation).variance.reshape(C, K)
        # Effects of an action are the same in all contexts and do not average out; those of pairs do.
        variance += float((used**2 * left).sum()) + float(used.sum(axis=0) ** 2 @ effects.open.variance)
    z, error = NormalDist().inv_cdf(0.5 + level / 2), variance**0.5
    lower = min(value - z * error, float(drawn[0])) if found else value - z * error
    least = max(WORTHWHILE * effects.blind, 0.004 * min(counts.mean, 1 - counts.mean))
    return Gain(value, error, lower, max(value + z * error, float(drawn[1])), least, not found)


def _weights(choosing: Floats, judged: Floats, share: Floats, h: Floats) -> Floats | None:
    """What each pair counts for in the gain: the shares of contexts, for the one action less the best of each."""
    c = context_maps(choosing)[0] @ h
    known = (judged > 0) & (choosing.sum(axis=2) > 0)
    one = best_for_all(c, share, known)
    if one < 0:
        return None
    # Where the one for all cannot be judged, nothing is said to be gained.
    best = np.where(known[:, one], np.where(known, c, np.inf).argmin(axis=1), one)
    moved, weights = share * (best != one), np.zeros_like(c)
    weights[:, one] += moved
    weights[np.arange(share.size), best] -= moved
    return weights


def _drawn(
    c: Floats, doubt: Floats, offered: NDArray[np.bool_], tried: Floats, share: Floats, seed: int
) -> list[float]:
    """What the choice by the maps gains over the best for all, in draws from what is known of the maps."""
    rng, gains = np.random.default_rng((seed, 18)), []
    for _ in range(DRAWS):
        m = c + doubt * rng.standard_normal(c.shape)
        one = best_for_all(m, share, tried > 0)
        gains.append(float(share @ (m[:, one] - np.where(offered, m, np.inf).min(axis=1))))
    return gains


def _rows_needed(gain: Gain, have: float, level: float) -> int:
    """How many more rows for each context tell a gain that matters, or the one that was found, from none."""
    z = NormalDist()
    reach = z.inv_cdf(0.5 + level / 2) + z.inv_cdf(POWER)
    wide = max(gain.error, (gain.upper - gain.value) / z.inv_cdf(0.5 + level / 2))
    times = MARGIN * (reach * wide / max(gain.least, gain.value, 1e-12)) ** 2
    return round(min(max(times - 1, 0.5) * have, MOST_NEEDED))
