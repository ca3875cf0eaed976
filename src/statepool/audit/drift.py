"""How the state means move: period by period, how much of the movement is real, and what it may cost.

The log is cut into periods of as many decisions each. The mean of a state in period b is y(b) = theta(b) + noise of
known variance v(b). A state drifts if its means differ beyond noise (χ² of heterogeneity, Holm-corrected over states,
at `LEVEL`); theta then has the variance over time that is left net of noise, and each period's mean is shrunk to the
state's by it.

    E2 = sum_t max_a (c_t(a) - c_{t-d}(a))²        floor = sqrt(d E2 min(1 + log J, T/d))

over the T decisions of the log, d the median delay in decisions, J how many states drift: Theorem 2's scale. It is
what every learner loses against the best action on the hardest log that moves as much; on this one it may lose less.
"""

from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np
from scipy.stats import chi2

from statepool.audit.counts import Rows
from statepool.audit.estimates import holm
from statepool.checks import Floats

MOST_PERIODS, ROWS_A_PERIOD = 30, 400
LEVEL = 0.05
POINTS = 2_000


@dataclass(frozen=True, eq=False)
class Drift:
    times: Floats = field(repr=False)
    """The middle of each period, as a share of the log's decisions."""
    means: Floats = field(repr=False)
    """Mean loss of each state in each period, net of noise; one row for each period."""
    spread: Floats
    """Standard deviation over time of each state's mean, net of noise; 0 where it does not drift."""
    e2: float = 0.0
    floor: float = 0.0

    @property
    def drifts(self) -> list[bool]:
        return [bool(spread > 0) for spread in self.spread]

    def path(self, shares: Floats) -> Floats:
        """Means at given moments, one row each."""
        return np.column_stack([np.interp(shares, self.times, column) for column in self.means.T])


def measure_drift(rows: Rows, P: Floats, fallback: Floats, delay: float) -> Drift:
    """From the sample; `fallback` is a state's mean where nothing better is known."""
    known = np.isfinite(rows.loss)
    if not rows.timed or known.sum() < 2:
        return Drift(np.array([0.5]), fallback[None], np.zeros(fallback.size))
    count = int(min(MOST_PERIODS, max(known.sum() // ROWS_A_PERIOD, 2)))
    period = (np.arange(rows.loss.size) * count // rows.loss.size)[known]
    cell, loss = period * P.shape[1] + rows.state[known], rows.loss[known]
    sums = [np.bincount(cell, weights, count * P.shape[1]) for weights in (None, loss, loss**2)]
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
    means = np.clip(mean + apart * spread**2 / np.maximum(spread**2 + noise / filled, 1e-300), 0.0, 1.0)
    times = (np.arange(len(n)) + 0.5) / len(n)
    e2, floor = _floor(times, means, P, rows.population, delay, int((spread > 0).sum()))
    return Drift(times, means, spread, e2, floor)


def _floor(times: Floats, means: Floats, P: Floats, total: int, delay: float, n_drifting: int) -> tuple[float, float]:
    d = min(delay, total / 2)
    if d < 1 or n_drifting == 0:
        return 0.0, 0.0
    now = np.linspace(0, 1, min(POINTS, max(total, 2)))
    then = np.maximum(now - d / total, 0)
    moved = np.column_stack([np.interp(now, times, path) - np.interp(then, times, path) for path in means.T])
    e2 = float(((moved @ P.T) ** 2).max(axis=1).mean()) * total
    return e2, sqrt(d * e2 * min(1 + log(n_drifting), total / d))
