"""Pooled greedy: play the action that looks best by the mean loss of each state.

    argmin_a sum_s P(s|a) (sum(s) + 1)/(count(s) + 2)        exploring uniformly with probability `exploration`

The first thing a practitioner would try; ours, not the paper's. The play is the first of equals (up to rounding).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_number
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.maps import Maps, bar_values, draw_evenly, spread_evenly
from statepool.learners.parts.pooled_means import carry_nothing, loss_and_count, mean_sums
from statepool.learners.sums import Sum, Sums, lay_out, start_clock


@dataclass(frozen=True)
class PooledGreedy(Learner):
    """Play the action that looks best by the mean loss of each state: the first thing one would try.

    argmin_a sum_s P(s|a) (sum(s) + 1)/(count(s) + 2); `forgetting` is what a round keeps of the past, `exploration` the
    share of uniform play.

    >>> import statepool as sp
    >>> sp.PooledGreedy(exploration=0.05)
    PooledGreedy(forgetting=1.0, exploration=0.05)
    """

    forgetting: float = 1.0
    exploration: float = 0.0
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.exploration, "exploration", 0, 1)

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        return mean_sums(self.forgetting)

    def start(self, problem: Problem) -> "GreedyMemory":
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        return GreedyMemory(
            sums, start_clock(), of["losses"][0], of["counts"][0], problem.maps, np.empty(problem.n_states),
            np.empty(problem.n_actions), np.array([-1]), float(self.exploration),
        )  # fmt: skip


class GreedyMemory(NamedTuple):
    sums: Sums
    clock: Any
    losses: Floats
    counts: Floats
    maps: Maps
    guesses: Floats
    values: Floats
    best: Ints
    """The greedy action, -1 when the sums have changed since it was found."""
    exploration: float


def prepare(memory: Any, t: int) -> None:
    if memory.best[0] >= 0 and memory.sums.fading.size == 0:
        return
    for s in range(memory.guesses.size):
        memory.guesses[s] = (memory.losses[s] + 1.0) / (memory.counts[s] + 2.0)
    combine(memory.maps.columns[memory.maps.now[0]], memory.guesses, memory.values)
    bar_values(memory.maps, memory.values)
    memory.best[0] = lowest_index(memory.values, TIE)


def lead(memory: Any) -> tuple[int, float]:
    return memory.best[0], 1.0 - memory.exploration


def rest(memory: Any, out: Any) -> None:
    spread_evenly(memory.maps, 1.0, out)


def pick(memory: Any, u: float) -> int:
    if u < 1.0 - memory.exploration:
        return memory.best[0]
    beyond = (u - (1.0 - memory.exploration)) / memory.exploration
    return draw_evenly(memory.maps, beyond, memory.values)  # which `prepare` fills anew where some are barred


def absorb(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    memory.best[0] = -1


def forget_best(memory: Any) -> None:
    memory.best[0] = -1


add_additive_rule(
    GreedyMemory, prepare=prepare, lead=lead, rest=rest, pick=pick, carry=carry_nothing, lesson=loss_and_count,
    absorb=absorb, read_rows=forget_best, rebuild=forget_best,
)  # fmt: skip
