"""Zimmert–Seldin hybrid FTRL: the rate-optimal delayed bandit that cannot see the state.

    x = argmin <x, L> - sqrt(t + 1 + t0) sum sqrt(x) + (1/rate) sum x log x        L(A) += X / x(A)

`rate` = scale · sqrt(log K / (max(d, 1) T)); t0 = 64 d² with `shift`, else 0.

The solver works in y = 1/sqrt(x). Stationarity reads F(y_a) = L_a + mu with F(y) = B y/2 + (2/rate) log y, B =
sqrt(t + 1 + t0), and mu is set by sum 1/y² = 1. Newton's method on all y and mu at once, started from the last
round's solution, and stopped when the residual before a step is below `SMALL_RESIDUAL`, so that after it
(convergence is quadratic) it is at rounding level.

Source: Zimmert & Seldin 2020; scale and shift as in the paper's released study 16.
Differs from the source: nothing but the
solver.
"""

from dataclasses import dataclass
from math import log as natural_log
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, check_number
from statepool.compiling import compiled, compiled_reassociated
from statepool.kernels import BLOCK, LARGEST_CHARGE, block_sums, draw_blocked, log
from statepool.learners.learner import Learner, Problem
from statepool.learners.rules import add_rule

SMALL_RESIDUAL = 1e-7
_MOST_STEPS = 100


@dataclass(frozen=True)
class ZimmertSeldin(Learner):
    scale: float = 1.0
    shift: bool = False
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_number(self.scale, "scale", 0, 1e9, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)

    def start(self, problem: Problem) -> "HybridMemory":
        K, d = problem.n_actions, problem.delay
        rate = float(self.scale) * sqrt(natural_log(K) / (max(d, 1) * problem.known_horizon()))
        return HybridMemory(
            np.zeros(K), np.full(K, sqrt(K)), np.full(K, 1 / K), np.empty(K), np.empty(K),
            np.empty(-(-K // BLOCK)), np.array([0.0, 1.0, 1.0]), 1 / rate if rate > 0 else 0.0,
            64.0 * d**2 if self.shift else 0.0, float(self.mixing),
        )  # fmt: skip


class HybridMemory(NamedTuple):
    totals: Floats
    roots: Floats
    """y = 1/sqrt(x)."""
    weights: Floats
    residuals: Floats
    slopes: Floats
    blocks: Floats
    scalars: Floats
    """mu, the sum of the weights, and the last round's B."""
    inverse_rate: float
    offset: float
    mixing: float


@compiled_reassociated
def _linearise(memory: Any, B: float) -> tuple[float, float, float, float]:
    """Residuals and slopes of every action, and the sums that Newton's step for mu needs."""
    mu = memory.scalars[0]
    mass = pull = weight = worst = 0.0
    for a in range(memory.roots.size):
        y = memory.roots[a]
        inverse = 1.0 / y
        residual = 0.5 * B * y + 2.0 * memory.inverse_rate * log(y) - memory.totals[a] - mu
        step = 1.0 / (0.5 * B + 2.0 * memory.inverse_rate * inverse)
        x = inverse * inverse
        memory.residuals[a] = residual
        memory.slopes[a] = step
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
        memory.scalars[0] += change
        _step(memory, change)
        if worst + abs(mass - 1.0) < SMALL_RESIDUAL:
            break


@compiled
def _settle(memory: Any, action: int, B: float) -> None:
    """Bring one action's root to its new total with mu held: the jump is large, the others' are small."""
    y = memory.roots[action]
    goal = memory.totals[action] + memory.scalars[0]
    for _ in range(_MOST_STEPS):
        gap = goal - 0.5 * B * y - 2.0 * memory.inverse_rate * log(y)
        move = gap / (0.5 * B + 2.0 * memory.inverse_rate / y)
        y = max(y + move, 0.5 * y)
        if abs(move) < 1e-9 * y:
            break
    memory.roots[action] = y


def act(memory: Any, t: int, u: float) -> int:
    memory.scalars[2] = np.sqrt(t + 1.0 + memory.offset)
    _solve(memory, memory.scalars[2])
    for a in range(memory.roots.size):
        memory.weights[a] = 1.0 / (memory.roots[a] * memory.roots[a])
    total = block_sums(memory.weights, memory.blocks)
    if memory.mixing > 0.0:
        for a in range(memory.weights.size):
            memory.weights[a] *= 1.0 - memory.mixing
            memory.weights[a] += memory.mixing * total / memory.weights.size
        total = block_sums(memory.weights, memory.blocks)
    memory.scalars[1] = total
    return draw_blocked(memory.weights, memory.blocks, u * total)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = memory.weights[action] / memory.scalars[1]


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    if loss > 0.0:
        memory.totals[action] += min(loss / ticket[0], LARGEST_CHARGE)
        _settle(memory, action, memory.scalars[2])


def play(memory: Any, t: int, out: Any) -> None:
    for a in range(out.size):
        out[a] = memory.weights[a] / memory.scalars[1]


add_rule(HybridMemory, act, observe, update, play)
