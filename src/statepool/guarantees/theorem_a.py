"""Theorems A, A-skip, B and C as functions: bounds for one copy of pooled exponential weights under delay.

    A        any rates that never rise, any delays fixed in advance:  log K/rate_T + sum_t rate_t (k1 (v_t - 1) + o_t)
             constant rate: log K/rate + rate (k1 V + D);  `Anytime`: sqrt(8.07 log K (.6 (m-1+V) + D)) + 2 log K
    A-skip   the same with D of what was still waited for, and one for each round given up
    B        one delay d >= 1, constant rate <= 1/(e(d+1)):  log K/rate + rate (3V + 3/8 d W)
    C        `Certified`: 2B - b0 + what has not come, a figure of the run itself: `Run.certificate`

k1 = (e^r - 1 - r)/r², o_t the outcomes outstanding in round t, D their sum, V >= sum_t (v_t - 1),
W >= sum_t min(1, v_t - 1), m = min(K, S). All of them assume that the map is known and that losses and delays are
fixed in advance (C: losses alone). Where outcomes arrive out of order, A assumes that an outcome is independent of
earlier outcomes given the states. Proofs: docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, expm1, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import check_count, check_delay, check_number
from statepool.guarantees.arguments import LARGEST, checked
from statepool.guarantees.paper import Guarantee
from statepool.learners.neighbours.anytime import anytime_bound
from statepool.rates import largest_covered_rate

SMALL_RATE = 1e-4


@checked
def first_cost(rate: float) -> float:
    """(e^r - 1 - r)/r², what a round's spread v - 1 costs; 1/2 at small rates.

    >>> import statepool as sp
    >>> round(sp.guarantees.first_cost(0.1), 3)
    0.517
    """
    if rate < SMALL_RATE:  # the difference would be all rounding
        return 0.5 + rate / 6
    return (expm1(rate) - rate) / rate**2


@checked
def total_wait(delay: int | ArrayLike, horizon: int) -> int:
    """D: every outstanding outcome counted in every round, sum_t min(d_t, T - t).

    >>> import statepool as sp
    >>> sp.guarantees.total_wait(delay=50, horizon=20_000)
    998725
    """
    checked = check_delay(delay, horizon)
    if isinstance(checked, int):
        return wait_of_one(checked, horizon)
    return int(np.minimum(checked, horizon - 1 - np.arange(horizon)).sum())


def wait_of_one(delay: int, horizon: int) -> int:
    """D where every outcome takes as long, sum_t min(t, d): without a number a round."""
    most = min(delay, horizon - 1)
    return most * (most - 1) // 2 + most * (horizon - most)


@checked
def theorem_a(
    n_actions: int, horizon: int, delay: int | ArrayLike, budget: float, rate: float | None = None
) -> Guarantee:
    """State-EXP3 at a constant rate, however large, or the best one; `budget` bounds sum_t (v_t - 1).

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a(n_actions=200, horizon=20_000, delay=50, budget=30_000.0).value)
    4635
    """
    return at_constant_rate(log(n_actions), budget, total_wait(delay, horizon), rate)


def at_constant_rate(log_actions: float, budget: float, waited: float, rate: float | None = None) -> Guarantee:
    """log K/rate + rate (k1 V + D) at a rate, or at the best one; 0 where there is nothing to choose."""

    def bound(at: float) -> float:
        if at > 700:  # past what an exponential can hold
            return inf
        return log_actions / at + at * (first_cost(at) * budget + waited) if log_actions > 0 else 0.0

    if rate is None:
        rate = _best_rate(bound, log_actions, budget / 2 + waited)
    check_number(rate, "rate", 0, LARGEST, open_low=log_actions > 0)
    return Guarantee(bound(rate), rate, True)


def _best_rate(bound: Callable[[float], float], actions: float, cost: float) -> float:
    """Where a bound that is convex in the rate is smallest; near sqrt(log K / cost) while that is small."""
    from scipy.optimize import minimize_scalar

    if actions == 0:
        return 0.0
    top = sqrt(actions / cost) * 1.01 if cost > 0 else 50.0
    return float(minimize_scalar(bound, bounds=(0, min(top, 50.0)), method="bounded", options={"xatol": 1e-12}).x)


@checked
def theorem_a_anytime(n_actions: int, n_states: int, spread: float, waited: float) -> float:
    """`Anytime()`, whatever T and the delays: `spread` is (the mean of) sum_t (v_t - 1), `waited` is D.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a_anytime(n_actions=200, n_states=6, spread=30_000.0, waited=1_000_000.0))
    6608
    """
    return float(anytime_bound(log(n_actions), min(n_actions, n_states) - 1, float(spread), float(waited)))


@checked
def theorem_a_skip(n_actions: int, n_states: int, spread: float, waited: float, given_up: int) -> float:
    """`Anytime(skip=True)`: `waited` counts a round until it comes or is given up, `given_up` how many were.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a_skip(n_actions=200, n_states=6, spread=30_000.0, waited=1_000_000.0, given_up=40))
    6648
    """
    return theorem_a_anytime(n_actions, n_states, spread, waited) + given_up


@checked
def skipping_cost(n_actions: int, horizon: int, delay: int | ArrayLike) -> float:
    """min over sets R of |R| + sqrt((D outside R + |R|) log K), which bounds sqrt(D log K) of the skipping rule.

    >>> import statepool as sp
    >>> round(sp.guarantees.skipping_cost(n_actions=200, horizon=20_000, delay=50))
    2300
    """
    checked = check_delay(delay, horizon)
    waits = np.sort(np.minimum(checked, horizon - 1 - np.arange(horizon)))[::-1]
    outside = waits.sum() - np.concatenate([[0], np.cumsum(waits)])
    left_out = np.arange(horizon + 1)
    return float((left_out + np.sqrt((outside + left_out) * log(n_actions))).min())


@checked
def theorem_b(n_actions: int, horizon: int, delay: int, budget: float, rate: float | None = None) -> Guarantee:
    """State-EXP3 at a constant rate and one delay: pooling cheapens the waiting too.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_b(n_actions=200, horizon=20_000, delay=50, budget=30_000.0).value)
    3139
    """
    check_count(delay, "delay")
    variance = 3 * budget + 3 / 8 * delay * min(budget, horizon)
    cap = largest_covered_rate(delay)
    if rate is None:
        rate = min(cap, sqrt(log(n_actions) / variance)) if variance > 0 else cap
    check_number(rate, "rate", 0, LARGEST, open_low=n_actions > 1)
    learning = log(n_actions) / rate if n_actions > 1 else 0.0
    return Guarantee(learning + rate * variance, rate, rate <= cap)


@checked
def certified_worst_case(n_actions: int, n_states: int, spread: float, waited: float, most_in_flight: int) -> float:
    """`Certified()` with its guard, whatever happens: sqrt(2) times Theorem A (m - 1 counted twice) and the rest.

    >>> import statepool as sp
    >>> round(sp.guarantees.certified_worst_case(200, 6, spread=30_000.0, waited=1_000_000.0, most_in_flight=50))
    9418
    """
    width = min(n_actions, n_states) - 1
    twice = theorem_a_anytime(n_actions, n_states, spread + width, waited) - 2 * log(n_actions)
    return sqrt(2) * twice + 6 * log(n_actions) + 6 + most_in_flight


@checked
def drift_lemma_cap(most_arrivals: int) -> float:
    """The largest rate of the drift lemma per arrival, where at most so many others arrive during a flight.

    >>> import statepool as sp
    >>> round(sp.guarantees.drift_lemma_cap(most_arrivals=1), 3)
    0.184
    """
    return 1 / (e * (most_arrivals + 1))
