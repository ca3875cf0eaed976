"""How late outcomes come: in time, in decisions made meanwhile, how many never do, and whether bad news comes later.

An outcome that has not come by the end of the log may still come. Kaplan and Meier's curve counts a waiting decision
for as long as it has waited; its steps weigh the delays seen, so that long ones, which the log's end hides more often,
count for those hidden. `never` is the share of decisions older than nearly every delay seen (`OLD` of them) that still
have no outcome; quantiles are of outcomes that come.

Whether delay and outcome go together is asked within states and within stretches of time, by ranks (van Elteren): a
learner pools outcomes of a state, so only what happens inside a state can mislead it.
"""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from statepool.audit.sample import Rows
from statepool.checks import Floats, Ints

Bools = NDArray[np.bool_]

QUANTILES = (0.1, 0.5, 0.9, 0.99)
OLD = 0.99
KNOTS = 4_096
PERIODS = 20
MISLEADS = 0.01
"""Early outcomes are called misleading from this difference in mean loss on, if it is no chance."""


@dataclass(frozen=True, eq=False)
class Lateness:
    """Quantiles are those of `QUANTILES`, NaN where the log ends before that share has come."""

    known: bool
    missing: int
    """Rows of the log without an outcome."""
    waiting: float
    """Share of rows without an outcome that may still come."""
    never: float
    time: list[float]
    decisions: list[float]
    early: float
    late: float
    """Mean loss, net of state and period, of the earlier and of the later half of outcomes, above and below 0."""
    p: float
    """Of the chance that delay and outcome go together in no state."""
    draws: Floats = field(repr=False)
    """Equally likely delays in decisions; infinite for those that never come."""

    @property
    def misleads(self) -> bool:
        return self.p < 0.01 and abs(self.early - self.late) >= MISLEADS


def measure_lateness(rows: Rows, missing: int, delay: int | None = None) -> Lateness:
    """From the sample; `delay`, in decisions, where the log has no outcome times."""
    share = missing / max(rows.population, 1)
    delays = rows.resolved - rows.decided
    come = np.isfinite(rows.loss) & (delays >= 0) & np.isfinite(delays)
    if not rows.timed or not come.any():
        assumed = float(delay or 0)
        return Lateness(False, missing, 0.0, share, [], [assumed] * 4, 0.0, 0.0, 1.0, np.array([assumed]))
    waited = np.maximum(rows.latest - rows.decided, 0.0)
    lost = ~np.isfinite(rows.loss)
    old = waited > np.quantile(delays[come], OLD)
    never = float((lost & old).sum() / max(old.sum(), 1))
    weights = _weights(np.where(come, delays, waited)[come | lost], come[come | lost]) / max(1 - never, 1e-9)
    meanwhile = decisions_meanwhile(rows, np.where(come, delays, np.nan))[come]
    early, late, p = _outcome_and_delay(rows, delays, come)
    shares = np.array(QUANTILES)
    return Lateness(
        True, missing, float((lost & ~old).mean()), never, _quantiles(delays[come], weights, shares).tolist(),
        _quantiles(meanwhile, weights, shares).tolist(), early, late, p, _typical(meanwhile, weights, never),
    )  # fmt: skip


def decisions_meanwhile(rows: Rows, delays: Floats) -> Floats:
    """How many decisions of the whole log fall between a decision and its outcome."""
    n = rows.decided.size
    knots = np.unique(np.linspace(0, n - 1, min(KNOTS, n)).astype(np.int64))
    times, first = np.unique(rows.decided[knots], return_index=True)
    counts = knots[first] * (rows.population / n)
    if rows.population == n and n <= 2 * 10**6:
        # All rows are here: count them.
        before = np.searchsorted(rows.decided, rows.decided, side="right")
        until = np.searchsorted(rows.decided, rows.decided + delays, side="left")
        return np.where(np.isfinite(delays), np.maximum(until - before, 0), np.nan)
    here, then = (np.interp(t, times, counts) for t in (rows.decided, rows.decided + np.nan_to_num(delays)))
    return np.where(np.isfinite(delays), np.maximum(then - here, 0), np.nan)


def _weights(times: Floats, come: Bools) -> Floats:
    """Kaplan and Meier's step at each outcome that came, in the order given."""
    order = np.argsort(times, kind="stable")
    at_risk = np.arange(times.size, 0, -1)
    left = np.cumprod(1 - come[order] / at_risk)
    steps = np.empty(times.size)
    steps[order] = -np.diff(left, prepend=1.0)
    return np.asarray(steps[come])


def _quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Weighted quantiles; NaN for shares that the weights do not reach."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, shares - 1e-9)
    return np.where(place < values.size, values[order][np.minimum(place, values.size - 1)], np.nan)


def _typical(meanwhile: Floats, weights: Floats, never: float, n: int = 1_000) -> Floats:
    """Equally likely delays; those past what the log shows are taken as the longest seen."""
    lost = round(never * n)
    grid = (np.arange(n - lost) + 0.5) / max(n - lost, 1)
    drawn = _quantiles(meanwhile, weights, grid)
    return np.append(np.where(np.isnan(drawn), meanwhile.max(), np.round(drawn)), np.full(lost, np.inf))


def _outcome_and_delay(rows: Rows, delays: Floats, come: Bools) -> tuple[float, float, float]:
    """Residual mean loss of the earlier and later half, and the p-value of the ranks' covariance."""
    loss, late = rows.loss[come], delays[come]
    period = (np.arange(come.size) * PERIODS // max(come.size, 1))[come]
    strata = rows.state[come] * PERIODS + period
    order = np.lexsort((late, strata))
    loss, strata, late = loss[order], strata[order], late[order]
    sizes = np.bincount(strata)
    inside = np.arange(loss.size) - (np.cumsum(sizes) - sizes)[strata]
    ranks = _tied(inside.astype(np.float64), late, strata) / (sizes[strata] + 1) - 0.5
    residual = loss - (np.bincount(strata, loss) / np.maximum(sizes, 1))[strata]
    covariance = float((ranks * residual).sum())
    spread = np.bincount(strata, ranks**2) * np.bincount(strata, residual**2) / np.maximum(sizes - 1, 1)
    z = covariance / max(float(spread.sum()) ** 0.5, 1e-300)
    halves = [float(residual[half].mean()) if half.any() else 0.0 for half in (ranks < 0, ranks >= 0)]
    return halves[0], halves[1], 2 * NormalDist().cdf(-abs(z))


def _tied(ranks: Floats, values: Floats, strata: Ints) -> Floats:
    """Ranks with equal values sharing their mean rank; both sorted by stratum and value."""
    new = np.append(True, (np.diff(values) != 0) | (np.diff(strata) != 0)) if values.size else np.empty(0, bool)
    run = np.cumsum(new) - 1
    return np.asarray((np.bincount(run, ranks) / np.bincount(run))[run] + 1) if values.size else ranks
