"""Mean losses of states, or of actions: what the simple learners know. Losses are in [0, 1].

    sums(u) += X,  squares(u) += X²,  counts(u) += 1        each fading by the round played

With a window, losses are measured from the default and counts are exposed counts (`exposure`), so that reports may be
learnt as they come.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_inside, compiled_part
from statepool.learners.contract import Problem
from statepool.learners.draws import beta
from statepool.learners.exposure import (
    COEFFICIENT,
    MARK,
    READING,
    Clock,
    note_report,
    raised,
    read_exposure,
    set_time,
    start_clock,
    weigh_decision,
)  # fmt: skip


class MeanLosses(NamedTuple):
    """One number for each unit, a state or an action."""

    clock: Clock
    counts: Floats
    """[k, unit]: decisions; with a window also those that fade with each τ."""
    sums: Floats
    squares: Floats
    """Both of losses less the default."""
    default: float
    """0 without a window."""


def start_means(problem: Problem, n_units: int, forgetting: float = 1.0) -> MeanLosses:
    """Nothing seen."""
    clock = start_clock(problem, (forgetting,))
    default = problem.default if problem.window is not None else 0.0
    return MeanLosses(clock, np.zeros((clock.curve.shape[1], n_units)), np.zeros(n_units), np.zeros(n_units), default)


def give_means(means: MeanLosses, known: Floats, counts: Floats) -> None:
    """Start from mean losses that are known: as if so many outcomes of 0 and 1 had been learnt."""
    means.counts[0] += counts
    means.sums[:] += counts * (known - means.default)
    means.squares[:] += counts * ((known - means.default) ** 2 + known * (1 - known))


@compiled_inside
def advance_means(means: Any, t: int, now: float) -> None:
    """Round t begins at time `now`."""
    if set_time(means.clock, t, now):
        for i in range(means.clock.fading.shape[1]):
            factor = raised(means.clock, i)
            if factor != 1.0:
                _scale(means, i, factor)


@compiled_part
def _scale(means: Any, i: int, factor: float) -> None:
    """The base of a weight was raised: that of the memory (0), which all sums have, or that of τ_i."""
    for unit in range(means.sums.size):
        if i == 0:
            means.sums[unit] *= factor
            means.squares[unit] *= factor
        for k in range(means.counts.shape[0]):
            if i in (0, k):
                means.counts[k, unit] *= factor


@compiled_inside
def _count(means: Any, unit: int, sign: float) -> None:
    """Count the decision at hand."""
    fading = means.clock.fading
    for k in range(means.counts.shape[0]):
        means.counts[k, unit] += sign * fading[MARK, 0] * (fading[MARK, k] if k > 0 else 1.0)


@compiled_inside
def see_mean(means: Any, unit: int, played: Any) -> None:
    """A decision was made: with a window it counts from now on."""
    if means.clock.window > 0.0:
        weigh_decision(means.clock, played.t, played.time)
        _count(means, unit, 1.0)


@compiled_inside
def learn_mean(means: Any, unit: int, played: Any, loss: float, sign: float) -> None:
    """An outcome has come."""
    weigh_decision(means.clock, played.t, played.time)
    if means.clock.window == 0.0:
        _count(means, unit, sign)
    weight, news = sign * means.clock.fading[MARK, 0], loss - means.default
    means.sums[unit] += weight * news
    means.squares[unit] += weight * news * news
    note_report(means.clock, played.time, played.wait, sign)


@compiled_inside
def read_means(means: Any) -> None:
    """Before anything is read in a round."""
    read_exposure(means.clock)


@compiled_inside
def count_of(means: Any, unit: int) -> float:
    """How many outcomes are known of a unit; with a window its exposed count."""
    total = 0.0
    for k in range(means.counts.shape[0]):
        total += means.clock.curve[COEFFICIENT, k] * means.counts[k, unit]
    return max(total * means.clock.fading[READING, 0], 0.0)


@compiled_inside
def loss_of(means: Any, unit: int, count: float) -> float:
    """The sum of its losses; with a window, of what is expected of them."""
    total = count * means.default + means.sums[unit] * means.clock.fading[READING, 0]
    return min(max(total, 0.0), count) if means.default != 0.0 else total


@compiled_inside
def mean_loss(means: Any, unit: int) -> float:
    """(sum + 1)/(count + 2)."""
    count = count_of(means, unit)
    return (loss_of(means, unit, count) + 1.0) / (count + 2.0)


@compiled_inside
def variance(means: Any, unit: int, count: float, loss: float) -> float:
    """The variance of one loss, which for losses of 0 and 1 is m (1 - m) of their mean m; two rounds are of that."""
    mean = loss / count
    largest = mean * (1.0 - mean)
    shift = mean - means.default
    spread = max(means.squares[unit] * means.clock.fading[READING, 0] - count * shift * shift, 0.0)
    return min((spread + 2.0 * largest) / (count + 2.0), largest)


@compiled_inside
def draw_mean(means: Any, unit: int, source: Any) -> float:
    """A draw from the posterior: Beta, with as many outcomes of 0 and 1 as the variance of the losses is worth.

    For losses of 0 and 1 that is Beta(1 + sum, 1 + count - sum). Revenue varies less than its bounds allow: n losses of
    variance v and mean m tell as much as n m (1 - m)/v of 0 and 1.
    """
    count = count_of(means, unit)
    loss = loss_of(means, unit, count)
    if 0.0 < loss < count:
        mean = loss / count
        worth = mean * (1.0 - mean) / variance(means, unit, count, loss)
        count, loss = count * worth, loss * worth
    return beta(source, 1.0 + loss, 1.0 + max(count - loss, 0.0))
