"""Uniform play: the regret of learning nothing."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.learners.learner import Learner, Problem
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class Uniform(Learner):
    def start(self, problem: Problem) -> "UniformMemory":
        return UniformMemory(problem.n_actions)


class UniformMemory(NamedTuple):
    n_actions: int


def act(memory: Any, t: int, u: float) -> int:
    return min(int(u * memory.n_actions), memory.n_actions - 1)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    pass


def play(memory: Any, t: int, out: Any) -> None:
    out[:] = 1.0 / memory.n_actions


add_rule(UniformMemory, act, observe, update, play)
