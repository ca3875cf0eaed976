"""Theorems A to G as functions of a problem. Statements: docs/theory.md. Proofs: docs/theory-proofs.md.

    A        log K/rate + rate (kappa V + D)                       any delays, constant rate
    A-skip   the same for what was waited for, and one for each round given up
    B        log K/rate + rate (3 V + 3/8 d V1)                    one delay, rate <= 1/(e(d+1))
    C        2 b - b0 + what has not come                          a figure of the run: `Run.certificate`
    D        mean log K_i/rate + rate (kappa V + D)                contexts
    F        log K/rate + rate (7 V + 2 d E) + 7 rate² d² V1 + d/12    delays at most d, rate <= 1/(12 d)
    G        a sum over epochs of Theorem A beside a leader, and what the guard allows    `SelfTuned`

Last come bounds of three neighbours, learners from the literature that the package compares with. Each docstring says
whether it is *derived* (docs/theory-proofs.md, or from a theorem that is) or *recalled* from its source.

kappa = (e^r - 1 - r)/r², D the total wait, V >= sum_t (v_t - 1), V1 = min(V, T), E the drift between actions. The map
is known and losses are fixed in advance. Delays are fixed in advance, too, except in C and F. If outcomes can arrive
out of the order of their rounds, A, A-skip and D need more than the mean of an outcome: its whole law, given the past,
the action and the state, must be a fixed function of the round and the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import expm1, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Ints, check_count, check_delay, check_number
from statepool.guarantees.paper import LARGEST, LARGEST_RATE, Guarantee, guarantee
from statepool.learners.neighbours.anytime import anytime_bound
from statepool.learners.safe import GUARD, SHARE, rate_of
from statepool.model import Instance
from statepool.rates import largest_covered_rate

SMALL_RATE = 1e-4
CHUNK = 1 << 20


def kappa(rate: float) -> float:
    """(e^r - 1 - r)/r², what v - 1 costs in a round; 1/2 at small rates."""
    if rate < SMALL_RATE:  # the difference would be all rounding
        return 0.5 + rate / 6
    return (expm1(rate) - rate) / rate**2


@guarantee
def total_wait(delay: int | ArrayLike, horizon: int) -> int:
    """Total wait D: every outstanding outcome counted in every round, sum_t min(d_t, T - t).

    >>> import statepool as sp
    >>> sp.guarantees.total_wait(delay=50, horizon=20_000)
    998725
    """
    delays = check_delay(delay, horizon)
    if isinstance(delays, int):
        return _wait_of_one(delays, horizon)
    return int(np.minimum(delays, horizon - 1 - np.arange(horizon)).sum())


def _wait_of_one(delay: int, horizon: int) -> int:
    """D of one delay for all, without an array of rounds."""
    most = min(delay, horizon - 1)
    return most * (most - 1) // 2 + most * (horizon - most)


@guarantee
def theorem_a(
    n_actions: int, horizon: int, delay: int | ArrayLike, budget: float, rate: float | None = None
) -> Guarantee:
    """Theorem A at a constant rate: `StateEXP3` under any delays, equation (4) of docs/theory.md.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a(n_actions=200, horizon=20_000, delay=50, budget=30_000.0).value)
    4635
    """
    return _at_constant_rate(log(n_actions), budget, total_wait(delay, horizon), rate)


@guarantee
def theorem_d(
    log_actions: float, horizon: int, delay: int | ArrayLike, budget: float, rate: float | None = None
) -> Guarantee:
    """Theorem D at a constant rate: `StateEXP3` with contexts whose distribution is known, equation (14).

    `log_actions` is `choices_of(instance)`.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_d(log_actions=5.3, horizon=20_000, delay=50, budget=30_000.0).value)
    4636
    """
    return _at_constant_rate(log_actions, budget, total_wait(delay, horizon), rate)


def _at_constant_rate(log_actions: float, budget: float, waited: float, rate: float | None) -> Guarantee:
    def bound(at: float) -> float:
        if at > LARGEST_RATE:
            return inf
        return log_actions / at + at * (kappa(at) * budget + waited) if log_actions > 0 else 0.0

    if rate is None:
        rate = _least_at(bound, log_actions, budget / 2 + waited)
    check_number(rate, "rate", 0, LARGEST, open_low=log_actions > 0)
    return Guarantee(bound(rate), rate, True)


def _least_at(bound: Callable[[float], float], log_actions: float, cost: float) -> float:
    """Where a bound that is convex in the rate is least; near sqrt(log K / cost) while that is small."""
    from scipy.optimize import minimize_scalar

    if log_actions == 0:
        return 0.0
    top = min(sqrt(log_actions / cost) * 1.01, 50.0) if cost > 0 else 50.0
    return float(minimize_scalar(bound, bounds=(0, top), method="bounded", options={"xatol": 1e-12}).x)


@guarantee
def choices_of(instance: Instance) -> float:
    """Mean over contexts of the logarithm of the number of actions to choose from, for Theorem D.

    >>> import statepool as sp
    >>> round(sp.guarantees.choices_of(sp.families.funnel(seed=0, horizon=10)), 3)  # log 200
    5.298
    """
    if instance.available is None:
        return log(instance.n_actions)
    return float(instance.shares @ np.log(instance.available.sum(axis=1)))


@guarantee
def theorem_a_anytime(n_actions: int, n_states: int, spread: float, waited: float) -> float:
    """Theorem A for `Anytime()`, which knows neither horizon nor delays.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a_anytime(n_actions=200, n_states=6, spread=30_000.0, waited=1_000_000.0))
    6608
    """
    return float(anytime_bound(log(n_actions), min(n_actions, n_states) - 1, float(spread), float(waited)))


@guarantee
def theorem_a_skip(n_actions: int, n_states: int, spread: float, waited: float, given_up: int) -> float:
    """Theorem A-skip for `Anytime(skip=True)`, equation (5); a round is waited for until it is given up.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a_skip(n_actions=200, n_states=6, spread=30_000.0, waited=1_000_000.0, given_up=40))
    6648
    """
    return theorem_a_anytime(n_actions, n_states, spread, waited) + given_up


@guarantee
def skipping_cost(n_actions: int, horizon: int, delay: int | ArrayLike) -> float:
    """Least over sets U of rounds of |U| + sqrt((D outside U + |U|) log K), see Theorem A-skip.

    >>> import statepool as sp
    >>> round(sp.guarantees.skipping_cost(n_actions=200, horizon=20_000, delay=50))
    2300
    """
    waits = np.sort(np.minimum(check_delay(delay, horizon), horizon - 1 - np.arange(horizon)))[::-1]
    outside = waits.sum() - np.concatenate([[0], np.cumsum(waits)])
    left_out = np.arange(horizon + 1)
    return float((left_out + np.sqrt((outside + left_out) * log(n_actions))).min())


@guarantee
def theorem_b(n_actions: int, horizon: int, delay: int, budget: float, rate: float | None = None) -> Guarantee:
    """Theorem B: `StateEXP3` at a constant rate under one delay, equation (6).

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


@guarantee
def certified_worst_case(n_actions: int, n_states: int, spread: float, waited: float, most_in_flight: int) -> float:
    """Worst-case bound of `Certified()` with its guard, see Theorem C.

    >>> import statepool as sp
    >>> round(sp.guarantees.certified_worst_case(200, 6, spread=30_000.0, waited=1_000_000.0, most_in_flight=50))
    9418
    """
    width = min(n_actions, n_states) - 1
    twice = theorem_a_anytime(n_actions, n_states, spread + width, waited) - 2 * log(n_actions)
    return sqrt(2) * twice + 6 * log(n_actions) + 6 + most_in_flight


@guarantee
def drift_between_actions(instance: Instance, delay: int) -> float:
    """Drift between actions E of Theorem F, equation (8): the largest over lags l < 3d of sum_t |c_t - c_{t-l}|*².

    |f|* is half the range of f over actions, so movement that all actions share does not count. Takes 3d passes over
    the rounds.

    >>> import statepool as sp
    >>> shop = sp.families.funnel(seed=0, n_actions=20, horizon=2_000)
    >>> round(sp.guarantees.drift_between_actions(shop, delay=50), 3)
    0.111
    """
    if instance.contexts is not None:
        raise ValueError(f"instance: has {instance.n_contexts} contexts, expected one without: Theorem F knows none")
    rows = np.unique(instance.P, axis=0)
    theta = instance.theta
    most = 0.0
    for lag in range(1, min(3 * max(delay, 1), instance.horizon)):
        moved = theta[lag:] - theta[:-lag]
        step = max(1, CHUNK // len(rows))
        drift = 0.0
        for first in range(0, len(moved), step):
            change = moved[first : first + step] @ rows.T
            drift += float(((change.max(axis=1) - change.min(axis=1)) ** 2).sum()) / 4
        most = max(most, drift)
    return most


@guarantee
def theorem_f(
    n_actions: int, horizon: int, delay: int, budget: float, drift: float, rate: float | None = None
) -> Guarantee:
    """Theorem F: `HintedStateEXP3(rate)`, equation (10). `drift` is `drift_between_actions`.

    >>> import statepool as sp
    >>> bound = sp.guarantees.theorem_f(n_actions=2, horizon=200_000, delay=20, budget=200_000.0, drift=50.0)
    >>> round(bound.value), round(1 / bound.rate)
    (2198, 1721)
    """
    d, size = max(delay, 1), log(n_actions)
    first, second = 7 * budget + 2 * d * drift, 7 * d**2 * min(budget, float(horizon))
    cap = 1 / (12 * d)
    if rate is None:
        rate = _best_rate_of_f(size, first, second, cap)
    check_number(rate, "rate", 0, LARGEST, open_low=n_actions > 1)
    if n_actions == 1:
        return Guarantee(0.0, rate, True)
    return Guarantee(size / rate + rate * first + rate**2 * second + d / 12, rate, rate <= cap * (1 + 1e-12))


def _best_rate_of_f(size: float, first: float, second: float, cap: float) -> float:
    """Where size/r + first r + second r² is least, r <= cap, by bisection of its derivative."""
    low, high = 0.0, cap
    if first * cap**2 + 2 * second * cap**3 <= size:
        return cap
    for _ in range(200):
        middle = (low + high) / 2
        if first * middle**2 + 2 * second * middle**3 < size:
            low = middle
        else:
            high = middle
    return high


@guarantee
def theorem_f_tuned(n_actions: int, horizon: int, delay: int, budget: float, drift: float) -> float:
    """Closed form of `theorem_f` at its best rate, equation (11); never below it.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_f_tuned(n_actions=2, horizon=200_000, delay=20, budget=200_000.0, drift=50.0))
    3625
    """
    d, size = max(delay, 1), log(n_actions)
    narrow = min(budget, float(horizon))
    extra = min(12 * d**2 * size, 4 * (d**2 * narrow) ** (1 / 3) * size ** (2 / 3) + 12 * d * size)
    return 2 * sqrt((8 * budget + 2 * d * drift) * size) + extra + d / 12 if n_actions > 1 else 0.0


@guarantee
def theorem_f_free(n_actions: int, horizon: int, delay: int, budget: float, drift: float) -> float:
    """Theorem F for `HintedStateEXP3()`, equation (13); the budget must hold on every path.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_f_free(n_actions=2, horizon=10**7, delay=20, budget=1e7, drift=50.0))
    573190
    """
    d, size = max(delay, 1), max(1.0, log(n_actions))
    narrow = min(budget, float(horizon))
    extra = min(24 * d**2 * size, 8.4 * (d**2 * narrow) ** (1 / 3) * size ** (2 / 3))
    root = 6.5 * sqrt(size * (9.6 * budget + 3 * d * drift))
    return 9 * max(12 * d * size, root, extra) if n_actions > 1 else 0.0


@guarantee
def theorem_g(n_actions: int, n_states: int, horizon: int, delay: int | ArrayLike) -> float:
    """Theorem G: the worst case of `SelfTuned()` with a known map, equation (16). Outcomes must come in order.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_g(n_actions=200, n_states=6, horizon=10**6, delay=50))
    256565
    """
    delays = check_delay(delay, horizon)
    if isinstance(delays, np.ndarray):
        _check_order(delays)
    total = 0.0
    for start, length in _epochs(horizon):
        wait = _wait_in(delays, start, length)
        total += min(float(length), _epoch_bound(n_actions, n_states, start, length, wait))
    return total


class _Wait(NamedTuple):
    """What an epoch has to wait for."""

    mean_delay: float
    """Of the outcomes that had come before the epoch, and 1; 0 without any."""
    total: float
    """Outstanding outcomes of the epoch, summed over its rounds."""
    most: int


def _epochs(horizon: int) -> Iterator[tuple[int, int]]:
    """(Rounds before the epoch, rounds in it)."""
    yield 0, 1
    start = 1
    while start < horizon:
        yield start, min(start, horizon - start)
        start *= 2


def _epoch_bound(n_actions: int, n_states: int, start: int, length: int, wait: _Wait) -> float:
    since = max(start, 1)
    rate = float(rate_of(float(since), wait.mean_delay, n_states, n_actions))
    spread = (min(n_actions, n_states) - 1) / SHARE * length
    learning = log(n_actions * since) / rate if rate > 0 else 0.0  # one action in the first round: nothing to learn
    safe = learning + rate * (kappa(rate / SHARE) * spread + wait.total)
    return safe + GUARD * sqrt(start / SHARE) + wait.most + 1


def _wait_in(delays: int | Ints, start: int, length: int) -> _Wait:
    if isinstance(delays, int):
        known = delays + 1.0 if start > delays + 1 else 0.0
        return _Wait(known, _wait_of_one(delays, length), min(delays, length - 1))
    come = np.arange(delays.size) + delays + 1
    earlier = delays[:start][come[:start] < start]
    rounds = np.arange(start, start + length)
    waiting = rounds - np.minimum(start + np.searchsorted(come[start:], rounds, side="right"), rounds)
    return _Wait(float(earlier.mean()) + 1 if earlier.size else 0.0, float(waiting.sum()), int(waiting.max()))


def _check_order(delays: Ints) -> None:
    late = np.flatnonzero(np.diff(delays) < -1)
    if late.size:
        t = int(late[0])
        raise ValueError(
            f"delay: round {t}'s outcome ({delays[t]} late) comes after that of round {t + 1} ({delays[t + 1]} late), "
            "expected outcomes in the order of their rounds"
        )


@guarantee
def zimmert_seldin(n_actions: int, horizon: int, waited: float) -> float:
    """`ZimmertSeldin(tuning="anytime")` under delays fixed in advance: 4 sqrt(KT) + sqrt(8 D log K). Recalled.

    >>> import statepool as sp
    >>> round(sp.guarantees.zimmert_seldin(n_actions=200, horizon=20_000, waited=1_000_000.0))
    14510
    """
    return 4 * sqrt(n_actions * horizon) + sqrt(8 * waited * log(n_actions))


@guarantee
def idle_copies(n_actions: int, most_in_flight: int, budget: float, rate: float | None = None) -> float:
    """`StateEXP3(copies="idle")`: (most in flight + 1) log K/rate + rate/2 sum_t v_t. Derived from Theorem 3.

    Here `budget` bounds the sum of v_t.

    >>> import statepool as sp
    >>> round(sp.guarantees.idle_copies(n_actions=200, most_in_flight=50, budget=30_000.0, rate=0.01))
    27171
    """
    check_number(1.0 if rate is None else rate, "rate", 0, LARGEST, open_low=True)
    learning = (most_in_flight + 1) * log(n_actions)
    return sqrt(2 * learning * budget) if rate is None else learning / rate + rate / 2 * budget


@guarantee
def cautious(n_actions: int, n_states: int, horizon: int, rate: float, caution: float, confidence: float) -> float:
    """`StateEXP3(caution=…)` without delay: exceeded with probability at most `confidence`. Derived, (28).

    >>> import statepool as sp
    >>> round(sp.guarantees.cautious(200, 6, horizon=20_000, rate=0.01, caution=0.005, confidence=0.05))
    2632
    """
    check_number(confidence, "confidence", 0, 1, open_low=True)
    check_number(caution, "caution", 0, LARGEST, open_low=True)
    check_number(rate, "rate", 0, LARGEST, open_low=True)
    seen = n_states * horizon + log(2 / confidence) / (2 * caution)
    return log(n_actions) / rate + (rate / 2 + caution) * seen + log(2 * n_actions / confidence) / (2 * caution)
