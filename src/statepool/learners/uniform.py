"""Uniform play: the regret of learning nothing."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.maps import Maps, draw_evenly, spread_evenly
from statepool.learners.sums import Sum, Sums, lay_out, start_clock


@dataclass(frozen=True)
class Uniform(Learner):
    """Every action alike, for ever: the regret of learning nothing.

    >>> import statepool as sp
    >>> sp.Uniform()
    Uniform()
    """

    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        return ()

    def start(self, problem: Problem) -> "UniformMemory":
        return UniformMemory(lay_out(self.sums(), 0, 0).sums, start_clock(), problem.maps, np.empty(problem.n_actions))


class UniformMemory(NamedTuple):
    sums: Sums
    clock: Any
    maps: Maps
    room: Floats


def prepare(memory: Any, t: int) -> None:
    pass


def rest(memory: Any, out: Any) -> None:
    spread_evenly(memory.maps, 1.0, out)


def pick(memory: Any, u: float) -> int:
    return draw_evenly(memory.maps, u, memory.room)


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    pass


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    pass


add_additive_rule(UniformMemory, prepare=prepare, rest=rest, pick=pick, carry=carry, lesson=lesson)
