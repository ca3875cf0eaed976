"""Cumulative loss estimates that are pooled through the state or, for comparison, of the action played alone.

pooled       G(s) += amount        x(a) ∝ exp(-rate · (P G)(a))
not pooled   L(A) += amount        x(a) ∝ exp(-rate · L(a))
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, combine, dot, softmin
from statepool.learners.contract import Problem


class Estimates(NamedTuple):
    losses: Floats
    """G by state, or L by action."""
    totals: Floats
    """Room for P G."""
    pooled: bool


def start_estimates(problem: Problem, pooled: bool) -> Estimates:
    """Nothing learnt: the uniform policy."""
    K = problem.n_actions
    return Estimates(np.zeros(problem.n_states if pooled else K), np.empty(K), pooled)


@compiled
def weigh(estimates: Any, columns: Any, rate: float, out: Any) -> None:
    """The policy, into `out`."""
    if estimates.pooled:
        combine(columns, estimates.losses, estimates.totals)
        softmin(estimates.totals, rate, out)
    else:
        softmin(estimates.losses, rate, out)


@compiled
def probability(estimates: Any, columns: Any, policy: Any, action: int, state: int) -> float:
    """What an outcome is divided by: the probability of the state, or of the action."""
    return dot(policy, columns[state]) if estimates.pooled else policy[action]


@compiled
def add_estimate(estimates: Any, action: int, state: int, amount: float) -> None:
    """An estimate of the state, or of the action."""
    estimates.losses[state if estimates.pooled else action] += min(amount, LARGEST_ESTIMATE)
