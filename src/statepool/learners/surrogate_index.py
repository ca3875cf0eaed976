"""SurrogateIndex: learn once what each state is worth, then trust that for ever.

    until `history` outcomes have come   play uniformly
    then                                 freeze h(s) = mean loss of the state (1/2 where none came), and run EXP3 that
                                         charges h(s) at once: L(a) += P(s|a) · h(s)/q(s), or, not pooled, h(s)/x(A)

Source: Athey et al. 2019 (the surrogate index), recalled; as a bandit it is ours. It shows what a frozen proxy costs:
regret <= history + d + EXP3's without delay + 2 sum_t max_s |theta_t(s) - h(s)|, linear where means move.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, check_count
from statepool.compiling import compiled
from statepool.learners.learner import Learner, Problem, check_flag, check_settings
from statepool.learners.parts.weights import (
    Weights,
    charge,
    charge_action,
    distribution,
    draw,
    probability,
    reach,
    refresh,
    start_weights,
)
from statepool.learners.rules import add_rule
from statepool.rates import default_rate


@dataclass(frozen=True)
class SurrogateIndex(Learner):
    """Play uniformly until `history` outcomes have come, then trust for ever what each state cost in them.

    >>> import statepool as sp
    >>> sp.SurrogateIndex(history=100).history
    100
    """

    history: int = 200
    pooled: bool = True
    rate: float | None = None

    def __post_init__(self) -> None:
        check_count(self.history, "history")
        check_flag(self.pooled, "pooled")
        check_settings(self.rate)

    def start(self, problem: Problem) -> "SurrogateMemory":
        K, S = problem.n_actions, problem.n_states
        rate = self.rate
        if rate is None:  # charges come at once, whatever the delay
            rate = default_rate(K, S if self.pooled else K, problem.known_horizon(), 0)
        return SurrogateMemory(
            start_weights(K, rate), problem.columns, np.zeros(S), np.zeros(S), np.full(S, 0.5), np.zeros(1, np.int64),
            self.history, self.pooled,
        )  # fmt: skip


class SurrogateMemory(NamedTuple):
    weights: Weights
    columns: Floats
    sums: Floats
    counts: Floats
    proxy: Floats
    """h, once it is frozen."""
    come: Any
    """How many outcomes have come."""
    history: int
    pooled: bool


@compiled
def freeze(memory: Any) -> None:
    """The index from the outcomes so far."""
    for s in range(memory.proxy.size):
        if memory.counts[s] > 0.0:
            memory.proxy[s] = memory.sums[s] / memory.counts[s]


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    if memory.come[0] < memory.history:
        return
    if memory.pooled:
        column = memory.columns[state]
        charge(memory.weights, 0, column, memory.proxy[state] / reach(memory.weights, 0, column))
    else:
        charge_action(memory.weights, 0, action, memory.proxy[state] / probability(memory.weights, 0, action))


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    if memory.come[0] < memory.history:
        memory.sums[state] += loss
        memory.counts[state] += 1.0
        memory.come[0] += 1
        if memory.come[0] == memory.history:
            freeze(memory)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(SurrogateMemory, act, observe, update, play)
