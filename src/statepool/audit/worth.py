"""What personalising is worth: each context's best action by its own map, against one action for all.

Three quarters of the rows choose, by their maps and their state means, and the last quarter judges; in turns. Judged:

    sum_c share(c) [m(c, one) - m(c, best)]      m(c, a) = (plain row of the judging part) · (its state means) + D(c, a)

Direct effects D (`contrasts`) are reckoned with if the permutation test over pairs of context and action has a hint of
them; if not they are taken for 0, and the interval has room for as many as the log leaves possible. What a better
choice might bring yet is not in what parts judge: the upper end is no lower than that of draws from what is known of
the maps.
"""

from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from statepool.audit.context_map import context_maps
from statepool.audit.contexts import PARTS, Contexts, ContextTable
from statepool.audit.contrasts import BesideOthers
from statepool.audit.counts import Counts
from statepool.audit.effects import ActionEffects, open_effects
from statepool.audit.sample import Rows
from statepool.audit.sufficiency import label_sums, sufficiency_test
from statepool.checks import Floats, Ints

PAYS, NOT, OPEN = "pays", "does not pay", "cannot tell"
WORTHWHILE = 0.1
"""Less than this share of what choosing well gains over choosing blindly is not worth asking who it is."""
LEAST_WORTH = 0.002
"""Nor is less than this, of the range of outcomes."""
COMMON = 0.9
"""The one action for all was tried in contexts that make up this share of the rows."""
HINT = 0.25
"""Direct effects are reckoned with from this p on: to do so needlessly costs width, not to do so costs the truth."""
DRAWS, MOST_DRAWN = 400, 2 * 10**7
POWER, MARGIN = 0.9, 1.5
MOST_NEEDED = 1e12


@dataclass(frozen=True, eq=False)
class Worth:
    """In losses, per decision: positive is better for personalising."""

    value: float
    error: float
    lower: float
    upper: float
    least: float
    """What would be worth it."""
    through_states: bool
    """Whether it is judged through the states alone, as there was no hint of direct effects."""
    by_context: Floats = field(repr=False)
    errors: Floats = field(repr=False)
    """Of each context by itself, on rows that did not choose."""

    @property
    def verdict(self) -> str:
        if self.upper < self.least:
            return NOT
        return PAYS if self.lower > 0 else OPEN


@dataclass(frozen=True, eq=False)
class ContextMaps:
    """The maps of the whole log, and what is offered in each context."""

    P: Floats
    strength: float
    offered: NDArray[np.bool_]


def best_for_all(c: Floats, share: Floats, tried: NDArray[np.bool_]) -> int:
    """The best action for all contexts, among those that were tried nearly everywhere; -1 if there is none."""
    common = share @ tried >= COMMON
    return int(np.where(common, share @ c, np.inf).argmin()) if common.any() else -1


def judge_worth(
    contexts: Contexts, counts: Counts, rows: Rows, maps: ContextMaps, effects: ActionEffects, level: float, seed: int
) -> Worth | None:
    """The worth with its interval; None if no action was tried nearly everywhere in every part."""
    assert rows.context is not None
    share, shape = contexts.rows / contexts.rows.sum(), maps.offered.shape
    pairs = replace(rows, action=np.maximum(rows.context, 0) * counts.n_actions + rows.action)
    choices = [_choose(contexts.others(i), judging, share) for i, judging in enumerate(contexts.parts)]
    if any(choice is None for choice in choices):
        return None
    h = counts.state_means
    spread = np.maximum(maps.P @ h**2 - (maps.P @ h) ** 2, 0)
    errors = np.where(np.isfinite(counts.state_errors), counts.state_errors, 0.5)
    found = sufficiency_test(pairs, maps.offered.size, counts.n_states, seed).p < HINT
    looks = []
    made = [choice for choice in choices if choice is not None]
    for i, choice in enumerate(made):
        look = _look(contexts.parts[i], choice, spread, errors)
        if found:
            judging = replace(pairs, loss=np.where(contexts.part == i, pairs.loss, np.nan))
            look = _with_direct(look, choice, BesideOthers.of(judging, maps.offered.size))
        looks.append(look)
    # Each part judges with rows of its own: the mean of them has this variance.
    gains = np.mean([look.gains for look in looks], axis=0)
    own = np.mean([look.variances for look in looks], axis=0) / PARTS
    variance = float(np.mean([look.variance for look in looks])) / PARTS
    if not found:
        weights = np.mean([choice.weights for choice in made], axis=0)
        left = open_effects(*label_sums(pairs, maps.offered.size, h.size)).variance.reshape(shape)
        # Effects of an action are the same in all contexts and do not average out; those of pairs do.
        of_action = float(weights.sum(axis=0) ** 2 @ effects.own_direct.variance)
        own, variance = own + (weights**2 * left).sum(axis=1), variance + float((weights**2 * left).sum()) + of_action
    value = float(gains.sum())
    each = np.divide(gains, share, out=np.zeros_like(share), where=share > 0)
    variance += max(float(share @ each**2) - value**2, 0.0) / contexts.rows.sum()
    z, error = NormalDist().inv_cdf(0.5 + level / 2), variance**0.5
    direct = _direct(pairs, maps) if found else np.zeros(shape)
    drawn = np.quantile(_drawn(maps, h, spread, direct, contexts, share, seed), (0.5 - level / 2, 0.5 + level / 2))
    # Choices that are as good through the states may differ by their direct effects.
    lower = min(value - z * error, float(drawn[0])) if found else value - z * error
    return Worth(
        value, error, lower, max(value + z * error, float(drawn[1])),
        max(WORTHWHILE * effects.blind, LEAST_WORTH), not found, each,
        np.divide(np.sqrt(own), share, out=np.zeros_like(share), where=share > 0),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Choice:
    one: int
    best: Ints
    share: Floats
    """Of each context, 0 where the one for all is the best."""
    weights: Floats
    """What each pair counts for: the shares of contexts, for the one action less the best."""


def _choose(choosing: ContextTable, judging: ContextTable, share: Floats) -> _Choice | None:
    c = context_maps(choosing.n)[0] @ choosing.means
    known = (judging.n.sum(axis=2) > 0) & (choosing.n.sum(axis=2) > 0)
    one = best_for_all(c, share, known)
    if one < 0:
        return None
    # Where the one for all cannot be judged, nothing is said to be gained.
    best = np.where(known[:, one], np.where(known, c, np.inf).argmin(axis=1), one)
    moved = share * (best != one)
    weights = np.zeros_like(c)
    weights[:, one] += moved
    weights[np.arange(share.size), best] -= moved
    return _Choice(one, best, moved, weights)


@dataclass(frozen=True, eq=False)
class _Look:
    """What each context gains on the part that judges, weighed by its share, and variances."""

    gains: Floats
    variances: Floats
    variance: float
    gap: Floats
    """By context: how much more often the one action leads to each state."""


def _look(judging: ContextTable, choice: _Choice, spread: Floats, errors: Floats) -> _Look:
    visits = judging.n.sum(axis=2)
    rows = judging.n / np.maximum(visits, 1e-300)[:, :, None]
    gap = (rows[:, choice.one] - rows[np.arange(visits.shape[0]), choice.best]) * choice.share[:, None]
    noise = choice.weights**2 * np.divide(spread, visits, out=np.zeros_like(visits), where=visits > 0)
    # The state means of a part have so many times the variance of all rows'.
    common = PARTS * float((gap.sum(axis=0) ** 2) @ errors**2)
    gains = gap @ judging.means
    return _Look(gains, noise.sum(axis=1), float(noise.sum()) + common, gap)


def _with_direct(look: _Look, choice: _Choice, beside: BesideOthers) -> _Look:
    D, means = beside.effects, beside.means(look.gap.shape[1])
    gains = look.gains + (choice.weights * D.reshape(choice.weights.shape)).sum(axis=1) - look.gap @ means
    k = np.bincount(beside.label, minlength=D.size).reshape(choice.weights.shape)
    noise = float((beside.residual**2).mean()) if beside.residual.size else 0.25
    own = look.variances + (choice.weights**2 * noise / np.maximum(k, 1)).sum(axis=1)
    total = look.variance + beside.variance(choice.weights.ravel(), look.gap.sum(axis=0))
    return replace(look, gains=gains, variances=own, variance=total)


def _direct(pairs: Rows, maps: ContextMaps) -> Floats:
    """Direct effects of pairs beside what the states' means hold of them, by all rows."""
    beside = BesideOthers.of(pairs, maps.offered.size)
    return np.asarray(beside.effects.reshape(maps.offered.shape) - maps.P @ beside.means(maps.P.shape[2]))


def _drawn(
    maps: ContextMaps, h: Floats, spread: Floats, direct: Floats, contexts: Contexts, share: Floats, seed: int
) -> Floats:
    """What the choice by the map gains over the best for all, in draws from what is known of the maps."""
    c, tried = maps.P @ h, contexts.whole.n.sum(axis=2)
    doubt = np.sqrt(spread / (tried + maps.strength))
    common = share @ (tried > 0) >= COMMON
    rng, at = np.random.default_rng((seed, 18)), np.arange(share.size)
    gains = []
    for _ in range(max(min(DRAWS, MOST_DRAWN // c.size), 40)):
        m = c + doubt * rng.standard_normal(c.shape)
        one = np.where(common, share @ m, np.inf).argmin()
        best = np.where(maps.offered, m, np.inf).argmin(axis=1)
        truth = m + direct
        gains.append(share @ (truth[:, one] - truth[at, best]))
    return np.array(gains)


def rows_needed(worth: Worth, contexts: Contexts, level: float) -> int:
    """How many more rows a context tell a worth that matters, or the one that was found, from none."""
    z = NormalDist()
    reach = z.inv_cdf(0.5 + level / 2) + z.inv_cdf(POWER)
    wide = max(worth.error, (worth.upper - worth.value) / z.inv_cdf(0.5 + level / 2))
    times = MARGIN * (reach * wide / max(worth.least, worth.value)) ** 2
    have = contexts.judged / len(contexts.names)
    return round(min(max(times - 1, 0.5) * have, MOST_NEEDED))
