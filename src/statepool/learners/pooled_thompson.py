"""Pooled Thompson sampling: draw a mean for each state from its posterior, play the action best for that draw.

    theta(s) ~ Beta(1 + sum(s), 1 + count(s) - sum(s)),  argmin_a sum_s P(s|a) theta(s)

Ours, not the paper's. Its draws come from a second stream, so the first stays paired with the other arms. The
distribution it plays has no closed form: `play` reports the favourite of
the round's draw.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_number
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.best_state import draw_favourite, favourite_distribution
from statepool.learners.learner import Learner, Problem
from statepool.learners.pooled_means import PooledMeans, add_loss, start_means
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class PooledThompson(Learner):
    forgetting: float = 1.0
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)

    def start(self, problem: Problem) -> "ThompsonMemory":
        means = start_means(problem.n_states, self.forgetting)
        values, drawn = np.empty(problem.n_actions), np.zeros(1, np.int64)
        return ThompsonMemory(
            means, problem.columns, np.empty(problem.n_states), values, drawn, problem.stream.side_generator(),
            float(self.mixing),
        )  # fmt: skip


class ThompsonMemory(NamedTuple):
    means: PooledMeans
    columns: Floats
    guesses: Floats
    values: Floats
    drawn: Ints
    """The action that the round's draw of means favours."""
    generator: np.random.Generator
    mixing: float


def act(memory: Any, t: int, u: float) -> int:
    for s in range(memory.guesses.size):
        lost = memory.means.sums[s]
        memory.guesses[s] = memory.generator.beta(1.0 + lost, 1.0 + max(memory.means.counts[s] - lost, 0.0))
    combine(memory.columns, memory.guesses, memory.values)
    memory.drawn[0] = lowest_index(memory.values, TIE)
    return draw_favourite(memory.drawn[0], memory.values.size, memory.mixing, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    add_loss(memory.means, state, loss)


def play(memory: Any, t: int, out: Any) -> None:
    favourite_distribution(memory.drawn[0], memory.mixing, out)


add_rule(ThompsonMemory, act, observe, update, play)
