"""Theorems 1 to 4 of the paper as functions of a problem, and a check of its drift lemma.

    Theorem 1   State-EXP3:    log K/rate + rate/2 (3.3 V + 2dT) + d,  rate <= 1/(e(d+1)),  V >= sum_t (v_t - 1)
    Theorem 2   every learner: sqrt(d E min(1 + log J, T/d)) up to a constant; exactly, what its construction forces
    Theorem 3   interleaved:   sqrt(2 (d+1) V log K),  V >= sum_t v_t
    Theorem 4   on groups:     Theorem 3 with the grouped dimension, + 2 sum_t delta_t

A budget V = (vbar - 1) T or vbar T is admissible only if vbar bounds the dimension of *every* policy: take the `upper`
of `dimension.bracket`. Source: paper, Section 3 and Appendices B to F (numbers as printed there).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, sqrt

import numpy as np

from statepool.arguments import Argument, checked, count, number
from statepool.checks import check_count, check_number, shown
from statepool.engine import simulate
from statepool.learners import StateEXP3
from statepool.model import Instance
from statepool.probes import StepProbe
from statepool.rates import largest_covered_rate
from statepool.stream import Seed

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
    "most_in_flight": count("Most outcomes outstanding at once.", lowest=0),
    "given_up": count("Number of rounds given up.", lowest=0),
    "log_actions": number("Mean over contexts of the logarithm of the number of actions.", 0, LARGEST),
    "dimension": number("Largest effective dimension of a policy.", 0, LARGEST),
    "caution": number("What is added to the probability of a state.", 0, LARGEST),
    "confidence": number("Probability with which the bound may be exceeded.", 0, LARGEST),
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
    cap = largest_covered_rate(delay)
    variance = 3.3 * budget + 2 * delay * horizon
    if rate is None:
        rate = min(cap, sqrt(2 * log(n_actions) / variance)) if variance > 0 else cap
    check_number(rate, "rate", 0, LARGEST, open_low=n_actions > 1)
    learning = log(n_actions) / rate if n_actions > 1 else 0.0
    return Guarantee(learning + rate / 2 * variance + delay, rate, rate <= cap)


@guarantee
def theorem_1_printed(n_actions: int, horizon: int, delay: int, budget: float) -> float:
    """Theorem 1 as the paper prints it, a closed form that is never below `theorem_1` at its best rate.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_1_printed(n_actions=200, horizon=20_000, delay=50, budget=30_000.0))
    5501
    """
    return sqrt(2 * (3.3 * budget + 2 * delay * horizon) * log(n_actions)) + e * (delay + 1) * log(n_actions) + delay


@dataclass(frozen=True)
class LowerBound:
    """A bound that no learner escapes.

    Attributes
    ----------
    value : float
        Expected regret of every learner on the construction.
    amplitude : float
        How far the construction moves the losses.
    scale : float
        The theorem's expression without its constant.
    """

    value: float
    amplitude: float
    scale: float


@guarantee
def theorem_2(horizon: int, delay: int, drift: float, n_drifting: int) -> LowerBound:
    """Theorem 2: the expected regret of every learner on the paper's construction with E2 <= `drift`, exactly.

    >>> import statepool as sp
    >>> round(sp.guarantees.theorem_2(horizon=20_000, delay=50, drift=50.0, n_drifting=6).value)
    32
    """
    check_count(delay, "delay")
    if 2 * delay > horizon:
        raise ValueError(f"delay: is {delay}, expected at most half the horizon, {horizon // 2}")
    check_number(drift, "drift", 0, horizon / 4)
    amplitude = sqrt(drift / horizon) / 2
    forced = amplitude * delay * expected_best_walk(horizon // delay - 1, n_drifting)
    return LowerBound(forced, amplitude, sqrt(delay * drift * min(1 + log(n_drifting), horizon / delay)))


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


@dataclass(frozen=True)
class BoundCheck:
    """A measured quantity and the bound on it.

    Attributes
    ----------
    measured : float
        What was measured.
    allowed : float
        The bound.
    """

    measured: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether the measured quantity is within the bound."""
        return self.measured <= self.allowed * (1 + 1e-12)


@guarantee
def drift_lemma(instance: Instance, delay: int, seed: Seed, rate: float | None = None) -> BoundCheck:
    """Largest one-round growth of any action's probability in a run, against 1 + 1/d.

    >>> import statepool as sp
    >>> sp.guarantees.drift_lemma(sp.families.band(seed=0, horizon=200), delay=5, seed=1).holds
    True
    """
    check_count(delay, "delay")
    probe = StepProbe(np.empty(instance.n_actions), np.ones(1))
    simulate(instance, StateEXP3(rate=rate), delay, seed).measure(probe)
    return BoundCheck(float(probe.largest[0]), 1 + 1 / delay)
