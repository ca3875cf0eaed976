"""Pooled greedy: play the action that looks best by the mean loss of each state.

    argmin_a sum_s P(s|a) (sum(s) + 1)/(count(s) + 2)        exploring uniformly with probability `exploration`

The first thing a practitioner would try; ours, not the paper's. The play is the first of equals (up to rounding).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_number
from statepool.compiling import compiled
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.best_state import favourite_distribution
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.pooled_means import PooledMeans, add_loss, start_means
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class PooledGreedy(Learner):
    forgetting: float = 1.0
    exploration: float = 0.0

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.exploration, "exploration", 0, 1)

    def start(self, problem: Problem) -> "GreedyMemory":
        means = start_means(problem.n_states, self.forgetting)
        values = np.empty(problem.n_actions)
        best = np.array([-1])
        return GreedyMemory(means, problem.columns, np.empty(problem.n_states), values, best, float(self.exploration))


class GreedyMemory(NamedTuple):
    means: PooledMeans
    columns: Floats
    guesses: Floats
    values: Floats
    best: Ints
    """The greedy action, -1 when an outcome has come since it was found."""
    exploration: float


@compiled
def greedy_action(memory: Any) -> int:
    """The action with the lowest estimated loss."""
    if memory.best[0] < 0:
        for s in range(memory.guesses.size):
            memory.guesses[s] = (memory.means.sums[s] + 1.0) / (memory.means.counts[s] + 2.0)
        combine(memory.columns, memory.guesses, memory.values)
        memory.best[0] = lowest_index(memory.values, TIE)
    return memory.best[0]


def act(memory: Any, t: int, u: float) -> int:
    if u < memory.exploration:
        return min(int(u / memory.exploration * memory.values.size), memory.values.size - 1)
    return greedy_action(memory)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    add_loss(memory.means, state, loss)
    memory.best[0] = -1


def play(memory: Any, t: int, out: Any) -> None:
    favourite_distribution(greedy_action(memory), memory.exploration, out)


add_rule(GreedyMemory, act, observe, update, play)
