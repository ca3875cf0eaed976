"""What a log would have been worth under another play x: three estimators, each with its interval.

    pooled    sum_s q_x(s) m(s) = mean of q_x(S)/q_log(S) · Y      q_x = sum_a x(a) P(·|a), m(s) the mean of the state
    plain     mean of w Y,  w = x(A) / propensity(A)                inverse propensity weighting
    robust    sum_a x(a) c(a) + mean of w (Y - c(A)),  c(a) = sum_s P(s|a) m(s)      doubly robust

Under an even log the weights of the plain one have second moment K over actions, those of the pooled one the map's
effective dimension v: with a map that is known the variance falls by v/K and more (averaged over the actions asked
about); a map counted in the same log adds the noise of its rows. The pooled one is right
if the state is all that matters; its bias otherwise is sum_a x(a) D(a), D the direct effects, which is bounded here by
what the log leaves possible of them. The robust one has no such bias and leans on the states all the same.

Variances: the pooled one's is that of the state means and of the map's rows (both from the same log, and uncorrelated,
since given the states the outcomes' noise has nothing to do with them); the others' is that of their terms over rows.
Without propensities these are the actions' shares in the log, and the plain one is then the mean of the action.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from statepool.audit.counts import Counts
from statepool.audit.effects import ActionEffects
from statepool.audit.sufficiency import Sufficiency
from statepool.audit.units import Unit
from statepool.checks import Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the estimators look at."""

    counts: Counts
    unit: Unit
    sufficiency: Sufficiency
    effects: ActionEffects


@dataclass(frozen=True)
class Estimate:
    value: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True)
class WhatIf:
    """In the log's own unit, a decision."""

    policy: str
    logged: float
    """What the log's own mix was worth."""
    pooled: Estimate
    plain: Estimate
    robust: Estimate
    bias: float
    """The most that direct effects may bias the pooled estimate, at 95 %."""
    biased: bool
    """Whether they were found, and may bias it by more than its error: then the robust one is to be believed."""
    exact: bool
    """Whether propensities were logged; otherwise they are the actions' shares."""
    outcomes: int


def estimate_play(seen: Evidence, x: Floats, name: str, level: float = 0.95, P: Floats | None = None) -> WhatIf:
    """The worth of a play on the log's own rows; `P` is the map if it is known, and not to be counted in the log."""
    counts, unit = seen.counts, seen.unit
    visits = counts.k.sum(axis=1)
    untried = np.flatnonzero((x > 0) & (visits == 0))
    if untried.size:
        raise ValueError(f"policy: the log has no outcome of {counts.actions[untried[0]]!r}, expected actions it tried")
    exact = counts.weighted is not None
    sums = WeightedSums.of(counts)
    rows = _plain_rows(counts) if P is None else P
    h = counts.loss.sum(axis=0) / np.maximum(counts.k.sum(axis=0), 1)
    c = rows @ h
    pooled, pooled_error = _pooled(counts, rows, h, x, P is not None)
    offset, slope = (unit.high, -unit.scale) if unit.is_reward else (unit.low, unit.scale)
    value, model = offset + slope * pooled, offset + slope * c
    own = offset + slope * counts.loss.sum(axis=1) / np.maximum(visits, 1)
    plain = _weighted(sums, x, np.zeros_like(c), offset, slope, None if exact else own)
    robust = _weighted(sums, x, model, offset, slope, None if exact else own)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    made = [
        Estimate(mean, error, mean - z * error, mean + z * error)
        for mean, error in ((value, pooled_error * unit.scale), plain, robust)
    ]
    bias = unit.scale * _bias(seen, x)
    found = seen.sufficiency.p < 0.05 and bias > made[0].error
    logged = offset + slope * float(counts.loss.sum() / counts.k.sum())
    return WhatIf(name, logged, made[0], made[1], made[2], bias, found, exact, int(counts.k.sum()))


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Of each action, over rows with an outcome: weights, their squares, and with losses and squared losses."""

    n: float
    w: Floats
    ww: Floats
    wx: Floats
    wwx: Floats
    wwxx: Floats

    @classmethod
    def of(cls, counts: Counts) -> "WeightedSums":
        n, k, loss, square = float(counts.k.sum()), *(t.sum(axis=1) for t in (counts.k, counts.loss, counts.square))
        if counts.weighted is None:
            w = np.divide(n, k, out=np.zeros_like(k), where=k > 0)
            return cls(n, w * k, w**2 * k, w * loss, w**2 * loss, w**2 * square)
        known = counts.weighted
        tables = (known.k, known.kk, known.loss, known.loss_twice, known.square_twice)
        return cls(n, *(table.sum(axis=1) for table in tables))


def _plain_rows(counts: Counts) -> Floats:
    """The map without shrinkage: what is asked is the play's own states."""
    table = counts.n if counts.weighted is None else counts.weighted.n
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300))


def _pooled(counts: Counts, rows: Floats, h: Floats, x: Floats, known: bool) -> tuple[float, float]:
    q, k = x @ rows, counts.k.sum(axis=0)
    variance = np.maximum(counts.square.sum(axis=0) / np.maximum(k, 1) - h**2, 0) / np.maximum(k - 1, 1)
    visits = counts.n.sum(axis=1) if counts.weighted is None else counts.weighted.effective_rows
    spread = np.maximum(rows @ h**2 - (rows @ h) ** 2, 0) / np.maximum(visits, 1)
    return float(q @ h), float((q**2 @ variance + (0.0 if known else x**2 @ spread)) ** 0.5)


def _weighted(
    sums: WeightedSums, x: Floats, model: Floats, offset: float, slope: float, own: Floats | None
) -> tuple[float, float]:
    """Mean and error of x·model + w (Y - model); `own`, the actions' means, where propensities are their shares."""
    base = float(x @ model)
    first = x * (offset * sums.w + slope * sums.wx - model * sums.w)
    value = base + float(first.sum()) / sums.n
    # Estimated propensities take out what the actions' own numbers of rows vary by.
    centre = model if own is None else own
    gap = offset - centre
    squares = x**2 * (gap**2 * sums.ww + 2 * gap * slope * sums.wwx + slope**2 * sums.wwxx)
    mean = (value - base) if own is None else 0.0
    variance = max(float(squares.sum()) / sums.n - mean**2, 0.0)
    return value, (variance / sums.n) ** 0.5


def _bias(seen: Evidence, x: Floats) -> float:
    """|sum_a x(a) D(a)| at 95 %, D by the effects found and by what is left open of them."""
    D = seen.effects.own_direct
    return float(abs(x @ D.mean) + 1.645 * (x**2 @ D.variance) ** 0.5)
