"""Two learners that are handed the stale loss vector m_t = c_{t-d}, which Theorem 2 says is not enough.

    GreedyStale       plays argmin m_t, the first of equals
    OptimisticStale   action-level EXP3 that plays on L + m_t

Oracles, for simulation only. Source: paper, Appendix E, Experiment 3. Differs from the source: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, TIE, combine, lowest_index, mix_evenly, softmin
from statepool.learners.contract import Learner, Problem, add_rule, check_settings


class StaleVector(NamedTuple):
    theta: Floats
    direct: Floats
    delay: int
    out: Floats
    """m_t, by action."""


def start_vector(problem: Problem) -> StaleVector:
    """The oracle of an instance."""
    instance = problem.oracle()
    return StaleVector(instance.theta, instance.direct, problem.delay, np.empty(problem.n_actions))


@compiled
def _read_vector(vector: Any, rows: Any, t: int) -> None:
    """m_t into `out`, that of round 0 before there is one."""
    combine(rows.columns, vector.theta[max(t - vector.delay, 0)], vector.out)
    for a in range(vector.out.size):
        vector.out[a] += vector.direct[a]


@dataclass(frozen=True)
class GreedyStale(Learner):
    """An oracle: it is handed the losses of `delay` rounds ago and plays the best action by them.

    Parameters
    ----------
    mixing : float
        The share of uniform exploration.

    Examples
    --------
    >>> from statepool.learners.paper.stale_vector import GreedyStale
    >>> GreedyStale().reads_losses
    True
    """

    reads_losses: ClassVar[bool] = True
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(mixing=self.mixing)

    def start(self, problem: Problem) -> GreedyStaleMemory:
        return GreedyStaleMemory(start_vector(problem), float(self.mixing))


class GreedyStaleMemory(NamedTuple):
    vector: StaleVector
    mixing: float


@dataclass(frozen=True)
class OptimisticStale(Learner):
    """An oracle: exponential weights with the losses of `delay` rounds ago as a hint.

    Parameters
    ----------
    rate : float, optional
        The learning rate; None is the paper's default.
    mixing : float
        The share of uniform exploration.

    Examples
    --------
    >>> from statepool.learners.paper.stale_vector import OptimisticStale
    >>> OptimisticStale().reads_losses
    True
    """

    reads_losses: ClassVar[bool] = True
    rate: float | None = None
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)

    def start(self, problem: Problem) -> OptimisticStaleMemory:
        rate = problem.rate(self.rate, width=problem.n_actions)
        return OptimisticStaleMemory(start_vector(problem), np.zeros(problem.n_actions), rate, float(self.mixing))


class OptimisticStaleMemory(NamedTuple):
    vector: StaleVector
    losses: Floats
    """L: the cumulative loss estimates, by action."""
    rate: float
    mixing: float


def policy_greedy(memory: Any, rows: Any, t: int, out: Any) -> None:
    _read_vector(memory.vector, rows, t)
    out[:] = 0.0
    out[lowest_index(memory.vector.out, TIE)] = 1.0
    mix_evenly(memory.mixing, out)


def remember_nothing(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    pass


def learn_nothing(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    pass


def policy_optimistic(memory: Any, rows: Any, t: int, out: Any) -> None:
    _read_vector(memory.vector, rows, t)
    hoped = memory.vector.out
    for a in range(hoped.size):
        hoped[a] += memory.losses[a]
    softmin(hoped, memory.rate, out)
    mix_evenly(memory.mixing, out)


def remember_probability(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = policy[choice]


def learn_optimistic(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.action] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(GreedyStaleMemory, policy_greedy, remember_nothing, learn_nothing)
add_rule(OptimisticStaleMemory, policy_optimistic, remember_probability, learn_optimistic)
