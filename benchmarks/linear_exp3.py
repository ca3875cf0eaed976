"""Action-level EXP3 without the sum tree: every weight again in every round that changed one.

Made of the package's own vectorised primitives, so that the tree alone is the difference.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.kernels import LARGEST_CHARGE
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.weights import Weights, distribution, draw, probability, refresh, start_weights
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class LinearEXP3(Learner):
    rate: float | None = None

    def start(self, problem: Problem) -> "LinearMemory":
        rate = problem.rate(self.rate, width=problem.n_actions)
        return LinearMemory(start_weights(problem.n_actions, rate))


class LinearMemory(NamedTuple):
    weights: Weights


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = probability(memory.weights, 0, action)


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    if loss > 0.0:
        memory.weights.totals[0, action] += min(loss / ticket[0], LARGEST_CHARGE)
        memory.weights.changed[0] = True


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(LinearMemory, act, observe, update, play)
