"""What direct effects come to: each action's own mean, and the price of choosing through the states.

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

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from statepool.audit.counts import Counts
from statepool.audit.estimates import Map
from statepool.audit.sufficiency import Sufficiency
from statepool.checks import Floats

DRAWS = 200
LEVEL, CERTAIN = 0.05, 0.001
"""A direct effect is acted on below `CERTAIN`, and so is what the states predict; up to `LEVEL` either is a hint."""
GRAIN = 0.04
"""Of an outcome's deviation: actions known better than this do not count for more."""
LEAST_FREEDOM = 4.0
"""Fewer actions than five say next to nothing about the spread of effects in general; it is not used against them."""


@dataclass(frozen=True, eq=False)
class Direct:
    """D of each action, and the variance of what is unknown of it."""

    mean: Floats
    variance: Floats

    @property
    def spread(self) -> float:
        """The standard deviation of D over actions."""
        return float((self.mean.var() + self.variance.mean()) ** 0.5)


@dataclass(frozen=True)
class Possible:
    """What the log leaves open about the variance of direct effects over actions, and what that would cost."""

    noise_of_means: float
    """The variance of what is seen of an action's effect, if there is none; a mean over actions."""
    freedom: float
    """Degrees of freedom of the variance."""
    at_most: float
    """The share of what can be gained that is lost, if effects spread as much as the log allows."""
    spread: float
    """Standard deviation of c over actions, net of noise; at least what its own noise may hide."""
    gain: float
    """The most that choosing well may gain over choosing blindly, per decision."""


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
    possible: Possible
    open: Direct = field(repr=False)
    """D if effects spread as much as the log leaves possible."""

    @property
    def own(self) -> Floats:
        """m, the estimate that corrects for direct effects."""
        return self.pooled + self.direct.mean

    @property
    def lost(self) -> float:
        """The share of what can be gained that choosing through the states loses, for the log's or for new actions."""
        return float(np.clip(np.median(self.drawn.max(axis=1)), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Part:
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
        # Where the states predict nothing, choosing by them is choosing blindly.
        chosen = m[np.arange(DRAWS), c.argmin(axis=1)] if differ > 0 else mean
        total = np.hypot(apart, effects.std(axis=1))
        return chosen - best, mean - best, 1 - np.divide(apart, total, out=np.ones_like(total), where=total > 0)

    D = direct(e.believed(), g.believed()) if found.p < LEVEL else direct(0.0, 0.0)
    price, blind, new = cost(D)
    largest = direct(e.largest(), g.largest())
    then, gain, lost_then = (float(each.mean()) for each in cost(largest))
    at_most = max(min(then / gain, 1.0) if gain > 0 else 0.0, lost_then)
    lost = np.divide(price, blind, out=np.zeros_like(price), where=blind > 0)
    noises, seen_apart = size**2 * e.typical + rates * g.typical, float(pooled.var())
    error = float((2 * np.mean((noise + seen_apart) ** 2) / pooled.size) ** 0.5)
    likely = max(seen_apart - float(noise.mean()), (seen_apart + 1.645 * error) / 4) ** 0.5
    return ActionEffects(
        pooled, D, np.sqrt(noise + shared + D.variance), differ**0.5, float(price.mean()), float(blind.mean()),
        np.column_stack([lost, new]), Possible(noises, e.freedom, at_most, likely, gain), largest,
    )  # fmt: skip
