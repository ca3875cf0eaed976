"""How the state means move: smoothed paths, how much of the movement is real, and the floor under every learner.

The log is cut into periods of as many decisions each. The mean of a state in period b is y(b) = theta(b) + noise of
known variance, and theta is a random walk with steps of variance q. q maximises the likelihood (Kalman's filter), theta
is then smoothed both ways (Rauch, Tung and Striebel). q = 0 is a mean that does not move.

    E2 = sum_t max_a (c_t(a) - c_{t-d}(a))²        floor = sqrt(d E2 min(1 + log J, T/d))

over the T decisions of the log, d the median delay in decisions, J how many states drift: Theorem 2's scale.
"""

from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np

from statepool.audit.counts import Rows
from statepool.checks import Floats

MOST_PERIODS, ROWS_A_PERIOD = 100, 200
STEPS = np.append(0.0, np.geomspace(2e-4, 0.4, 24) ** 2)
"""Variances of a step that are tried, over that of an outcome."""
SURE = 1.92
"""Gain in log-likelihood from which a state is said to drift: 2 · 1.92 is the χ² of one parameter at 5 %."""
POINTS = 2_000


@dataclass(frozen=True, eq=False)
class Drift:
    known: bool
    times: Floats = field(repr=False)
    """The middle of each period, as a share of the log's decisions."""
    observed: Floats = field(repr=False)
    """Mean loss of each state in each period, NaN where unseen; one row for each period."""
    means: Floats = field(repr=False)
    """The same, smoothed."""
    spread: Floats
    """Standard deviation over time of each state's mean, net of noise."""
    drifts: list[bool]
    e2: float
    floor: float

    def path(self, shares: Floats) -> Floats:
        """Smoothed means at given moments, one row each."""
        columns = [np.interp(shares, self.times, column) for column in self.means.T]
        return np.clip(np.column_stack(columns), 0.0, 1.0)


def measure_drift(rows: Rows, P: Floats, fallback: Floats, delay: float) -> Drift:
    """From the sample; `fallback` is a state's mean where nothing better is known."""
    n_states = P.shape[1]
    if not rows.timed or np.isfinite(rows.loss).sum() < 2:
        nothing = np.full((1, n_states), np.nan)
        still = np.tile(fallback, (1, 1))
        return Drift(False, np.array([0.5]), nothing, still, np.zeros(n_states), [False] * n_states, 0.0, 0.0)
    n, total, square = _periods(rows, n_states)
    mean = np.divide(total, n, out=np.full_like(total, np.nan), where=n > 0)
    inside = (square - np.divide(total**2, n, out=np.zeros_like(n), where=n > 0)).sum(axis=0)
    noise = np.maximum(inside / np.maximum((n - (n > 0)).sum(axis=0), 1), 1e-10)
    variance = np.divide(noise, n, out=np.full_like(n, np.inf), where=n > 0)
    columns = [_smooth(mean[:, s], variance[:, s], noise[s], fallback[s]) for s in range(n_states)]
    means = np.column_stack([path for path, _ in columns])
    times = (np.arange(len(n)) + 0.5) / len(n)
    drifts = [gain > SURE for _, gain in columns]
    e2, floor = _floor(times, means, P, rows.population, delay, sum(drifts))
    spread = np.array([_spread(mean[:, s], variance[:, s]) if drifts[s] else 0.0 for s in range(n_states)])
    return Drift(True, times, mean, means, spread, drifts, e2, floor)


def _periods(rows: Rows, n_states: int) -> tuple[Floats, Floats, Floats]:
    known = np.isfinite(rows.loss)
    count = int(min(MOST_PERIODS, max(known.sum() // ROWS_A_PERIOD, 2)))
    period = (np.arange(rows.loss.size) * count // rows.loss.size)[known]
    cell, loss = period * n_states + rows.state[known], rows.loss[known]
    sums = [np.bincount(cell, weights, count * n_states) for weights in (None, loss, loss**2)]
    tables = [values.reshape(count, n_states).astype(np.float64) for values in sums]
    return tables[0], tables[1], tables[2]


def _smooth(y: Floats, v: Floats, noise: float, fallback: float) -> tuple[Floats, float]:
    """The smoothed path, and what the best step gained in log-likelihood over none."""
    seen = np.isfinite(y)
    if seen.sum() < 2:
        return np.full(y.size, y[seen][0] if seen.any() else fallback), 0.0
    steps = STEPS * noise
    likelihoods = [_filter(y, v, q)[0] for q in steps]
    best = int(np.argmax(likelihoods))
    _, mean, variance = _filter(y, v, steps[best])
    smooth = mean.copy()
    for b in range(y.size - 2, -1, -1):
        ahead = variance[b] + steps[best]
        smooth[b] = mean[b] + (variance[b] / ahead if ahead > 0 else 1.0) * (smooth[b + 1] - mean[b])
    return np.clip(smooth, 0.0, 1.0), float(likelihoods[best] - likelihoods[0])


def _filter(y: Floats, v: Floats, q: float) -> tuple[float, Floats, Floats]:
    mean, variance = np.empty(y.size), np.empty(y.size)
    m, p, likelihood = 0.5, 100.0, 0.0
    for b, (value, noise) in enumerate(zip(y.tolist(), v.tolist(), strict=True)):
        p += q if b else 0.0
        if value == value:
            total = p + noise
            surprise = value - m
            likelihood -= 0.5 * (log(total) + surprise**2 / total)
            m, p = m + p / total * surprise, p * (1 - p / total)
        mean[b], variance[b] = m, p
    return likelihood, mean, variance


def _spread(y: Floats, v: Floats) -> float:
    seen = np.isfinite(y)
    return float(max(y[seen].var() - v[seen].mean(), 0.0) ** 0.5)


def _floor(times: Floats, means: Floats, P: Floats, total: int, delay: float, n_drifting: int) -> tuple[float, float]:
    d = min(delay, total / 2)
    if d < 1 or n_drifting == 0:
        return 0.0, 0.0
    now = np.linspace(0, 1, min(POINTS, max(total, 2)))
    then = np.maximum(now - d / total, 0)
    moved = np.column_stack([np.interp(now, times, path) - np.interp(then, times, path) for path in means.T])
    e2 = float(((moved @ P.T) ** 2).max(axis=1).mean()) * total
    return e2, sqrt(d * e2 * min(1 + log(n_drifting), total / d))
