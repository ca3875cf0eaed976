"""Pooled Thompson sampling: draw a mean for each state from its posterior, play the action best for that draw.

    theta(s) ~ Beta(1 + sum(s), 1 + count(s) - sum(s)),  argmin_a sum_s P(s|a) theta(s)

Ours, not the paper's. Its draws come from a second stream, so the first stays paired with the other arms. The
distribution it plays has no closed form, so it tells none.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats, check_number
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.best_state import draw_favourite
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.pooled_means import PooledMeans, add_loss, start_means
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class PooledThompson(Learner):
    tells_play: ClassVar[bool] = False
    forgetting: float = 1.0
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)

    def start(self, problem: Problem) -> "ThompsonMemory":
        means = start_means(problem.n_states, self.forgetting)
        guesses, values = np.empty(problem.n_states), np.empty(problem.n_actions)
        return ThompsonMemory(
            means, problem.columns, guesses, values, problem.stream.side_generator(), float(self.mixing)
        )


class ThompsonMemory(NamedTuple):
    means: PooledMeans
    columns: Floats
    guesses: Floats
    values: Floats
    generator: np.random.Generator
    mixing: float


def act(memory: Any, t: int, u: float) -> int:
    for s in range(memory.guesses.size):
        lost = memory.means.sums[s]
        memory.guesses[s] = memory.generator.beta(1.0 + lost, 1.0 + max(memory.means.counts[s] - lost, 0.0))
    combine(memory.columns, memory.guesses, memory.values)
    return draw_favourite(lowest_index(memory.values, TIE), memory.values.size, memory.mixing, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    add_loss(memory.means, state, loss)


add_rule(ThompsonMemory, act, observe, update, None)
