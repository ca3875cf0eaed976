"""What direct effects come to: shrunken effects, the true mean of each action, and the price of choosing by pooling.

    c = P_hat h                        what pooling predicts, h the state means
    m = c + D,  D(a) = sum_s P(s|a) delta(a, s)      what is true, delta the direct effects
    price = m(argmin c) - min m        regret of a decision chosen by the pooled estimate with nothing left to learn

Effects are estimated with a normal prior of the variance found (empirical Bayes). The price is a mean over draws
from what is then known, never the difference of two estimated minima: the winner's curse is drawn along. Beside it,
`saving` is what one half of the outcomes says about choices made on the other half; it rests on no prior.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from statepool.audit.counts import Counts
from statepool.audit.map import Map, effective_counts
from statepool.audit.sufficiency import StateTest, Sufficiency
from statepool.checks import Floats, Ints

DRAWS = 200
LEVEL = 0.05
SURE = 1.645
LEAST_FREEDOM = 4.0
"""Fewer actions than five say next to nothing about the spread of effects in general; it is not used against them."""


@dataclass(frozen=True, eq=False)
class Direct:
    """D of each action if effects spread as much as the log leaves possible, and the variance of what is unknown."""

    mean: Floats
    variance: Floats


@dataclass(frozen=True)
class Possible:
    """What the log leaves open about the variance of direct effects over actions, and what that would cost."""

    noise_of_means: float
    """The variance of what is seen of an action's effect, if there is none; a mean over actions."""
    freedom: float
    """As how many independent actions these are, less one: degrees of freedom of the variance."""
    at_least: tuple[float, float]
    at_most: tuple[float, float]
    """(lost by the log's actions, lost by new ones) if effects spread as little, or as much, as the log leaves open."""
    noise: float
    """The variance of one outcome around its state and moment."""
    spread: float
    """Standard deviation of c over actions, net of noise; at least what its own noise may hide."""
    gain: float
    """The most that choosing well may gain over choosing blindly, per decision."""


@dataclass(frozen=True, eq=False)
class ActionEffects:
    direct: Floats = field(repr=False)
    """delta, shrunk: one row an action, one column a state."""
    doubt: Floats = field(repr=False)
    """The standard deviation of what is left unknown of each."""
    pooled: Floats = field(repr=False)
    """c, what pooling predicts of each action."""
    own: Floats = field(repr=False)
    """m, the shrunken estimate of each action's true mean."""
    spread_pooled: float
    """Standard deviation of c over actions, net of noise."""
    spread_direct: float
    """That of D."""
    price: float
    price_interval: tuple[float, float]
    blind: float
    """Regret of a decision made without looking: the mean of all actions less the best."""
    typical_loss: float
    """The share of `lost` for actions with other effects of the same spread: what new actions are to expect."""
    rank_correlation: float
    """Spearman's, of c and m, net of noise."""
    correlation: float
    saving: float
    saving_error: float
    """What correcting saves a decision over pooling, each half judged by the other."""
    possible: "Possible"
    """What the spread of direct effects may be, given the log's noise."""
    own_direct: "Direct" = field(repr=False)

    @property
    def lost(self) -> float:
        """The share of what there is to gain that pooling loses."""
        return self.price / self.blind if self.blind > 0 else 0.0


def estimate_effects(counts: Counts, map_: Map, found: Sufficiency, seed: int = 0) -> ActionEffects:
    h, visits = counts.state_means, effective_counts(counts).sum(axis=1)
    pooled = map_.P @ h
    noise = np.maximum(map_.P @ h**2 - pooled**2, 0) / (visits + map_.strength)
    # Where the test finds nothing, what is left over is noise and is not carried on.
    tests = [
        test if p < LEVEL else replace(test, size=0.0) for test, p in zip(found.states, found.corrected, strict=True)
    ]
    direct = np.column_stack([shrunken(test) for test in tests])
    doubt = np.column_stack([_doubt(test) for test in tests])
    U, C, V = (np.sum([getattr(test, name) for test in found.states], axis=0) for name in "UCV")
    square, noise_of_means, freedom = _spread(U, C, V)
    believed = max(square, 0.0) if found.p < LEVEL else 0.0
    D, left = _shrink(U, C, V, believed)
    rng = np.random.default_rng((seed, 12))
    c = pooled + np.sqrt(noise) * rng.standard_normal((DRAWS, pooled.size))
    luck = rng.standard_normal((2, DRAWS, pooled.size))
    m = c + D + np.sqrt(left) * luck[0]
    prices, blind = _prices(c, m)
    anew = _share_lost(c, c + believed**0.5 * luck[1])
    saving, saving_error = _cross_fitted(pooled, found, believed**0.5)
    ends = variance_interval(square, noise_of_means, freedom)
    least, worst = (_shares_at(end, c, (U, C, V), luck) for end in ends)
    spread = float(max(pooled.var() - noise.mean(), 0.0) ** 0.5)
    widest = max(float(pooled.var()) + SURE * _error_of_variance(pooled, noise), 0.0)
    possible = Possible(
        noise_of_means, freedom, least[:2], worst[:2], _outcome_noise(found), max(spread, widest**0.5 / 2), worst[2]
    )
    return ActionEffects(
        direct, doubt, pooled, pooled + D, spread, believed**0.5, float(prices.mean()),
        (float(np.quantile(prices, 0.025)), float(np.quantile(prices, 0.975))),
        blind, anew, _mean_correlation(_ranks(c), _ranks(m)), _mean_correlation(c, m), saving, saving_error, possible,
        Direct(*_shrink(U, C, V, ends[1])),
    )  # fmt: skip


def open_effects(U: Floats, C: Floats, V: Floats) -> Direct:
    """D of whatever these sums are of, if effects spread as much as the log leaves possible."""
    return Direct(*_shrink(U, C, V, variance_interval(*_spread(U, C, V))[1]))


def _shares_at(
    square: float, c: Floats, sums: tuple[Floats, Floats, Floats], luck: Floats
) -> tuple[float, float, float]:
    """What the log's actions and new ones lose if effects have this variance, and what blind choice then costs."""
    D, left = _shrink(*sums, square)
    m = c + D + np.sqrt(left) * luck[0]
    _, blind = _prices(c, m)
    return _share_lost(c, m), _share_lost(c, c + square**0.5 * luck[1]), blind


def _share_lost(c: Floats, m: Floats) -> float:
    prices, blind = _prices(c, m)
    return float(prices.mean() / blind) if blind > 0 else 0.0


def _outcome_noise(found: Sufficiency) -> float:
    rows = np.array([test.rows for test in found.states], dtype=np.float64)
    return float(np.average([test.variance for test in found.states], weights=np.maximum(rows, 1e-9)))


def _error_of_variance(values: Floats, noise: Floats) -> float:
    """The standard error of the variance of values, from their noise."""
    spread = max(float(values.var()), 0.0)
    return float((2 * np.mean((noise + spread) ** 2) / max(values.size, 1)) ** 0.5)


def _prices(c: Floats, m: Floats) -> tuple[Floats, float]:
    """What choosing by c costs in each draw, and what choosing blindly costs on average."""
    best = m.min(axis=1)
    return m[np.arange(len(m)), c.argmin(axis=1)] - best, float((m.mean(axis=1) - best).mean())


def shrunken(test: StateTest) -> Floats:
    """The effects of one state: (diag(n) + lambda - n n'/N) delta = U, lambda = sigma²/tau², solved exactly."""
    if test.size <= 0 or test.variance <= 0:
        return np.zeros(test.U.size)
    ridge = test.variance / test.size**2
    # C is n (1 - n/N): solving for n keeps the action's own share of its stretch's mean apart.
    total = max(float(test.C.sum()), 1.0)
    n = test.C
    scaled, ones = test.U / (n + ridge), n / (n + ridge)
    bend = total - float((n * ones).sum())
    effects = scaled + ones * float((n * scaled).sum()) / bend if bend > 1e-9 else scaled
    return np.asarray(effects)


def _doubt(test: StateTest) -> Floats:
    if test.size <= 0 or test.variance <= 0:
        return np.zeros(test.U.size)
    return np.sqrt(test.variance / (test.C + test.variance / test.size**2))


def _spread(U: Floats, C: Floats, V: Floats) -> tuple[float, float, float]:
    """The variance of D over actions net of noise (it may come out negative), the noise, and degrees of freedom."""
    raw, noise, seen = _raw(U, C, V)
    if seen.sum() < 2:
        return 0.0, np.inf, LEAST_FREEDOM
    # Rare actions say little about the spread: weigh by how well each is known.
    weights = 1 / (noise[seen] + 0.02**2) ** 2
    weights /= weights.sum()
    typical = float((weights * noise[seen]).sum())
    square = float((weights * raw[seen] ** 2).sum()) - typical
    # Uneven noise and weights leave as many degrees of freedom as the variance of the sum says.
    worth = typical**2 / float((weights**2 * noise[seen] ** 2).sum())
    return square, typical, max(worth - 1, LEAST_FREEDOM)


def variance_interval(square: float, noise: float, freedom: float) -> tuple[float, float]:
    """The variance's interval at 90 %, as that of a χ²: what is seen has variance noise + square."""
    if not np.isfinite(noise):
        return 0.0, 1.0
    seen = noise + max(square, 0.0)
    high, low = chdtri(freedom, 0.05), chdtri(freedom, 0.95)
    return max(seen * freedom / high - noise, 0.0), min(seen * freedom / low - noise, 1.0)


def _raw(U: Floats, C: Floats, V: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    raw = np.divide(U, C, out=np.zeros_like(U), where=C > 0)
    noise = np.divide(V, C**2, out=np.full_like(U, np.inf), where=C > 0)
    return raw, noise, np.isfinite(noise) & (noise > 0)


def _shrink(U: Floats, C: Floats, V: Floats, square: float) -> tuple[Floats, Floats]:
    """D shrunk by a prior of this variance, and the variance left."""
    raw, noise, seen = _raw(U, C, V)
    if square <= 0 or seen.sum() < 2:
        return np.zeros_like(U), np.full_like(U, max(square, 0.0))
    kept = np.where(seen, square / (square + noise), 0.0)
    return kept * raw, square * (1 - kept)


def _cross_fitted(pooled: Floats, found: Sufficiency, spread: float) -> tuple[float, float]:
    savings, errors = [], []
    for choose, judge in ((0, 2), (2, 0)):
        U, C = (np.sum([test.halves[choose + i] for test in found.states], axis=0) for i in (0, 1))
        variance = float(np.mean([test.variance for test in found.states]))
        kept = C / (C + variance / spread**2) if spread > 0 else np.zeros_like(C)
        own = pooled + kept * np.divide(U, C, out=np.zeros_like(U), where=C > 0)
        U, C = (np.sum([test.halves[judge + i] for test in found.states], axis=0) for i in (0, 1))
        seen = C > 0
        if not seen.any():
            return 0.0, 0.0
        truth = pooled + np.divide(U, C, out=np.zeros_like(U), where=seen)
        a, b = (int(np.flatnonzero(seen)[values[seen].argmin()]) for values in (pooled, own))
        savings.append(float(truth[a] - truth[b]))
        errors.append(variance / C[a] + variance / C[b] if a != b else 0.0)
    return float(np.mean(savings)), float(sum(errors) ** 0.5 / 2)


def _ranks(values: Floats) -> Ints:
    return np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1, kind="stable")


def _mean_correlation(first: Floats | Ints, second: Floats | Ints) -> float:
    """The mean over draws of the correlation of two rows; 1 where nothing varies."""
    x, y = (values - values.mean(axis=1, keepdims=True) for values in (first, second))
    scale = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return float(np.divide((x * y).sum(axis=1), scale, out=np.ones(len(x)), where=scale > 1e-15).mean())
