"""What is proved, as functions of a problem: the paper's Theorems 1 to 4, ours, and bounds of three neighbours.

    1        State-EXP3: log K/rate + rate/2 (3.3 V + 2dT) + d,  rate <= 1/(e(d+1))
    2        every learner: sqrt(d E min(1 + log J, T/d)) up to a constant; exactly, what its construction forces
    3        interleaved: sqrt(2 (d+1) V log K), here V >= sum_t v_t
    4        on groups: Theorem 3 with the grouped dimension, + 2 sum_t delta_t
    A        log K/rate + rate (kappa V + D)                       any delays, constant rate
    A-skip   the same for what was waited for, and one for each round given up
    B        log K/rate + rate (3 V + 3/8 d V1)                    one delay, rate <= 1/(e(d+1))
    C        2 b - b0 + what has not come                          a figure of the run: `Run.certificate`
    D        mean log K_i/rate + rate (kappa V + D)                contexts
    F        log K/rate + rate (7 V + 2 d E) + 7 rate² d² V1 + d/12    delays at most d, rate <= 1/(12 d)
    G        a sum over epochs of Theorem A beside a leader, and what the guard allows    `SelfTuned`

kappa = (e^r - 1 - r)/r², D the total wait, V >= sum_t (v_t - 1), V1 = min(V, T), E the drift between actions. A budget
V = (vbar - 1) T or vbar T is admissible only if vbar bounds the dimension of *every* policy: take the `upper` of
`dimension.bracket`. Theorems 1 to 4 are the paper's (Section 3 and Appendices B to F). Statements of the others:
docs/theory.md; proofs: docs/theory-proofs.md.

In A to G the map is known and losses are fixed in advance. Delays are fixed in advance, too, except in C and F. If
outcomes can arrive out of the order of their rounds, A, A-skip and D need more than the mean of an outcome: its whole
law, given the past, the action and the state, must be a fixed function of the round and the state.

Neighbours are learners from the literature. Each docstring says whether the bound is *derived* or *recalled*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import expm1, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statepool.arguments import Argument, checked, count, number
from statepool.checks import Ints, check_count, check_delay, check_number, shown
from statepool.engine import simulate
from statepool.learners import StateEXP3
from statepool.learners.neighbours.anytime import anytime_bound
from statepool.learners.safe import GUARD, SHARE, rate_of
from statepool.model import Instance
from statepool.rates import largest_covered_rate
from statepool.stream import Seed

__all__ = [
    "Guarantee", "choices_of", "drift_between_actions", "drift_lemma", "expected_best_walk", "interleaving_pays",
    "theorem_1", "theorem_2", "theorem_3", "theorem_4", "theorem_a", "theorem_a_anytime", "theorem_b", "theorem_d",
    "theorem_f", "theorem_f_free", "theorem_g", "total_wait", "zimmert_seldin",
]  # fmt: skip

LARGEST, LARGEST_RATE = 1e300, 700.0
"""exp(700) is still a number."""


def _check_instance(value: object, name: str) -> None:
    if not isinstance(value, Instance):
        raise ValueError(f"{name}: is {shown(value)}, expected an Instance")


ARGUMENTS = {
    "n_actions": count("Number of actions K."),
    "n_states": count("Number of states S."),
    "horizon": count("Number of rounds T."),
    "delay": count("Delay in rounds; an array gives one for each round, where that is allowed.", lowest=0),
    "budget": number("Bound on the sum over rounds of v_t - 1; in Theorems 3 and 4 of v_t.", 0, LARGEST),
    "rate": number("Learning rate. None: the best rate that the bound covers.", 0, LARGEST_RATE),
    "drift": number("How far the losses move; its definition is that of the theorem.", 0, LARGEST),
    "n_drifting": count("Number of directions in which the losses drift."),
    "n_signs": count("Steps of each walk."),
    "n_walks": count("Number of walks."),
    "spread": number("Sum over rounds of v_t - 1; in Theorem 4, of the spread of means within groups.", 0, LARGEST),
    "waited": number("Total wait D, see `total_wait`.", 0, LARGEST),
    "log_actions": number("Mean over contexts of the logarithm of the number of actions.", 0, LARGEST),
    "dimension": number("Largest effective dimension of a policy.", 0, LARGEST),
    "instance": Argument("Instance", "The problem.", _check_instance),
    "seed": Argument("int", "Random seed of the run."),
}
guarantee = checked(ARGUMENTS)
"""Decorates a bound: its arguments are checked and explained."""


@dataclass(frozen=True)
class Guarantee:
    """A bound on expected regret.

    Attributes
    ----------
    value : float
        The bound.
    rate : float
        The learning rate it holds at.
    covered : bool
        Whether the theorem covers that rate.
    """

    value: float
    rate: float
    covered: bool


@guarantee
def theorem_1(n_actions: int, horizon: int, delay: int, budget: float, rate: float | None = None) -> Guarantee:
    """Theorem 1: State-EXP3 with one copy.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_1(n_actions=200, horizon=20_000, delay=50, budget=30_000.0).value)
    4766
    """
    bound = _below_cap(n_actions, delay, 3.3 / 2 * budget + delay * horizon, rate)
    return Guarantee(bound.value + delay, bound.rate, bound.covered)


def _below_cap(n_actions: int, delay: int, variance: float, rate: float | None) -> Guarantee:
    """log K/rate + rate · variance, by default at its best rate up to 1/(e(d+1))."""
    cap = largest_covered_rate(delay)
    if rate is None:
        rate = min(cap, sqrt(log(n_actions) / variance)) if variance > 0 else cap
    check_number(rate, "rate", 0, LARGEST, open_low=n_actions > 1)
    learning = log(n_actions) / rate if n_actions > 1 else 0.0
    return Guarantee(learning + rate * variance, rate, rate <= cap)


@guarantee
def theorem_2(horizon: int, delay: int, drift: float, n_drifting: int) -> float:
    """Theorem 2: the expected regret of every learner on `families.hard` with blocks of `delay` rounds, exactly.

    The construction moves losses by sqrt(drift / horizon) / 2, so that its E2 is at most `drift`.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_2(horizon=20_000, delay=50, drift=50.0, n_drifting=6))
    32
    """
    check_count(delay, "delay")
    if 2 * delay > horizon:
        raise ValueError(f"delay: is {delay}, expected at most half the horizon, {horizon // 2}")
    check_number(drift, "drift", 0, horizon / 4)
    return sqrt(drift / horizon) / 2 * delay * expected_best_walk(horizon // delay - 1, n_drifting)


@guarantee
def expected_best_walk(n_signs: int, n_walks: int) -> float:
    """Expected maximum of 0 and of several independent sums of random signs, exactly.

    >>> import statepool as sp
    >>> round(sp.guarantees.expected_best_walk(n_signs=8, n_walks=3), 3)
    2.459
    """
    from scipy.stats import binom

    # Heads for a sum of 1, 3, 5 … or of 2, 4, 6 …; further out than 20 sqrt(n) the probabilities are below 1e-300.
    half, odd = n_signs // 2, n_signs % 2
    heads = half + 1 + np.arange(min(half + odd, int(20 * sqrt(n_signs))))
    # P(some walk reaches it) = 1 - P(one does not)^n_walks; the sum over values is E max^+, in steps of 2.
    some = -np.expm1(n_walks * np.log1p(-binom.sf(heads - 1, n_signs, 0.5)))
    return float(2 * some.sum() - (some[0] if odd else 0.0))


@guarantee
def theorem_3(n_actions: int, delay: int, budget: float) -> Guarantee:
    """Theorem 3: interleaved State-EXP3 (d + 1 copies) at its matching rate.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_3(n_actions=200, delay=50, budget=30_000.0).value)
    4027
    """
    check_number(budget, "budget", 0, LARGEST, open_low=True)
    rate = sqrt(2 * (delay + 1) * log(n_actions) / budget)
    return Guarantee(sqrt(2 * (delay + 1) * budget * log(n_actions)), rate, True)


@guarantee
def theorem_4(n_actions: int, delay: int, budget: float, spread: float) -> Guarantee:
    """Theorem 4: Theorem 3 on merged states, plus twice the spread of means within groups.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_4(n_actions=200, delay=50, budget=30_000.0, spread=100.0).value)
    4227
    """
    merged = theorem_3(n_actions, delay, budget)
    return Guarantee(merged.value + 2 * spread, merged.rate, True)


@guarantee
def interleaving_pays(dimension: float, n_actions: int, delay: int) -> bool:
    """Whether the interleaved bound beats the rate by action: vbar (d+1) log K <= K + d.

    >>> import statepool as sp
    >>> sp.guarantees.interleaving_pays(dimension=1.5, n_actions=200, delay=10)
    True
    """
    return dimension * (delay + 1) * log(n_actions) <= n_actions + delay


@guarantee
def drift_lemma(instance: Instance, delay: int, seed: Seed, rate: float | None = None) -> float:
    """Largest one-round growth of any action's probability in a run, which the lemma bounds by 1 + 1/d.

    >>> import statepool as sp
    >>> sp.guarantees.drift_lemma(sp.families.band(seed=0, horizon=200), delay=5, seed=1) <= 1 + 1 / 5
    True
    """
    check_count(delay, "delay")
    policies = simulate(instance, StateEXP3(rate=rate), delay, seed).policies()
    before, after = policies[:-1], policies[1:]
    return float(np.divide(after, before, out=np.ones_like(after), where=before > 0).max(initial=1.0))


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

    `Anytime(skip=True)` adds one for each round given up; a round is waited for until then (Theorem A-skip).

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_a_anytime(n_actions=200, n_states=6, spread=30_000.0, waited=1_000_000.0))
    6608
    """
    return float(anytime_bound(log(n_actions), min(n_actions, n_states) - 1, float(spread), float(waited)))


@guarantee
def theorem_b(n_actions: int, horizon: int, delay: int, budget: float, rate: float | None = None) -> Guarantee:
    """Theorem B: `StateEXP3` at a constant rate under one delay, equation (6).

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_b(n_actions=200, horizon=20_000, delay=50, budget=30_000.0).value)
    3139
    """
    check_count(delay, "delay")
    return _below_cap(n_actions, delay, 3 * budget + 3 / 8 * delay * min(budget, horizon), rate)


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
    """Where size/r + first r + second r² is least, r <= cap."""
    from scipy.optimize import brentq

    def rising(rate: float) -> float:
        return first * rate**2 + 2 * second * rate**3 - size

    return cap if rising(cap) <= 0 else float(brentq(rising, 0, cap, xtol=1e-16))


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
    326267
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
