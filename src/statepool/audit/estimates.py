"""What a log says: the map, the state means and how they move, and whether the state is all that matters.

    P_hat(a) = (n(a) + kappa · prior) / (n(a) + kappa)      prior: the row of all actions

kappa is estimated from the counts: with rho = 1/(kappa + 1) the share of variance between actions, Pearson's statistic
has mean (K-1)(S-1) times 1 + rho (n0 - 1). With propensities rows count by 1/propensity.

**Drift.** The log is cut into periods of as many decisions each. The mean of a state in period b is y(b) = theta(b) +
noise of known variance v(b). A state drifts if its means differ beyond noise (χ² of heterogeneity, Holm-corrected over
states, at `LEVEL`); theta then has the variance over time that is left net of noise, by which the mean of the last
period is shrunk to the state's.

**Sufficiency.** Do outcomes depend on the action beyond the state? A test for each state, by permutation. The rows of
a state, in order of decision, are cut into stretches of `STRETCH` rows or a few more. If the state is all
that matters, the outcomes of a stretch are exchangeable among its actions, whatever the means did before and after and
whichever actions were frequent then: drift is not mistaken for an effect. With r the outcome less its stretch's mean,

    U(a) = sum of r over the rows of a          C(a) = sum over stretches of n(a) (1 - n(a)/n)
    T = sum_a (U(a) / (1 + M² C(a)))²           the score for effects with standard deviation M = `MATTERS` of the noise

T is compared with its values under shuffling within stretches, until `COUNTED` of them are larger (Besag and Clifford's
sequential test). Tails beyond most shuffles are those of a gamma distribution with their mean and variance. Holm's
correction over states; the smallest is that of the whole log.

Whether something happens and how much it brings are different things: purchases depend on the state, amounts on the
product's price. Amounts, if they differ at all, are tested beside the states, in the strata of all of them.

**What they come to.** Each action's own mean, and the price of choosing through the states:

    c = P_hat h                     what the states predict, h the state means
    m = c + D                       what is true, D the direct effects
    price = m(argmin c) - min m     regret per decision of choosing by c with nothing left to learn

An effect has two parts, since an outcome is the product of whether something happens and how much it brings: with q the
predicted rate of events and A their mean amount, D = A e + (q + e) g, where e is the action's effect on the rate and g
on the amount. Both are estimated with normal priors of the variances found (empirical Bayes). The price is a mean over
draws from what is then known, never the difference of two estimated minima, which would be too large. New actions whose
effects spread as much lose 1 - sd(c) / sd(m) of what can be gained, if both are normal. c is drawn with a normal prior
as well: where the states do not distinguish actions beyond noise, they predict nothing, and all is lost.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, gamma

from statepool.audit.counts import Counts, Rows
from statepool.checks import Floats, Ints

LEAST_SHARE = 1e-4
"""Rows are never taken to be more alike than this share of variance between them: kappa stays below 10 000."""
MOST_PERIODS, ROWS_A_PERIOD = 30, 400
STRETCH = 32
"""Rows of a state compared with each other: few, so that means hardly move; 1/32 of the evidence is the price."""
MATTERS = 0.1
SHUFFLES, WORK = (200, 2_000), 4e6
"""The least and the most shuffles; between them as many as shuffle `WORK` rows in all."""
COUNTED, DRAWS = 20, 200
LEVEL, CERTAIN = 0.05, 0.001
"""Direct effects, and differences in what the states predict, count below `CERTAIN`; up to `LEVEL` they are a hint."""
ABSENT, HINT, PRESENT = "not found", "a hint", "found"
GRAIN = 0.04
"""Of an outcome's deviation: actions known better than this do not count for more."""
LEAST_FREEDOM = 4.0
"""Fewer actions than five say next to nothing about the spread of effects in general; it is not used against them."""


class Map(NamedTuple):
    P: Floats
    strength: float
    """kappa: how many rows the prior counts as."""


def estimate_map(counts: Counts) -> Map:
    n = counts.effective
    overall = (n.sum(axis=0) + 1e-9) / (n.sum() + 1e-9 * counts.n_states)
    return shrink_rows(n, np.tile(overall, (counts.n_actions, 1)))


def shrink_rows(n: Floats, prior: Floats, own: Floats | None = None, doubt: float = 0.0) -> Map:
    """Rows shrunk to their priors; `own` and `doubt` as in `shrinkage`."""
    strength = shrinkage(n, prior, own, doubt)
    P = (n + strength * prior) / (n.sum(axis=1, keepdims=True) + strength)
    return Map(P / P.sum(axis=1, keepdims=True), strength)


def shrinkage(n: Floats, prior: Floats, own: Floats | None = None, doubt: float = 0.0) -> float:
    """kappa, by the mean of Pearson's statistic; smaller by `doubt` standard errors of that statistic.

    `own` is each row's part in its prior, by default its part of all.
    """
    visits = n.sum(axis=1)
    seen = (prior > 1e-8).sum(axis=1).max()
    if n.shape[0] < 2 or seen < 2:
        return 1.0
    expected = visits[:, None] * prior
    # The prior was made from the same rows: each takes out as much as it put in.
    own = np.where(visits > 0, visits / visits.sum() if own is None else own, 1.0)
    counted = (prior > 1e-8) & (expected > 0)
    pearson = float((np.divide((n - expected) ** 2, expected, out=np.zeros_like(n), where=counted)).sum())
    freedom = float((1 - own).sum()) * (seen - 1)
    growth = float(((1 - own) * (visits - 1)).sum()) * (seen - 1)
    share = (pearson - freedom + doubt * (2 * freedom) ** 0.5) / growth if growth > 0 else LEAST_SHARE
    return float(1 / min(max(share, LEAST_SHARE), 0.5) - 1)


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(np.array(p)[order] * np.arange(len(p), 0, -1), 1.0)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(steps)
    return corrected.tolist()


class Drift(NamedTuple):
    last: Floats
    """Mean loss of each state in the last period, net of noise."""
    spread: Floats
    """Standard deviation over time of each state's mean, net of noise; 0 where it does not drift."""


def measure_drift(rows: Rows, fallback: Floats) -> Drift:
    """From the sample; `fallback` is a state's mean where nothing better is known."""
    known = np.isfinite(rows.loss)
    if not rows.timed or known.sum() < 2:
        return Drift(fallback, np.zeros(fallback.size))
    count = int(min(MOST_PERIODS, max(known.sum() // ROWS_A_PERIOD, 2)))
    period = (np.arange(rows.loss.size) * count // rows.loss.size)[known]
    cell, loss = period * fallback.size + rows.state[known], rows.loss[known]
    sums = [np.bincount(cell, weights, count * fallback.size) for weights in (None, loss, loss**2)]
    n, total, square = (values.reshape(count, -1).astype(np.float64) for values in sums)
    seen, filled = n > 0, np.maximum(n, 1)
    y = np.where(seen, total / filled, 0.0)
    inside = (square - total * y).sum(axis=0)
    noise = np.maximum(inside / np.maximum((n - seen).sum(axis=0), 1), 1e-10)
    mean = np.where(seen.any(axis=0), total.sum(axis=0) / np.maximum(n.sum(axis=0), 1), fallback)
    apart = np.where(seen, y - mean, 0.0)
    beyond = (n * apart**2).sum(axis=0) / noise
    freedom = np.maximum(seen.sum(axis=0) - 1, 1)
    # n-weighted sums of squares have mean noise · freedom + spread² · lever.
    lever = n.sum(axis=0) - (n**2).sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    between = np.maximum((beyond - freedom) * noise / np.maximum(lever, 1e-9), 0.0)
    spread = np.where(np.array(holm(chi2.sf(beyond, freedom).tolist())) < LEVEL, np.sqrt(between), 0.0)
    shrunk = apart[-1] * spread**2 / np.maximum(spread**2 + noise / filled[-1], 1e-300)
    return Drift(np.clip(mean + shrunk, 0.0, 1.0), spread)


class Amounts(NamedTuple):
    """How much events bring, as the loss beyond that of nothing happening."""

    p: float
    """That it does not depend on the action; 1 where all bring the same."""
    mean: float
    own: Floats
    """Mean of each action's events beyond what is usual in their states, 0 where there is none."""
    events: Ints
    variance: float
    """Of amounts within an action."""
    differ: bool


@dataclass(frozen=True, eq=False)
class Sufficiency:
    happens: Floats = field(repr=False)
    """The sums of whether something happens, 0 or 1."""
    amounts: Amounts
    base: float
    """The loss if nothing happens."""
    corrected: list[float]
    """Holm's p-values of the states, and of amounts if they differ."""

    @property
    def p(self) -> float:
        """Of the whole log: that nothing has direct effects."""
        return min(self.corrected, default=1.0)

    @property
    def effects(self) -> str:
        """Whether there are direct effects: what verdict, estimates and sentences follow."""
        return PRESENT if self.p < CERTAIN else HINT if self.p < LEVEL else ABSENT


def sufficiency_test(rows: Rows, n_actions: int, n_states: int, seed: int = 0, base: float = 0.0) -> Sufficiency:
    """The test, from the sample with final outcomes; `base` is the loss if nothing happens."""
    known, event = np.flatnonzero(np.isfinite(rows.loss)), rows.loss != base
    ordered = known[np.argsort(rows.state[known], kind="stable")]
    parts = np.split(ordered, np.bincount(rows.state[known], minlength=n_states).cumsum()[:-1])
    ps = [examine(rows, [part], n_actions, seed * 1_000_003 + s)[0] for s, part in enumerate(parts)]
    happens = sums_by_action([stretches(rows.action[part], event[part] * 1.0) for part in parts], n_actions)
    amounts = _amounts(rows, [part[event[part]] for part in parts], base, n_actions, seed)
    return Sufficiency(happens, amounts, base, holm([*ps, amounts.p] if amounts.differ else ps))


def _amounts(rows: Rows, events: list[Ints], base: float, n_actions: int, seed: int) -> Amounts:
    (p, variance), every = examine(rows, events, n_actions, seed * 1_000_003 + len(events)), np.concatenate(events)
    usual = np.concatenate([np.full(part.size, rows.loss[part].mean() if part.size else 0.0) for part in events])
    action, beyond = rows.action[every], rows.loss[every] - usual
    n = np.bincount(action, minlength=n_actions)
    own = np.bincount(action, beyond, n_actions) / np.maximum(n, 1)
    within = float(((beyond - own[action]) ** 2).sum()) / max(every.size - int((n > 0).sum()), 1)
    mean = float(rows.loss[every].mean()) - base if every.size else 1.0
    return Amounts(p, mean, own, n, within, variance > 0)


def examine(rows: Rows, parts: list[Ints], n_actions: int, seed: int) -> tuple[float, float]:
    """The p-value of one state, or of several as one, and the variance around the means of stretches.

    `parts` are the rows of each state in order of decision.
    """
    cut = [stretches(rows.action[part], rows.loss[part]) for part in parts]
    U, C, _ = sums_by_action(cut, n_actions)
    n = sum(part.size for part in parts)
    squares, groups = sum(float((r**2).sum()) for _, r in cut), sum(len(r) for _, r in cut)
    variance = squares / max(n - groups, 1)
    if (C > 0).sum() < 2 or variance <= 1e-15:
        return 1.0, variance if variance > 1e-15 else 0.0
    weights = 1 / (1 + MATTERS**2 * C) ** 2 * (C > 0)
    statistic = float((weights * U**2).sum())
    # A hair's breadth for rounding: shuffles that undo themselves are equal, not smaller.
    least, larger = statistic * (1 - 1e-12), 0
    rng = np.random.default_rng((seed, 11))
    drawn: list[float] = []
    while larger < COUNTED and len(drawn) < np.clip(WORK / n, *SHUFFLES):
        shuffled = [np.bincount(a.ravel(), rng.permuted(r, axis=1).ravel(), n_actions) for a, r in cut]
        drawn.append(float((weights * np.sum(shuffled, axis=0) ** 2).sum()))
        larger += drawn[-1] >= least
    return p_value(statistic, np.array(drawn), larger), variance


def stretches(action: Ints, loss: Floats) -> tuple[Ints, Floats]:
    """Actions, and outcomes less the mean of their stretch: one row for each stretch, all of one length.

    What does not come out even is left out at the start: less than one row for each stretch.
    """
    count = max(loss.size // STRETCH, 1)
    used = loss.size - loss.size % count
    actions, losses = action[loss.size - used :].reshape(count, -1), loss[loss.size - used :].reshape(count, -1)
    return actions, losses - losses.mean(axis=1, keepdims=True) if used else losses


def sums_by_action(cut: list[tuple[Ints, Floats]], n_actions: int) -> Floats:
    """U, C, and the variance of U under shuffling, exactly: one column for each action."""
    sums = np.zeros((3, n_actions))
    for action, residuals in cut:
        length = residuals.shape[1]
        pairs, n = np.unique(np.arange(len(action))[:, None] * n_actions + action, return_counts=True)
        where, who = pairs // n_actions, pairs % n_actions
        spread = n * (1 - n / max(length, 1))
        squares = ((residuals**2).sum(axis=1) / max(length - 1, 1))[where]
        parts = ((action.ravel(), residuals.ravel()), (who, spread), (who, spread * squares))
        sums += [np.bincount(at, values, n_actions) for at, values in parts]
    return sums


def p_value(statistic: float, drawn: Floats, larger: int) -> float:
    """The share of shuffles at least as large; by a gamma tail where these are fewer than `COUNTED`."""
    if larger >= COUNTED:
        return larger / drawn.size
    mean, variance = float(drawn.mean()), float(drawn.var())
    if variance <= 0:
        return (larger + 1) / (drawn.size + 1)
    return max(float(gamma.sf(statistic, mean**2 / variance, scale=variance / mean)), 1e-300)


class Direct(NamedTuple):
    """D of each action, and the variance of what is unknown of it."""

    mean: Floats
    variance: Floats

    @property
    def spread(self) -> float:
        """The standard deviation of D over actions."""
        return float((self.mean.var() + self.variance.mean()) ** 0.5)


@dataclass(frozen=True, eq=False)
class ActionEffects:
    pooled: Floats = field(repr=False)
    """c."""
    direct: Direct = field(repr=False)
    own_error: Floats = field(repr=False)
    """The standard error of m."""
    spread_pooled: float
    """Standard deviation of c over actions, net of noise."""
    price: float
    blind: float
    """Regret per decision of choosing by c, and of choosing blindly."""
    drawn: Floats = field(repr=False)
    """The share of what can be gained that is lost by the log's actions, and by new ones; a row for each draw."""
    at_most: float
    """The share of what can be gained that is lost, if effects spread as much as the log leaves possible."""
    possible_gain: float
    """The most that choosing well may then gain over choosing blindly, per decision."""
    open: Direct = field(repr=False)
    """D if effects spread as much."""
    likely_spread: float
    """Standard deviation of c over actions, net of noise; at least what its own noise may hide."""

    @property
    def own(self) -> Floats:
        """m, the estimate that corrects for direct effects."""
        return self.pooled + self.direct.mean

    @property
    def lost(self) -> Floats:
        """The share of what can be gained that is lost by the log's actions and by new ones, the smaller first."""
        return np.clip(np.median(np.sort(self.drawn, axis=1), axis=0), 0.0, 1.0)


class Part(NamedTuple):
    """What is seen of one part of the effects: its value and noise for each action, and its variance over actions."""

    raw: Floats
    noise: Floats
    square: float
    """The variance over actions net of noise; it may come out negative."""
    typical: float
    """The noise of it."""
    freedom: float

    @classmethod
    def of(cls, raw: Floats, noise: Floats, seen: NDArray[np.bool_], grain: float, varies: bool) -> "Part":
        if seen.sum() < 2 or not varies:
            nothing = np.inf if varies else 0.0
            return cls(np.zeros_like(raw), np.full_like(raw, np.inf), 0.0, nothing, LEAST_FREEDOM)
        square = 0.0
        for _ in range(3):
            # Rare actions say little about the spread: weigh by how well each is known, beside the spread itself.
            weights = 1 / (noise[seen] + grain + max(square, 0.0)) ** 2
            weights /= weights.sum()
            typical, centre = float(weights @ noise[seen]), float(weights @ raw[seen])
            even = float(1 - weights @ weights)
            square = float(weights @ (raw[seen] - centre) ** 2) / even - typical
        # Uneven noise and weights leave as many degrees of freedom as the variance of the sum says.
        worth = typical**2 / max(float(weights**2 @ noise[seen] ** 2), 1e-300) if typical > 0 else float(seen.sum())
        return cls(raw, np.where(seen, noise, np.inf), square, typical, max(worth - 1, LEAST_FREEDOM))

    def believed(self, level: float = LEVEL) -> float:
        """The variance, where noise alone would not often show as much."""
        if self.square <= 0 or self.typical <= 0:
            return max(self.square, 0.0)
        seen = self.freedom * (1 + self.square / self.typical)
        return self.square if chi2.sf(seen, self.freedom) < level else 0.0

    def largest(self) -> float:
        """The upper end of the variance's interval at 90 %, as that of a χ²: noise + square is what is seen."""
        if not np.isfinite(self.typical):
            return 1.0
        seen = (self.typical + max(self.square, 0.0)) * self.freedom
        return min(float(seen / chi2.ppf(0.05, self.freedom)) - self.typical, 1.0)

    def shrink(self, square: float) -> tuple[Floats, Floats]:
        """Effects shrunk by a prior of this variance, and the variance left."""
        kept = square / (square + self.noise) if square > 0 else np.zeros_like(self.raw)
        return kept * self.raw, square * (1 - kept)


def estimate_effects(counts: Counts, map_: Map, found: Sufficiency, seed: int = 0) -> ActionEffects:
    h, rows = counts.state_means, counts.effective
    visits, pooled = rows.sum(axis=1), map_.P @ h
    of_row = np.maximum(map_.P @ h**2 - pooled**2, 0)
    noise, shared = of_row / (visits + map_.strength), map_.P**2 @ counts.state_errors**2
    (U, C, V), amounts, size = found.happens, found.amounts, found.amounts.mean
    rate, grain = (pooled - found.base) / size, (GRAIN * counts.deviation) ** 2
    rates = float((rate**2).mean())
    scale = np.where(C > 0, C, np.inf)
    seen = V > 0
    e = Part.of(U / scale, V / scale**2, seen, grain / size**2, bool(seen.any() or np.isinf(scale).all()))
    errors = amounts.variance / np.maximum(amounts.events, 1)
    g = Part.of(amounts.own, errors, amounts.events > 0, grain / max(rates, 1e-12), amounts.differ)
    # Rows of the map are shrunk for all states alike; how much c itself differs is estimated from plain rows.
    centre = float(visits @ pooled / visits.sum())
    plain = np.divide(rows @ h, visits, out=np.full_like(pooled, centre), where=visits > 0)
    states = Part.of(plain - centre, of_row / np.maximum(visits, 1), visits > 0, 1e-12, True)
    differ = states.believed(CERTAIN)
    predicted, left = states.shrink(differ)
    rng = np.random.default_rng((seed, 12))
    c = predicted + np.sqrt(left) * rng.standard_normal((DRAWS, pooled.size))
    normal = rng.standard_normal((DRAWS, pooled.size))

    def direct(of_rate: float, of_amount: float) -> Direct:
        (happen, left), (more, unknown) = e.shrink(of_rate), g.shrink(of_amount)
        return Direct(size * happen + (rate + happen) * more, size**2 * left + rate**2 * unknown)

    def cost(D: Direct) -> tuple[Floats, Floats, Floats]:
        """Price and blind regret of the log's actions, and the share lost by new ones, with these effects, by draw."""
        effects = D.mean + np.sqrt(D.variance) * normal
        m, apart = c + effects, c.std(axis=1)
        best, mean = m.min(axis=1), m.mean(axis=1)
        chosen = m[np.arange(DRAWS), c.argmin(axis=1)] if differ > 0 else mean
        total = np.hypot(apart, effects.std(axis=1))
        return chosen - best, mean - best, 1 - np.divide(apart, total, out=np.ones_like(total), where=total > 0)

    D = direct(e.believed(), g.believed()) if found.effects != ABSENT else direct(0.0, 0.0)
    price, blind, new = cost(D)
    largest = direct(e.largest(), g.largest())
    then, gain, lost_then = (float(each.mean()) for each in cost(largest))
    at_most = max(min(then / gain, 1.0) if gain > 0 else 0.0, lost_then)
    lost = np.divide(price, blind, out=np.zeros_like(price), where=blind > 0)
    seen_apart = float(pooled.var())
    error = float((2 * np.mean((noise + seen_apart) ** 2) / pooled.size) ** 0.5)
    likely = max(seen_apart - float(noise.mean()), (seen_apart + 1.645 * error) / 4) ** 0.5
    return ActionEffects(
        pooled, D, np.sqrt(noise + shared + D.variance), differ**0.5, float(price.mean()), float(blind.mean()),
        np.column_stack([lost, new]), at_most, gain, largest, likely,
    )  # fmt: skip
