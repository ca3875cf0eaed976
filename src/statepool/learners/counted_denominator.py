"""Counted denominator: freeze the play for a block, count states in its first half, pool in its second.

Does dividing by a state's counted frequency beat dividing by the predicted x·P_hat? First half: action-level
updates. Second half: plug-in numerators over either denominator. Outcomes go on being charged; the play follows
at the next block.
Source: the paper's released study 5. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, check_count, check_name, check_number
from statepool.compiling import compiled
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.map_counts import MapCounts, count_pair, estimate_column, start_counts
from statepool.learners.parts.weights import (
    Weights,
    charge,
    distribution,
    draw,
    probability,
    reach,
    refresh,
    start_weights,
)
from statepool.learners.rules import add_rule

_SMALLEST_FREQUENCY = 1e-6


@dataclass(frozen=True)
class CountedDenominator(Learner):
    """Freeze the play for a block, count states in its first half, pool in its second.

    `denominator` is "counted" or "predicted"; `block` the rounds of a block; `smoothing` is added to counts.

    >>> import statepool as sp
    >>> sp.CountedDenominator(block=200).block
    200
    """

    denominator: str = "counted"
    block: int = 400
    smoothing: float = 0.01
    mixing: float = 0.0
    rate: float | None = None

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)
        check_count(self.block, "block", lowest=2)
        check_number(self.smoothing, "smoothing", 0, 1e9, open_low=True)
        check_name("denominator", self.denominator, ("counted", "predicted"))

    def ticket_width(self, problem: Problem) -> int:
        return problem.n_actions

    def start(self, problem: Problem) -> "CountedMemory":
        rate = problem.rate(self.rate, width=problem.n_states)
        return CountedMemory(
            start_weights(problem.n_actions, rate, self.mixing),
            start_counts(problem.n_actions, problem.n_states, self.smoothing),
            np.zeros(problem.n_states), self.block, self.denominator == "counted",
        )  # fmt: skip


class CountedMemory(NamedTuple):
    weights: Weights
    counts: MapCounts
    seen: Floats
    """How often each state was seen in the first half of this block."""
    block: int
    counted: bool


@compiled
def denominator_of(memory: Any, state: int, column: Any) -> float:
    """What the second half divides by, for a state whose estimated column is given."""
    if memory.counted:
        return max(memory.seen[state] / (memory.block // 2), _SMALLEST_FREQUENCY)
    return reach(memory.weights, 0, column)


def act(memory: Any, t: int, u: float) -> int:
    if t % memory.block == 0:
        refresh(memory.weights, 0)
        memory.seen[:] = 0.0
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    if t % memory.block < memory.block // 2:
        ticket[:] = 0.0
        ticket[action] = 1.0 / probability(memory.weights, 0, action)
        memory.seen[state] += 1.0
    else:
        estimate_column(memory.counts, state, ticket)
        ticket /= denominator_of(memory, state, ticket)
    count_pair(memory.counts, action, state)


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    charge(memory.weights, 0, ticket, loss)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(CountedMemory, act, observe, update, play)
