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
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.pooled_means import carry_nothing, loss_and_count
from statepool.learners.sums import Sum, Sums, lay_out, start_clock

UNREACHABLE = 2.0


@dataclass(frozen=True)
class BestState(Learner):
    exploration: float = 0.08

    def __post_init__(self) -> None:
        check_number(self.exploration, "exploration", 0, 1)

    def sums(self) -> tuple[Sum, ...]:
        return Sum("losses", told_by="outcome"), Sum("counts", told_by="outcome")

    def start(self, problem: Problem) -> "BestStateMemory":
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        # Where actions come and go, a state that no action leads to any more cannot be played for.
        lost = (problem.columns.max(axis=1) == 0) & (problem.newcomers is not None)
        unseen = np.where(lost, UNREACHABLE, 0.5)
        return BestStateMemory(
            sums, start_clock(), of["losses"][0], of["counts"][0], unseen, np.zeros(problem.n_states),
            problem.columns.argmax(axis=1), np.zeros(1, np.int64), problem.n_actions, float(self.exploration),
        )  # fmt: skip


class BestStateMemory(NamedTuple):
    sums: Sums
    clock: Any
    losses: Floats
    counts: Floats
    unseen: Floats
    """What counts as the mean of a state before it was seen."""
    means: Floats
    likeliest: Ints
    favourite: Ints
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


def prepare(memory: Any, t: int) -> None:
    for s in range(memory.means.size):
        seen = memory.counts[s] > 0.0 and memory.unseen[s] < UNREACHABLE
        memory.means[s] = memory.losses[s] / memory.counts[s] if seen else memory.unseen[s]
    memory.favourite[0] = memory.likeliest[lowest_index(memory.means)]


def rest(memory: Any, out: Any) -> None:
    favourite_distribution(memory.favourite[0], memory.exploration, out)


def pick(memory: Any, u: float) -> int:
    return draw_favourite(memory.favourite[0], memory.n_actions, memory.exploration, u)


add_additive_rule(BestStateMemory, prepare=prepare, rest=rest, pick=pick, carry=carry_nothing, lesson=loss_and_count)
