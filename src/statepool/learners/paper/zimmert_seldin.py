"""Zimmert–Seldin hybrid FTRL: the rate-optimal delayed bandit that cannot see the state.

    x = argmin <x, L> - B_t sum sqrt(x) + (1/rate_t) sum x log x        L(A) += X / x(A)

    tuning       B_t                     1/rate_t
    "fixed"      sqrt(t + 1 + t0)        sqrt(max(d, 1) T / log K) / scale        t0 = 64 d² with `shift`, else 0
    "anytime"    2 sqrt(t + 1)           sqrt(2 D_t / log K), 0 while D_t = 0

D_t sums what was outstanding in the rounds so far (`parts.Outstanding`); only "fixed" knows d.

The solver works in y = 1/sqrt(x). Stationarity reads F(y_a) = L_a + mu with F(y) = B y/2 + (2/rate) log y, and mu is
set by sum 1/y² = 1. Newton's method on all y and mu at once, started from the last
round's solution, and stopped when the residual before a step is below `SMALL_RESIDUAL`, so that after it
(convergence is quadratic) it is at rounding level.

Source: Zimmert & Seldin 2020. "fixed" is the seed paper's released study 16, with its scale and shift; it is neither
anytime nor at the source's factor of 2, which "anytime" has. Its guarantee, recalled: 4 sqrt(KT) + sqrt(8 D log K).
"""

from math import log as natural_log
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled, compiled_reassociated
from statepool.kernels import LARGEST_ESTIMATE, log
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule

SOLUTION = np.dtype([("mu", "f8"), ("strength", "f8"), ("inverse_rate", "f8")], align=True)

SMALL_RESIDUAL = 1e-7
_MOST_STEPS = 100


class HybridMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    roots: Floats
    """y = 1/sqrt(x)."""
    residuals: Floats
    slopes: Floats
    solution: Any
    """One record of SOLUTION: mu, B and 1/rate of the last round."""
    outstanding: parts.Outstanding
    follows: bool
    """Whether 1/rate follows what is outstanding."""
    offset: float
    """t0."""


@parts.settled
class ZimmertSeldin(Learner):
    """Hybrid FTRL: the rate-optimal delayed bandit that cannot see the state.

    >>> import statepool as sp
    >>> sp.learners.ZimmertSeldin(tuning="anytime").tuning
    'anytime'
    """

    scale: float = 1.0
    shift: bool = False
    tuning: str = "fixed"

    def start(self, problem: Problem) -> HybridMemory:
        K = problem.n_actions
        solution = np.zeros(1, SOLUTION)
        solution["strength"] = 1.0
        follows = self.tuning != "fixed"
        if not follows:
            rate = float(self.scale) * sqrt(natural_log(K) / (max(problem.delay, 1) * problem.known_horizon()))
            solution["inverse_rate"] = 1 / rate if rate > 0 else 0.0
        return HybridMemory(
            np.zeros(K), np.full(K, sqrt(K)), np.empty(K), np.empty(K), solution,
            parts.start_outstanding(problem), follows, 64.0 * problem.delay**2 if self.shift else 0.0,
        )  # fmt: skip


@compiled_reassociated
def _linearise(memory: Any, B: float) -> tuple[float, float, float, float]:
    """Residuals and slopes of every action, and the sums that Newton's step for mu needs."""
    mu, inverse_rate = memory.solution[0].mu, memory.solution[0].inverse_rate
    for a in range(memory.roots.size):
        y = memory.roots[a]
        memory.residuals[a] = 0.5 * B * y + 2.0 * inverse_rate * log(y) - memory.totals[a] - mu
        memory.slopes[a] = 1.0 / (0.5 * B + 2.0 * inverse_rate / y)
    # Summed apart from what is written, as in `softmin`.
    mass = pull = weight = worst = 0.0
    for a in range(memory.roots.size):
        inverse, residual, step = 1.0 / memory.roots[a], memory.residuals[a], memory.slopes[a]
        x = inverse * inverse
        mass += x
        pull += x * inverse * step * residual
        weight += x * inverse * step
        worst += abs(residual * step * inverse)
    return mass, pull, weight, worst


@compiled
def _step(memory: Any, change: float) -> None:
    for a in range(memory.roots.size):
        y = memory.roots[a] + (change - memory.residuals[a]) * memory.slopes[a]
        # A step to the other side of zero overshot: halve instead. x <= 1 means y >= 1.
        memory.roots[a] = max(y, 0.5 * memory.roots[a])


@compiled
def _solve(memory: Any, B: float) -> None:
    for _ in range(_MOST_STEPS):
        mass, pull, weight, worst = _linearise(memory, B)
        change = (0.5 * (mass - 1.0) + pull) / weight
        memory.solution[0].mu += change
        _step(memory, change)
        if worst + abs(mass - 1.0) < SMALL_RESIDUAL:
            break


@compiled
def _settle(memory: Any, action: int, B: float) -> None:
    """Bring one action's root to its new total with mu held: the jump is large, the others' are small."""
    y, inverse_rate = memory.roots[action], memory.solution[0].inverse_rate
    goal = memory.totals[action] + memory.solution[0].mu
    for _ in range(_MOST_STEPS):
        gap = goal - 0.5 * B * y - 2.0 * inverse_rate * log(y)
        move = gap / (0.5 * B + 2.0 * inverse_rate / y)
        y = max(y + move, 0.5 * y)
        if abs(move) < 1e-9 * y:
            break
    memory.roots[action] = y


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    solution = memory.solution[0]
    parts.begin_round(memory.outstanding, t)
    solution.strength = np.sqrt(t + 1.0 + memory.offset)
    if memory.follows:
        solution.strength *= 2.0
        waited = memory.outstanding.tally[0].waited
        solution.inverse_rate = np.sqrt(2.0 * waited / memory.outstanding.log_actions)
    _solve(memory, solution.strength)
    total = 0.0
    for a in range(out.size):
        out[a] = 1.0 / (memory.roots[a] * memory.roots[a])
        total += out[a]
    for a in range(out.size):
        out[a] /= total


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if parts.count_arrival(memory.outstanding, played.t) and loss > 0.0:
        memory.totals[played.action] += min(loss / saved[0], LARGEST_ESTIMATE)
        _settle(memory, played.action, memory.solution[0].strength)


add_rule(HybridMemory, policy, parts.remember_action, learn, parts.see_round)
