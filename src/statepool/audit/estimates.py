"""The map, the state means with intervals, and how they move.

    P_hat(a) = (n(a) + kappa · prior) / (n(a) + kappa)      prior: the row of all actions

kappa is estimated from the counts: with rho = 1/(kappa + 1) the share of variance between actions, Pearson's statistic
has mean (K-1)(S-1) times 1 + rho (n0 - 1). Rows that are alike give a large kappa; rows that differ give a small one.
With propensities rows count by 1/propensity.

**Drift.** The log is cut into periods of as many decisions each. The mean of a state in period b is y(b) = theta(b) +
noise of known variance v(b). A state drifts if its means differ beyond noise (χ² of heterogeneity, Holm-corrected over
states, at `DRIFTS`); theta then has the variance over time that is left net of noise, and each period's mean is shrunk
to the state's by it.
"""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from scipy.special import stdtrit
from scipy.stats import chi2

from statepool.audit.counts import Counts, Rows
from statepool.checks import Floats

LEAST_SHARE = 1e-4
"""Rows are never taken to be more alike than this share of variance between them: kappa stays below 10 000."""
MOST_PERIODS, ROWS_A_PERIOD = 30, 400
DRIFTS = 0.05


@dataclass(frozen=True, eq=False)
class Map:
    P: Floats
    strength: float
    """kappa: how many rows the prior counts as."""


def estimate_map(counts: Counts) -> Map:
    n = counts.effective
    overall = (n.sum(axis=0) + 1e-9) / (n.sum() + 1e-9 * counts.n_states)
    return Map(*shrink_rows(n, np.tile(overall, (counts.n_actions, 1))))


def shrink_rows(n: Floats, prior: Floats, own: Floats | None = None, doubt: float = 0.0) -> tuple[Floats, float]:
    """Rows shrunk to their priors, and kappa; `own` and `doubt` as in `shrinkage`."""
    strength = shrinkage(n, prior, own, doubt)
    P = (n + strength * prior) / (n.sum(axis=1, keepdims=True) + strength)
    return P / P.sum(axis=1, keepdims=True), strength


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


def state_intervals(counts: Counts, level: float) -> tuple[Floats, Floats]:
    """Ends of an interval for each state's mean: Wilson's for outcomes of 0 and 1, Student's for others.

    Wilson's is the q with (q - q_hat)² <= z² (q (1 - q) / n + q² v), for q the share of rows where something happens,
    n what their outcomes are worth and v what young rows add to the variance.
    """
    middle = np.clip(counts.state_means, 0.0, 1.0)  # exposure may lead beyond
    if np.allclose(counts.loss, counts.square):
        z2 = NormalDist().inv_cdf(0.5 + level / 2) ** 2
        odds, q = z2 / np.maximum(counts.worth, 1), np.abs(middle - counts.base)
        growth = 1 + odds - z2 * counts.waiting  # at least 1: v is at most 1/n
        half = np.sqrt((q + odds / 2) ** 2 - growth * q**2) / growth
        middle = np.abs(counts.base - (q + odds / 2) / growth)
    else:
        half = stdtrit(np.maximum(counts.k.sum(axis=0) - 1, 1), 0.5 + level / 2) * counts.state_errors
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(np.array(p)[order] * np.arange(len(p), 0, -1), 1.0)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(steps)
    return corrected.tolist()


@dataclass(frozen=True, eq=False)
class Drift:
    times: Floats = field(repr=False)
    """The middle of each period, as a share of the log's decisions."""
    means: Floats = field(repr=False)
    """Mean loss of each state in each period, net of noise; one row for each period."""
    spread: Floats
    """Standard deviation over time of each state's mean, net of noise; 0 where it does not drift."""

    @property
    def drifts(self) -> list[bool]:
        return [bool(spread > 0) for spread in self.spread]

    def path(self, shares: Floats) -> Floats:
        """Means at given moments, one row each."""
        return np.column_stack([np.interp(shares, self.times, column) for column in self.means.T])


def measure_drift(rows: Rows, fallback: Floats) -> Drift:
    """From the sample; `fallback` is a state's mean where nothing better is known."""
    known = np.isfinite(rows.loss)
    if not rows.timed or known.sum() < 2:
        return Drift(np.array([0.5]), fallback[None], np.zeros(fallback.size))
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
    spread = np.where(np.array(holm(chi2.sf(beyond, freedom).tolist())) < DRIFTS, np.sqrt(between), 0.0)
    means = np.clip(mean + apart * spread**2 / np.maximum(spread**2 + noise / filled, 1e-300), 0.0, 1.0)
    times = (np.arange(len(n)) + 0.5) / len(n)
    return Drift(times, means, spread)
