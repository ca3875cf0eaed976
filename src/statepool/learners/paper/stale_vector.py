"""Two learners that are handed the stale loss vector m_t = c_{t-d}, which Theorem 2 says is not enough.

    GreedyStale       plays argmin m_t, the first of equals
    OptimisticStale   action-level EXP3 that plays on L + m_t

Oracles, for simulation only. Source: paper, Appendix E, Experiment 3. Differs from the source: nothing.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, TIE, combine, lowest_index, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class GreedyStaleMemory(NamedTuple):
    theta: Floats
    direct: Floats
    delay: int
    stale: Floats
    """m_t, by action."""


class OptimisticStaleMemory(NamedTuple):
    oracle: GreedyStaleMemory
    losses: Floats
    """L: the cumulative loss estimates, by action."""
    rate: float


@parts.settled
class GreedyStale(Learner):
    """An oracle: it is handed the losses of `delay` rounds ago and plays the best action by them.

    >>> import statepool as sp
    >>> sp.learners.GreedyStale().reads_losses
    True
    """

    reads_losses: ClassVar[bool] = True

    def start(self, problem: Problem) -> GreedyStaleMemory:
        instance = problem.oracle()
        return GreedyStaleMemory(instance.theta, instance.direct, problem.delay, np.empty(problem.n_actions))


@parts.settled
class OptimisticStale(Learner):
    """An oracle: exponential weights with the losses of `delay` rounds ago as a hint.

    >>> import statepool as sp
    >>> sp.learners.OptimisticStale().reads_losses
    True
    """

    rate: float | None = None
    reads_losses: ClassVar[bool] = True

    def start(self, problem: Problem) -> OptimisticStaleMemory:
        rate = problem.rate(self.rate, width=problem.n_actions)
        return OptimisticStaleMemory(GreedyStale().start(problem), np.zeros(problem.n_actions), rate)


@compiled
def _read_vector(oracle: Any, rows: Any, t: int) -> None:
    """m_t; that of round 0 before there is one."""
    combine(rows.columns, oracle.theta[max(t - oracle.delay, 0)], oracle.stale)
    for a in range(oracle.stale.size):
        oracle.stale[a] += oracle.direct[a]


def policy_greedy(memory: Any, rows: Any, t: int, out: Any) -> None:
    _read_vector(memory, rows, t)
    out[:] = 0.0
    out[lowest_index(memory.stale, TIE)] = 1.0


def policy_optimistic(memory: Any, rows: Any, t: int, out: Any) -> None:
    _read_vector(memory.oracle, rows, t)
    hoped = memory.oracle.stale
    for a in range(hoped.size):
        hoped[a] += memory.losses[a]
    softmin(hoped, memory.rate, out)


def learn_optimistic(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.action] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(GreedyStaleMemory, policy_greedy)
add_rule(OptimisticStaleMemory, policy_optimistic, parts.remember_action, learn_optimistic)
