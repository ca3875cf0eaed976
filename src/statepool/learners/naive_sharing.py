"""Naive sharing: pooled like State-EXP3, but divided by how likely the state is under uniform play.

    L(a) += P(s|a) · X / mean_b P(s|b)

Biased as soon as play is not uniform: kept to show what the right denominator is worth.
Source: paper's baseline study. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.checks import Floats
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.weights import Weights, charge, distribution, draw, refresh, start_weights
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class NaiveSharing(Learner):
    rate: float | None = None
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)

    def start(self, problem: Problem) -> "NaiveMemory":
        rate = problem.rate(self.rate, width=problem.n_states)
        weights = start_weights(problem.n_actions, rate, self.mixing)
        return NaiveMemory(weights, problem.columns, problem.columns.mean(axis=1))


class NaiveMemory(NamedTuple):
    weights: Weights
    columns: Floats
    shares: Floats


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = memory.shares[state]


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    charge(memory.weights, 0, memory.columns[state], loss / ticket[0])


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(NaiveMemory, act, observe, update, play)
