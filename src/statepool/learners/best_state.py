"""Best-state rule: find the state with the lowest mean loss, play the action most likely to reach it.

    .92 on that action, .08 spread evenly; a state not seen yet counts as 1/2

A heuristic: it never weighs a mixture of good states, and nothing in it notices when that is what the best
action offers.
Source: paper, Appendix E. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_number
from statepool.compiling import compiled
from statepool.kernels import lowest_index
from statepool.learners.learner import Learner, Problem
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class BestState(Learner):
    exploration: float = 0.08

    def __post_init__(self) -> None:
        check_number(self.exploration, "exploration", 0, 1)

    def start(self, problem: Problem) -> "BestStateMemory":
        means = np.full(problem.n_states, 0.5)
        likeliest = problem.columns.argmax(axis=1)
        return BestStateMemory(
            np.zeros(problem.n_states),
            np.zeros(problem.n_states),
            means,
            likeliest,
            problem.n_actions,
            float(self.exploration),
        )


class BestStateMemory(NamedTuple):
    sums: Floats
    counts: Floats
    means: Floats
    likeliest: Ints
    n_actions: int
    exploration: float


@compiled
def draw_favourite(favourite: int, n_actions: int, exploration: float, u: float) -> int:
    """The first action whose cumulative probability reaches u: `exploration` spread evenly, the rest on one."""
    share = exploration / n_actions
    if u < share * favourite:
        return min(int(u / share), favourite - 1)
    beyond = u - (1.0 - exploration) - share * (favourite + 1)
    if beyond <= 0.0 or share == 0.0:
        return favourite
    return min(favourite + 1 + int(beyond / share), n_actions - 1)


@compiled
def favourite_distribution(favourite: int, exploration: float, out: Any) -> None:
    """The distribution that `draw_favourite` draws from."""
    out[:] = exploration / out.size
    out[favourite] += 1.0 - exploration


def act(memory: Any, t: int, u: float) -> int:
    favourite = memory.likeliest[lowest_index(memory.means)]
    return draw_favourite(favourite, memory.n_actions, memory.exploration, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    memory.sums[state] += loss
    memory.counts[state] += 1.0
    memory.means[state] = memory.sums[state] / memory.counts[state]


def play(memory: Any, t: int, out: Any) -> None:
    favourite_distribution(memory.likeliest[lowest_index(memory.means)], memory.exploration, out)


add_rule(BestStateMemory, act, observe, update, play)
