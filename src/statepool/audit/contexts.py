"""Who is asking: does the context move the outcome beyond the state, a map for each context, what personalising gains.

**Test.** That of `sufficiency` with contexts in the place of actions.

**Maps.** A row (context, action) is shrunk to the action's row tilted by the context, as if both moved the states
independently; the tilt is shrunk to none. All strengths are estimated from the counts (`estimates.shrinkage`).

    prior(c, a) ∝ P(a) · tilt(c)        P(c, a) = (n(c, a) + kappa · prior(c, a)) / (n(c, a) + kappa)

**Gain.** Each context's best action by its map, against one action for all, through the states. Three quarters of the
sample choose, the last quarter judges, in turns. The interval has room for the direct effects of actions that the log
leaves possible; its upper end is no lower than that of the choice judged by the rows that made it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts, Rows
from statepool.audit.effects import LEVEL, ActionEffects
from statepool.audit.estimates import Map, shrinkage
from statepool.audit.log import JOINT
from statepool.audit.sufficiency import Sufficiency, sufficiency_test
from statepool.checks import Floats, Ints

PAYS, NOT, OPEN = "pays", "does not pay", "may pay or not"
PARTS = 4
WORTHWHILE = 0.1
"""Less than this share of what choosing well gains over choosing blindly is not worth asking who it is."""
COMMON = 0.9
"""The one action for all was tried in contexts that make up this share of the rows."""
OFFERED = 20.0
"""An action never seen in a context where so many of its rows were to be expected is not offered there."""
MOST_CONTEXTS, MOST_ENTRIES = 1_000, 2_000_000


@dataclass(frozen=True, eq=False)
class Gain:
    """What personalising gains per decision, in losses; positive is better."""

    value: float
    lower: float
    upper: float
    least: float
    """What would be worth it."""

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
    test: Sufficiency = field(repr=False)
    gain: Gain | None
    """None if no action was tried nearly everywhere."""

    @property
    def pays(self) -> bool:
        return self.gain is not None and self.gain.verdict == PAYS

    @property
    def least_gain(self) -> float:
        """What personalising gains at the least."""
        return max(self.gain.lower, 0.0) if self.gain is not None and self.test.p >= LEVEL else 0.0


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
    effects: ActionEffects, base: float, level: float, seed: int,
) -> Contexts:  # fmt: skip
    """From the counts of each context, and the sample with final outcomes."""
    assert rows.context is not None
    n = np.array([table.effective for table in tables])
    tried = n.sum(axis=2)
    totals = tried.sum(axis=1)
    known = replace(rows, loss=np.where(rows.context >= 0, rows.loss, np.nan), action=np.maximum(rows.context, 0))
    test = sufficiency_test(known, len(names), counts.n_states, seed, base)
    P = context_maps(n, map_.P)[0]
    expected = totals[:, None] * tried.sum(axis=0) / max(tried.sum(), 1e-300)
    offered = (tried > 0) | (expected < OFFERED)
    c, share = P @ counts.state_means, totals / totals.sum()
    gain = None
    if counts.has_outcomes and min(len(names), counts.n_actions) > 1:
        gain = _judge(rows, counts, c, share, tried, effects, level, seed)
    shown = tuple(name.replace(JOINT, " / ") for name in names)
    best = np.where(offered, c, np.inf).argmin(axis=1)
    blank = max(counts.rows - int(sum(table.rows for table in tables)), 0)
    return Contexts(columns, shown, totals, blank, P, offered, best, test, gain)


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


def _judge(
    rows: Rows, counts: Counts, c: Floats, share: Floats, tried: Floats, effects: ActionEffects, level: float, seed: int
) -> Gain | None:
    """The gain with its interval; None if no action was tried nearly everywhere in every part."""
    assert rows.context is not None
    C, K = c.shape
    S, h = counts.n_states, counts.state_means
    cell = (np.maximum(rows.context, 0) * K + rows.action) * S + rows.state
    part = np.where(rows.context >= 0, np.random.default_rng((seed, 17)).integers(PARTS, size=cell.size), PARTS)
    tables = [np.bincount(cell[part == i], minlength=C * K * S).reshape(C, K, S) * 1.0 for i in range(PARTS)]
    gains, variances, used = [], [], np.zeros((C, K))
    for i, judging in enumerate(tables):
        choosing = np.sum([table for j, table in enumerate(tables) if j != i], axis=0)
        visits = judging.sum(axis=2)
        chosen = _weights(context_maps(choosing)[0] @ h, share, (visits > 0) & (choosing.sum(axis=2) > 0))
        if chosen is None:
            return None
        states = judging / np.maximum(visits, 1)[:, :, None]
        gap, spread = np.einsum("ck,cks->s", chosen, states), states @ h**2 - (states @ h) ** 2
        gains.append(float(gap @ h))
        noise = float((chosen**2 * spread / np.maximum(visits - 1, 1)).sum())
        variances.append(noise + PARTS * float(gap**2 @ counts.state_errors**2))
        used += chosen / PARTS
    # Effects of an action are the same in all contexts and do not average out.
    variance = float(np.mean(variances)) / PARTS + float(used.sum(axis=0) ** 2 @ effects.open.variance)
    value, half = float(np.mean(gains)), NormalDist().inv_cdf(0.5 + level / 2) * variance**0.5
    own = _weights(c, share, tried > 0)
    highest = max(value, 0.0 if own is None else float((own * c).sum()))
    least = max(WORTHWHILE * effects.blind, 0.004 * min(counts.mean, 1 - counts.mean))
    return Gain(value, value - half, highest + half, least)


def _weights(c: Floats, share: Floats, known: NDArray[np.bool_]) -> Floats | None:
    """What each pair counts for in the gain: the shares of contexts, for the one action less the best of each."""
    common = share @ known >= COMMON
    if not common.any():
        return None
    one = int(np.where(common, share @ c, np.inf).argmin())
    # Where the one for all cannot be judged, nothing is said to be gained.
    best = np.where(known[:, one], np.where(known, c, np.inf).argmin(axis=1), one)
    moved, weights = share * (best != one), np.zeros_like(c)
    weights[:, one] += moved
    weights[np.arange(share.size), best] -= moved
    return weights
