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
from statepool.learners.additive import add_additive_rule
from statepool.learners.best_state import draw_favourite
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.pooled_means import carry_nothing, loss_and_count, mean_sums
from statepool.learners.sums import Sum, Sums, lay_out, start_clock


@dataclass(frozen=True)
class PooledThompson(Learner):
    tells_play: ClassVar[bool] = False
    forgetting: float = 1.0
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)

    def sums(self) -> tuple[Sum, ...]:
        return mean_sums(self.forgetting)

    def start(self, problem: Problem) -> "ThompsonMemory":
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        return ThompsonMemory(
            sums, start_clock(), of["losses"][0], of["counts"][0], problem.columns, np.empty(problem.n_states),
            np.empty(problem.n_actions), problem.stream.side_generator(), float(self.mixing),
        )  # fmt: skip


class ThompsonMemory(NamedTuple):
    sums: Sums
    clock: Any
    losses: Floats
    counts: Floats
    columns: Floats
    guesses: Floats
    values: Floats
    generator: np.random.Generator
    mixing: float


def prepare(memory: Any, t: int) -> None:
    for s in range(memory.guesses.size):
        lost = memory.losses[s]
        memory.guesses[s] = memory.generator.beta(1.0 + lost, 1.0 + max(memory.counts[s] - lost, 0.0))
    combine(memory.columns, memory.guesses, memory.values)


def pick(memory: Any, u: float) -> int:
    return draw_favourite(lowest_index(memory.values, TIE), memory.values.size, memory.mixing, u)


add_additive_rule(ThompsonMemory, prepare=prepare, rest=None, pick=pick, carry=carry_nothing, lesson=loss_and_count)
