"""What direct effects come to: shrunken effects, each action's own mean, and the price of choosing through the states.

    c = P_hat h                        what the states predict, h the state means
    m = c + D,  D(a) = sum_s P(s|a) delta(a, s)      what is true, delta the direct effects
    price = m(argmin c) - min m        regret per decision of choosing by c with nothing left to learn

Effects are estimated with a normal prior of the variance found (empirical Bayes). The price is a mean over draws from
what is then known, never the difference of two estimated minima, which would be too large.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from statepool.audit.counts import Counts
from statepool.audit.estimates import Map
from statepool.audit.sufficiency import StateTest, Sufficiency, Sums
from statepool.checks import Floats

DRAWS = 200
LEVEL = 0.05
LEAST_FREEDOM = 4.0
"""Fewer actions than five say next to nothing about the spread of effects in general; it is not used against them."""


@dataclass(frozen=True, eq=False)
class Direct:
    """D of each action, and the variance of what is unknown of it."""

    mean: Floats
    variance: Floats


@dataclass(frozen=True)
class Possible:
    """What the log leaves open about the variance of direct effects over actions, and what that would cost."""

    noise_of_means: float
    """The variance of what is seen of an action's effect, if there is none; a mean over actions."""
    freedom: float
    """Degrees of freedom of the variance."""
    at_least: float
    at_most: float
    """The share of what can be gained that is lost, if effects spread as little, or as much, as the log allows."""
    spread: float
    """Standard deviation of c over actions, net of noise; at least what its own noise may hide."""
    gain: float
    """The most that choosing well may gain over choosing blindly, per decision."""


@dataclass(frozen=True, eq=False)
class ActionEffects:
    direct: Floats = field(repr=False)
    """delta, shrunk: one row for each action, one column for each state."""
    doubt: Floats = field(repr=False)
    """The standard deviation of what is unknown of each."""
    pooled: Floats = field(repr=False)
    """c."""
    own: Floats = field(repr=False)
    own_error: Floats = field(repr=False)
    """m, the estimate that corrects for direct effects, and its standard error."""
    spread_pooled: float
    """Standard deviation of c over actions, net of noise."""
    spread_direct: float
    """That of D."""
    price: float
    blind: float
    """Regret per decision of choosing by c, and of choosing blindly."""
    typical_loss: float
    """The share lost by new actions, whose effects spread as much."""
    possible: Possible
    open: Direct = field(repr=False)
    """D if effects spread as much as the log leaves possible."""

    @property
    def lost(self) -> float:
        """The share of what can be gained that choosing through the states loses."""
        return min(self.price / self.blind, 1.0) if self.blind > 0 else 0.0


def estimate_effects(counts: Counts, map_: Map, found: Sufficiency, seed: int = 0) -> ActionEffects:
    h, visits = counts.state_means, counts.effective.sum(axis=1)
    pooled = map_.P @ h
    noise = np.maximum(map_.P @ h**2 - pooled**2, 0) / (visits + map_.strength)
    shared = map_.P**2 @ counts.state_errors**2
    # Where the test finds nothing, what is left over is noise and is not carried on.
    sizes = [test.size if p < LEVEL else 0.0 for test, p in zip(found.states, found.corrected, strict=True)]
    direct = np.column_stack([_shrunken(test, size) for test, size in zip(found.states, sizes, strict=True)])
    doubt = np.column_stack([_doubt(test, size) for test, size in zip(found.states, sizes, strict=True)])
    sums, grain = found.sums, (0.04 * counts.deviation) ** 2
    square, noise_of_means, freedom = _spread(sums, grain)
    believed = max(square, 0.0) if found.p < LEVEL else 0.0
    D, left = _shrink(sums, believed)
    rng = np.random.default_rng((seed, 12))
    c = pooled + np.sqrt(noise) * rng.standard_normal((DRAWS, pooled.size))
    normal = rng.standard_normal((2, DRAWS, pooled.size))
    m = c + D + np.sqrt(left) * normal[0]
    prices, blind = _prices(c, m)
    low, high = variance_interval(square, noise_of_means, freedom)
    (least, _), (most, gain) = (_share_at(end, c, sums, normal) for end in (low, high))
    spread = float(max(pooled.var() - noise.mean(), 0.0) ** 0.5)
    widest = max(float(pooled.var()) + 1.645 * _error_of_variance(pooled, noise), 0.0)
    return ActionEffects(
        direct, doubt, pooled, pooled + D, np.sqrt(noise + shared + left), spread, believed**0.5, float(prices.mean()),
        blind, _share_lost(c, c + believed**0.5 * normal[1]),
        Possible(noise_of_means, freedom, least, most, max(spread, widest**0.5 / 2), gain),
        Direct(*_shrink(sums, high)),
    )  # fmt: skip


def open_effects(sums: Sums, deviation: float) -> Direct:
    """D of whatever these sums are of, if effects spread as much as the log leaves possible."""
    return Direct(*_shrink(sums, variance_interval(*_spread(sums, (0.04 * deviation) ** 2))[1]))


def _share_at(square: float, c: Floats, sums: Sums, normal: Floats) -> tuple[float, float]:
    """The larger share lost, of the log's actions and of new ones, if effects have this variance; and blind regret."""
    D, left = _shrink(sums, square)
    m = c + D + np.sqrt(left) * normal[0]
    return max(_share_lost(c, m), _share_lost(c, c + square**0.5 * normal[1])), _prices(c, m)[1]


def _share_lost(c: Floats, m: Floats) -> float:
    prices, blind = _prices(c, m)
    return min(float(prices.mean() / blind), 1.0) if blind > 0 else 0.0


def _prices(c: Floats, m: Floats) -> tuple[Floats, float]:
    """What choosing by c costs in each draw, and what choosing blindly costs on average."""
    best = m.min(axis=1)
    return m[np.arange(len(m)), c.argmin(axis=1)] - best, float((m.mean(axis=1) - best).mean())


def _error_of_variance(values: Floats, noise: Floats) -> float:
    """The standard error of the variance of values, from their noise."""
    spread = max(float(values.var()), 0.0)
    return float((2 * np.mean((noise + spread) ** 2) / max(values.size, 1)) ** 0.5)


def _shrunken(test: StateTest, size: float) -> Floats:
    """The effects of one state: (diag(n) + lambda - n n'/N) delta = U, lambda = sigma²/tau², solved exactly."""
    n, U = test.sums.C, test.sums.U
    if size <= 0 or test.variance <= 0:
        return np.zeros(U.size)
    ridge, total = test.variance / size**2, max(float(n.sum()), 1.0)
    scaled, ones = U / (n + ridge), n / (n + ridge)
    bend = total - float((n * ones).sum())
    return np.asarray(scaled + ones * float((n * scaled).sum()) / bend if bend > 1e-9 else scaled)


def _doubt(test: StateTest, size: float) -> Floats:
    if size <= 0 or test.variance <= 0:
        return np.zeros(test.sums.U.size)
    return np.sqrt(test.variance / (test.sums.C + test.variance / size**2))


def _spread(sums: Sums, grain: float) -> tuple[float, float, float]:
    """The variance of D over actions net of noise (it may come out negative), the noise, and degrees of freedom."""
    raw, noise, seen = _raw(sums)
    if seen.sum() < 2:
        return 0.0, np.inf, LEAST_FREEDOM
    # Rare actions say little about the spread: weigh by how well each is known.
    weights = 1 / (noise[seen] + grain) ** 2
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


def _raw(sums: Sums) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    raw = np.divide(sums.U, sums.C, out=np.zeros_like(sums.U), where=sums.C > 0)
    noise = np.divide(sums.V, sums.C**2, out=np.full_like(sums.U, np.inf), where=sums.C > 0)
    return raw, noise, np.isfinite(noise) & (noise > 0)


def _shrink(sums: Sums, square: float) -> tuple[Floats, Floats]:
    """D shrunk by a prior of this variance, and the variance left."""
    raw, noise, seen = _raw(sums)
    if square <= 0 or seen.sum() < 2:
        return np.zeros_like(raw), np.full_like(raw, max(square, 0.0))
    # An action whose outcomes spread more than others' (a dear product) is known less well than shuffling says.
    own = np.divide(sums.own, sums.C**2, out=np.zeros_like(raw), where=sums.C > 0)
    kept = np.where(seen, square / (square + np.maximum(noise, own)), 0.0)
    return kept * raw, square * (1 - kept)
