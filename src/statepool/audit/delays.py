"""How late outcomes come: in time, in decisions made meanwhile, how many never do, and whether bad news comes later.

An outcome that has not come by the end of the log may still come. Kaplan and Meier's curve counts a waiting decision
for as long as it has waited; its steps weigh the delays seen, so that long ones, which the log's end hides more often,
count for those hidden. Its steps at outcomes of one kind are Aalen and Johansen's for that kind: wins and losses have
a delay distribution each, and neither need be like the other. `never` is the cure fraction: the share of decisions
older than nearly every delay seen (`OLD` of them) that still have no outcome. A row without an outcome that has waited
for time t is still to come with probability (1 - never)(1 - F(t)) / (never + (1 - never)(1 - F(t))).

With a window nothing has to be estimated: mature rows have their outcome, at its time or when the window closed.

Whether delay and outcome go together is asked within states and within stretches of time, by ranks (van Elteren): a
learner pools outcomes of a state, so only what happens inside a state can mislead it. Where they do, and there is no
window, rows younger than nearly every delay of the slower kind are left out as if there were one (`settling_age`).
"""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from statepool.audit.maturity import Maturity
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
    come: float
    waiting: float
    gone: float
    """Shares of rows whose outcome is in, may still come, and never will: they add up to 1."""
    never: float
    """The share of decisions whose outcome never comes, in the long run."""
    time: list[float]
    decisions: list[float]
    better: list[float]
    worse: list[float]
    """The same in time for outcomes better and worse than the mean, each by its own distribution."""
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


def measure_lateness(rows: Rows, missing: int, maturity: Maturity, delay: int | None = None) -> Lateness:
    """From the sample as recorded; `delay`, in decisions, where the log has no outcome times and no window."""
    if rows.timed and maturity.window is not None and maturity.how != "settling":
        return _by_window(rows.matured(maturity), missing, maturity)
    delays = rows.resolved - rows.decided
    come = np.isfinite(rows.loss) & (delays >= 0) & np.isfinite(delays)
    if not rows.timed or not come.any():
        assumed, share = float(delay or 0), missing / max(rows.population, 1)
        nothing: list[float] = []
        return Lateness(
            False, missing, 1 - share, 0.0, share, share, nothing, [assumed] * 4, nothing, nothing, 0.0, 0.0, 1.0,
            np.array([assumed]),
        )  # fmt: skip
    return _by_waiting(rows, missing, delays, come)


def _by_waiting(rows: Rows, missing: int, delays: Floats, come: Bools) -> Lateness:
    waited = np.maximum(rows.age, 0.0)
    lost = ~np.isfinite(rows.loss)
    old = waited > np.quantile(delays[come], OLD)
    never = float((lost & old).sum() / max(old.sum(), 1))
    weights = waiting_weights(np.where(come, delays, waited)[come | lost], come[come | lost]) / max(1 - never, 1e-9)
    meanwhile = decisions_meanwhile(rows, np.where(come, delays, np.nan))[come]
    good = rows.loss[come] < float(rows.loss[come].mean())
    waiting = float(_still_to_come(waited[lost], delays[come], weights, never).sum() / lost.size)
    shares = float(1 - lost.mean()), waiting, float(lost.mean()) - waiting, never
    trend = _outcome_and_delay(rows, delays, come)
    return _summed_up(missing, shares, delays[come], meanwhile, weights, good, trend)


def _by_window(rows: Rows, missing: int, maturity: Maturity) -> Lateness:
    """Every mature row's outcome is known: when it came, or else when the window closed."""
    assert maturity.window is not None
    mature, known = rows.decided <= maturity.cut, np.isfinite(rows.loss)
    delays = rows.resolved - rows.decided
    delays = np.where(np.isfinite(delays) & (delays >= 0), np.minimum(delays, maturity.window), maturity.window)
    never = float((mature & ~known).sum() / max(mature.sum(), 1))
    gone = float((mature & ~known).mean())
    meanwhile = decisions_meanwhile(rows, np.where(known, delays, np.nan))[known]
    if not known.any():
        # Nothing is mature: how many decisions a window holds is known all the same.
        pace = rows.population / max(rows.latest - float(rows.decided[0]), 1e-9)
        meanwhile, delays, known = np.array([pace * maturity.window]), np.array([maturity.window]), np.array([True])
        good = np.array([True])
    else:
        good = rows.loss[known] < float(rows.loss[known].mean())
    times, even = delays[known], np.full(int(known.sum()), 1 / known.sum())
    come = float(np.isfinite(rows.loss).mean())
    return _summed_up(missing, (come, 1 - come - gone, gone, never), times, meanwhile, even, good, (0.0, 0.0, 1.0))


def _summed_up(
    missing: int, shares: tuple[float, float, float, float], delays: Floats, meanwhile: Floats, weights: Floats,
    good: Bools, trend: tuple[float, float, float],
) -> Lateness:  # fmt: skip
    """Of delays in time and in decisions; `good` are the outcomes better than the mean."""

    def quantiles(values: Floats, weights: Floats) -> list[float]:
        return weighted_quantiles(values, weights, np.array(QUANTILES)).tolist()

    sums = [(kind, float(weights[kind].sum())) for kind in (good, ~good)]
    better, worse = (quantiles(delays[kind], weights[kind] / total) if total > 0 else [] for kind, total in sums)
    draws = _typical(meanwhile, weights, shares[3])
    times, decisions = quantiles(delays, weights), quantiles(meanwhile, weights)
    return Lateness(True, missing, *shares, times, decisions, better, worse, *trend, draws)


def settling_age(rows: Rows, late: Lateness) -> float | None:
    """The age from which on nearly all outcomes of either kind are in, if early ones mislead and some are waiting."""
    if not late.known or not late.misleads or late.waiting <= 0:
        return None
    slower = max(late.better[3] if late.better else np.nan, late.worse[3] if late.worse else np.nan)
    span = rows.latest - float(rows.decided[0])
    return float(min(slower, span / 2)) if np.isfinite(slower) else span / 2


def _still_to_come(waited: Floats, delays: Floats, weights: Floats, never: float) -> Floats:
    """For each row without an outcome the chance that it comes, given how long it has waited."""
    order = np.argsort(delays, kind="stable")
    reached = np.append(0.0, np.cumsum(weights[order]))
    left = (1 - never) * np.clip(1 - reached[np.searchsorted(delays[order], waited, side="right")], 0, 1)
    return np.asarray(np.divide(left, never + left, out=np.zeros_like(left), where=never + left > 0))


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


def waiting_weights(times: Floats, come: Bools) -> Floats:
    """Kaplan and Meier's step at each outcome that came, in the order given."""
    order = np.argsort(times, kind="stable")
    at_risk = np.arange(times.size, 0, -1)
    left = np.cumprod(1 - come[order] / at_risk)
    steps = np.empty(times.size)
    steps[order] = -np.diff(left, prepend=1.0)
    return np.asarray(steps[come])


def weighted_quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Weighted quantiles; NaN for shares that the weights do not reach."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, shares - 1e-9)
    return np.where(place < values.size, values[order][np.minimum(place, values.size - 1)], np.nan)


def _typical(meanwhile: Floats, weights: Floats, never: float, n: int = 1_000) -> Floats:
    """Equally likely delays; those past what the log shows are taken as the longest seen."""
    lost = round(never * n)
    grid = (np.arange(n - lost) + 0.5) / max(n - lost, 1)
    drawn = weighted_quantiles(meanwhile, weights, grid)
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
