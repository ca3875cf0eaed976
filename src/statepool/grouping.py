"""Grouping from data: which states to merge for the rest of the horizon, chosen from a prefix of the run.

    candidates    for n = 1 … S, the likeliest cut of the states, in order of their mean loss, into n runs
    rehearsal     draw state means from their posterior, theta_b(s) ~ Beta(1 + losses, 1 + count - losses), and
                  simulate the rest of one interleaved copy with every candidate, on common random numbers
    choice        argmax_g  mean_b gain_b(g) - z · se_b gain_b(g)        gain_b(g) = loss of identity - loss of g

Why rehearse: 2 T delta is a worst case, and the spread of prefix means inside a true group is all sampling noise. What
merging costs (bias) and brings (less variance, a larger rate) shows when the learner is run, and a run is cheap.
Source: `published_rule`, the paper's Theorem 4 as a score (study 13); `choose_groups` is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from statepool.checks import Floats, Ints, check_count, check_map, check_means, check_whole, shown
from statepool.engine import simulate
from statepool.learners import StateEXP3
from statepool.model import Instance
from statepool.rates import default_rate

__all__ = ["choose_groups", "published_rule"]

Dimension = Callable[[Floats], float]
FALSE_ALARM = 0.05  # of leaving identity where no candidate gains, shared by the S - 1 candidates (Bonferroni)
_ENTRIES = 1 << 22  # rounds × states held at once in a rehearsal


def choose_groups(
    P: ArrayLike, states: ArrayLike, outcomes: ArrayLike, horizon: int, delay: int,
    dimension: Dimension | None = None, rehearsals: int = 128, seed: int = 0,
) -> Ints:  # fmt: skip
    """Choose which states to merge: the candidate that surely gains most in rehearsal.

    Parameters
    ----------
    P : array_like
        The map, one row for each action.
    states, outcomes : array_like
        Those of the prefix, one per round; outcomes of its last `delay` rounds have not arrived and are not read.
    horizon, delay : int
        Of the whole run.
    dimension : callable, optional
        Maps P^g to the width of the learner's rate: the largest v of sampled policies by default.
    rehearsals : int
        How many state means are drawn from their posterior.
    seed : int
        Of all random numbers.

    Returns
    -------
    numpy.ndarray
        The group of each state, 0, 1, … without gaps.

    Examples
    --------
    >>> import statepool as sp
    >>> states, outcomes = [0, 1, 2] * 100, [0, 0, 1] * 100  # the first two states are alike
    >>> P = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    >>> sp.grouping.choose_groups(P, states, outcomes, horizon=1_000, delay=10).tolist()
    [0, 0, 1]
    """
    P, states, outcomes = _check_prefix(P, states, outcomes, horizon, delay, dimension)
    check_count(rehearsals, "rehearsals", lowest=2)
    (n_actions, n_states), arrived = P.shape, max(states.size - delay, 0)
    n_rounds = ceil((horizon - states.size) / (delay + 1))
    if n_actions == 1 or n_states == 1 or n_rounds == 0:
        return np.arange(n_states)
    check_whole(seed, "seed")
    dimension = dimension or sampled_dimension(n_actions, seed)
    counts, losses = _tally(states[:arrived], outcomes[:arrived], n_states)
    means = np.random.default_rng((seed, 1)).beta(1 + losses, 1 + counts - losses, size=(rehearsals, n_states))
    candidates = likeliest_cuts(counts, losses)[::-1]  # identity first: it wins ties
    rates = [default_rate(n_actions, dimension(merge_states(P, g)), horizon, delay, delay + 1) for g in candidates]
    spent = np.array([_rehearse(P, means, *plan, n_rounds, seed) for plan in zip(candidates, rates, strict=True)])
    gains = spent[0] - spent
    z = NormalDist().inv_cdf(1 - FALSE_ALARM / (n_states - 1))
    return candidates[int((gains.mean(axis=1) - z * gains.std(axis=1, ddof=1) / sqrt(rehearsals)).argmax())]


def _rehearse(P: Floats, means: Floats, groups: Ints, rate: float, n_rounds: int, seed: int) -> Floats:
    """The loss of one copy on each row of means; rows share a run, since interleaved copies do not meet."""
    n_batches, spent = min(ceil(means.size * n_rounds / _ENTRIES), len(means)), []
    for i, rows in enumerate(np.array_split(means, n_batches)):
        learner = StateEXP3(rate=rate, copies=len(rows), groups=groups)
        run = simulate(Instance(P, np.tile(rows, (n_rounds, 1))), learner, 0, np.random.default_rng((seed, 2, i)))
        spent.append((rows @ P.T)[np.arange(len(rows)), run.actions.reshape(n_rounds, -1)].sum(axis=0))
    return np.concatenate(spent)


def likeliest_cuts(counts: Floats, losses: Floats) -> list[Ints]:
    """For n = 1 … S the likeliest cut (Bernoulli, exact) of the states, sorted by mean, into n runs."""
    n_states, order = counts.size, np.argsort((losses + 1) / (counts + 2), kind="stable")
    n, lost = (np.append(0, tally[order].cumsum()) for tally in (counts, losses))
    n = np.maximum(n - n[:, None], 0)  # n[i, j]: outcomes in the run i … j-1
    lost = np.clip(lost - lost[:, None], 0, n)
    fit = xlogy(lost, lost) + xlogy(n - lost, n - lost) - xlogy(n, n)
    fit[np.tri(n_states + 1, dtype=bool)] = -np.inf  # a run holds a state at least
    best, starts = np.append(0.0, np.full(n_states, -np.inf)), []
    for _ in range(n_states):
        reach = best[:, None] + fit
        starts.append(reach.argmax(axis=0))
        best = reach.max(axis=0)
    return [_follow(starts[:size], order) for size in range(1, n_states + 1)]


def _follow(starts: list[Ints], order: Ints) -> Ints:
    groups, end = np.empty(order.size, np.int64), order.size
    for group in reversed(range(len(starts))):
        groups[order[:end]] = group
        end = int(starts[group][end])
    return groups


def published_rule(
    P: ArrayLike, states: ArrayLike, outcomes: ArrayLike, horizon: int, delay: int, dimension: Dimension | None = None
) -> Ints:
    """The paper's choice: the nested grouping of least sqrt(2 (d+1) v T log K) + 2 T delta, delta from prefix means.

    Parameters
    ----------
    P, states, outcomes, horizon, delay, dimension
        As for `choose_groups`, but all outcomes are read.

    Returns
    -------
    numpy.ndarray
        The group of each state.

    Examples
    --------
    >>> import statepool as sp
    >>> states, outcomes = [0, 1, 2] * 100, [0, 0, 1] * 100
    >>> P = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    >>> sp.grouping.published_rule(P, states, outcomes, horizon=1_000, delay=10).tolist()
    [0, 0, 1]
    """
    P, states, outcomes = _check_prefix(P, states, outcomes, horizon, delay, dimension)
    dimension = dimension or sampled_dimension(P.shape[0])
    means = prefix_means(states, outcomes, P.shape[1])

    def bound(groups: Ints) -> float:
        delta, width = max(np.ptp(means[groups == z]) for z in groups), dimension(merge_states(P, groups))
        return sqrt(2 * (delay + 1) * width * horizon * log(P.shape[0])) + 2 * horizon * float(delta)

    return min(nested_groupings(means), key=bound)


def nested_groupings(means: Floats) -> list[Ints]:
    """Identity, then the closest neighbours among the sorted means merged, one pair at a time, down to one group."""
    order = np.argsort(means, kind="stable")
    rank = np.argsort(np.argsort(np.diff(means[order]), kind="stable"), kind="stable")  # gap 0 closes first
    return [np.append(0, rank >= merged).cumsum()[np.argsort(order)] for merged in range(means.size)]


def prefix_means(states: Ints, outcomes: Floats, n_states: int) -> Floats:
    """The mean outcome of each state, 1/2 where unseen."""
    counts, losses = _tally(states, outcomes, n_states)
    return np.where(counts > 0, losses / np.maximum(counts, 1), 0.5)


def merge_states(P: Floats, groups: Ints) -> Floats:
    """P^g, the map onto groups."""
    return P @ np.eye(int(groups.max()) + 1)[groups]


def sampled_dimension(n_actions: int, seed: int = 0, draws: int = 400) -> Dimension:
    """vhat, the largest v(x) over sampled policies: the same for every map, so that merging cannot raise it."""
    rng = np.random.default_rng(check_whole(seed, "seed"))
    policies = np.array([rng.dirichlet(np.full(n_actions, rng.choice([0.2, 1.0, 5.0]))) for _ in range(draws)])

    def largest(P: Floats) -> float:
        q = policies @ P
        return max(1.0, float(np.divide(policies @ P**2, q, out=np.zeros_like(q), where=q > 0).sum(1).max()))

    return largest


def _tally(states: Ints, outcomes: Floats, n_states: int) -> tuple[Floats, Floats]:
    counts, losses = np.bincount(states, minlength=n_states), np.bincount(states, outcomes, n_states)
    return counts.astype(np.float64), losses.astype(np.float64)


def _check_prefix(
    P: ArrayLike, states: ArrayLike, outcomes: ArrayLike, horizon: int, delay: int, dimension: Dimension | None
) -> tuple[Floats, Ints, Floats]:
    check_count(delay, "delay", lowest=0)
    if dimension is not None and not callable(dimension):
        raise ValueError(f"dimension: is {shown(dimension)}, expected a function of a map, or None")
    table, seen, lost = check_map(P), np.asarray(states), check_means(np.reshape(outcomes, (-1, 1)), 1, "outcomes")
    check_count(horizon, "horizon", lowest=len(lost))
    whole = seen.shape == (len(lost),) and seen.dtype.kind in "iu"
    if not whole or seen.min() < 0 or seen.max() >= table.shape[1]:
        given = f"{seen.shape} of {seen.dtype}" + (f", up to {seen.max()}" if whole else "")
        raise ValueError(f"states: are {given}, expected ({len(lost)},) whole numbers from 0 to {table.shape[1] - 1}")
    return table, seen.astype(np.int64), lost[:, 0]
