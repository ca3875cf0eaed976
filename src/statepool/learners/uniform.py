"""Uniform play: the regret of learning nothing."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.compiling import compiled
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.sums import Sum, Sums, lay_out, start_clock


@dataclass(frozen=True)
class Uniform(Learner):
    def sums(self) -> tuple[Sum, ...]:
        return ()

    def start(self, problem: Problem) -> "UniformMemory":
        return UniformMemory(lay_out(self.sums(), 0, 0).sums, start_clock(), problem.n_actions)


class UniformMemory(NamedTuple):
    sums: Sums
    clock: Any
    n_actions: int


def prepare(memory: Any, t: int) -> None:
    pass


def rest(memory: Any, out: Any) -> None:
    out[:] = 1.0 / memory.n_actions


def pick(memory: Any, u: float) -> int:
    return min(int(u * memory.n_actions), memory.n_actions - 1)


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    pass


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    pass


add_additive_rule(UniformMemory, prepare=prepare, rest=rest, pick=pick, carry=carry, lesson=lesson)
