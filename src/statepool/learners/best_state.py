"""Best-state rule: find the state with the lowest mean loss, play the action most likely to reach it.

    .92 on that action, .08 spread evenly; a state not seen yet counts as 1/2

A heuristic: it never weighs a mixture of good states, and nothing in it notices when that is what the best
action offers.
Source: paper, Appendix E. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_number
from statepool.compiling import compiled
from statepool.kernels import lowest_index
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.maps import Maps, bar_values, draw_cumulative, spread_evenly
from statepool.learners.parts.pooled_means import carry_nothing, loss_and_count
from statepool.learners.sums import Sum, Sums, lay_out, start_clock

UNREACHABLE = 2.0


@dataclass(frozen=True)
class BestState(Learner):
    """Find the state with the lowest mean loss and play the action most likely to reach it.

    What optimising clicks amounts to; `exploration` is the share of uniform play.

    >>> import statepool as sp
    >>> sp.BestState()
    BestState(exploration=0.08)
    """

    exploration: float = 0.08
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.exploration, "exploration", 0, 1)

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        return Sum("losses", told_by="outcome"), Sum("counts", told_by="outcome")

    def start(self, problem: Problem) -> "BestStateMemory":
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        # Where requests differ or actions come and go, a state that no action leads to cannot be played for.
        choosy = problem.newcomers is not None or problem.maps.vary
        return BestStateMemory(
            sums, start_clock(), of["losses"][0], of["counts"][0], np.zeros(problem.n_states),
            problem.maps, np.zeros(1, np.int64), np.zeros(problem.n_actions), choosy, float(self.exploration),
        )  # fmt: skip


class BestStateMemory(NamedTuple):
    sums: Sums
    clock: Any
    losses: Floats
    counts: Floats
    means: Floats
    maps: Maps
    favourite: Ints
    room: Floats
    choosy: bool
    """Whether states that no action leads to are left out."""
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
    columns, means = memory.maps.columns[memory.maps.now[0]], memory.means
    for s in range(means.size):
        means[s] = memory.losses[s] / memory.counts[s] if memory.counts[s] > 0.0 else 0.5
        if memory.choosy and columns[s, _likeliest(memory, s)] == 0.0:
            means[s] = UNREACHABLE
    memory.favourite[0] = _likeliest(memory, lowest_index(means))


@compiled
def _likeliest(memory: Any, state: int) -> int:
    """The action that most often leads to a state, among those that may be played."""
    room, column = memory.room, memory.maps.columns[memory.maps.now[0]][state]
    for a in range(room.size):
        room[a] = -column[a]
    bar_values(memory.maps, room)
    return lowest_index(room)


def rest(memory: Any, out: Any) -> None:
    spread_evenly(memory.maps, memory.exploration, out)
    out[memory.favourite[0]] += 1.0 - memory.exploration


def pick(memory: Any, u: float) -> int:
    if memory.maps.barred.size == 0:
        return draw_favourite(memory.favourite[0], memory.room.size, memory.exploration, u)
    spread_evenly(memory.maps, memory.exploration, memory.room)
    memory.room[memory.favourite[0]] += 1.0 - memory.exploration
    return draw_cumulative(memory.room, u)


add_additive_rule(
    BestStateMemory, prepare=prepare, rest=rest, pick=pick, carry=carry_nothing, lesson=loss_and_count,
)  # fmt: skip
