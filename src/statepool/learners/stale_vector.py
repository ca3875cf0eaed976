"""Two learners that are handed the stale loss vector m_t = c_{t-d}, which Theorem 2 says is not enough.

    GreedyStale       plays argmin m_t, the first of equals
    OptimisticStale   action-level EXP3 that plays on L + m_t

Oracles, for simulation only. Source: paper, Appendix E, Experiment 3. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_CHARGE, TIE, combine, lowest_index
from statepool.learners.best_state import draw_favourite, favourite_distribution
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.weights import Weights, distribution, draw, probability, reweigh, start_weights
from statepool.learners.rules import add_rule


class StaleVector(NamedTuple):
    columns: Floats
    theta: Floats
    direct: Floats
    delay: int
    out: Floats


def start_vector(problem: Problem) -> StaleVector:
    """The oracle of an instance."""
    instance = problem.oracle()
    out = np.empty(problem.n_actions)
    return StaleVector(problem.columns, instance.theta, instance.direct, problem.delay, out)


@compiled
def read_vector(vector: Any, t: int) -> None:
    """m_t into `out`, that of round 0 before there is one."""
    combine(vector.columns, vector.theta[max(t - vector.delay, 0)], vector.out)
    for a in range(vector.out.size):
        vector.out[a] += vector.direct[a]


@dataclass(frozen=True)
class GreedyStale(Learner):
    """An oracle: it is handed the losses of `delay` rounds ago and plays the best action by them.

    >>> import statepool as sp
    >>> sp.GreedyStale().reads_losses
    True
    """

    reads_losses: ClassVar[bool] = True
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(mixing=self.mixing)

    def start(self, problem: Problem) -> "GreedyStaleMemory":
        return GreedyStaleMemory(start_vector(problem), float(self.mixing))


class GreedyStaleMemory(NamedTuple):
    vector: StaleVector
    mixing: float


@dataclass(frozen=True)
class OptimisticStale(Learner):
    """An oracle: exponential weights with the losses of `delay` rounds ago as a hint.

    >>> import statepool as sp
    >>> sp.OptimisticStale().reads_losses
    True
    """

    reads_losses: ClassVar[bool] = True
    rate: float | None = None
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)

    def start(self, problem: Problem) -> "OptimisticStaleMemory":
        rate = problem.rate(self.rate, width=problem.n_actions)
        return OptimisticStaleMemory(start_vector(problem), start_weights(problem.n_actions, rate, self.mixing))


class OptimisticStaleMemory(NamedTuple):
    vector: StaleVector
    weights: Weights


def act_greedy(memory: Any, t: int, u: float) -> int:
    read_vector(memory.vector, t)
    return draw_favourite(lowest_index(memory.vector.out, TIE), memory.vector.out.size, memory.mixing, u)


def ignore_state(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def ignore_loss(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    pass


def play_greedy(memory: Any, t: int, out: Any) -> None:
    read_vector(memory.vector, t)
    favourite_distribution(lowest_index(memory.vector.out, TIE), memory.mixing, out)


def act_optimistic(memory: Any, t: int, u: float) -> int:
    read_vector(memory.vector, t)
    hoped = memory.vector.out
    for a in range(hoped.size):
        hoped[a] += memory.weights.totals[0, a]
    reweigh(memory.weights, 0, hoped)
    return draw(memory.weights, 0, u)


def observe_optimistic(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = probability(memory.weights, 0, action)


def update_optimistic(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    memory.weights.totals[0, action] += min(loss / ticket[0], LARGEST_CHARGE)


def play_optimistic(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(GreedyStaleMemory, act_greedy, ignore_state, ignore_loss, play_greedy)
add_rule(OptimisticStaleMemory, act_optimistic, observe_optimistic, update_optimistic, play_optimistic)
