"""Evolving: charge a guess from the state at once, and correct it when the outcome comes.

    at once      L(a) += P(s|a) · h(s) / q(s)              h(s) = (sum(s) + 1)/(count(s) + 2) of the outcomes so far
    on arrival   L(a) += P(s|a) · (X - h(s)) / q(s)        h, q as of the round played

Source: Bar-On & Mansour 2025, abstract only, in a form of two steps: the state is the only observation before the
outcome. Their bound, of the order of sqrt(KT + d Lambda2), is for exact losses at the action level; pooled it is not
proved, since taking back a guess has no bound on one side. With no delay a guess cancels before the next action and
this is State-EXP3 up to rounding.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_CHARGE, add_scaled
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.weights import Weights, distribution, draw, reach, reweigh, start_weights
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class Evolving(Learner):
    """Charge a guess from the state at once, and correct it when the outcome comes.

    >>> import statepool as sp
    >>> sp.Evolving()
    Evolving(rate=None)
    """

    rate: float | None = None

    def __post_init__(self) -> None:
        check_settings(self.rate)

    def start(self, problem: Problem) -> "EvolvingMemory":
        weights = start_weights(problem.n_actions, problem.rate(self.rate, width=problem.n_states))
        return EvolvingMemory(weights, problem.columns, np.zeros(problem.n_states), np.zeros(problem.n_states))

    def ticket_width(self, problem: Problem) -> int:
        return 2


class EvolvingMemory(NamedTuple):
    weights: Weights
    columns: Floats
    losses: Floats
    counts: Floats


@compiled
def correct(memory: Any, state: int, difference: float, reached: float) -> None:
    """Totals move by a difference that may be negative."""
    if difference != 0.0:
        add_scaled(memory.weights.totals[0], memory.columns[state], difference * min(1.0 / reached, LARGEST_CHARGE))
        memory.weights.changed[0] = True


def act(memory: Any, t: int, u: float) -> int:
    if memory.weights.changed[0]:
        memory.weights.changed[0] = False
        reweigh(memory.weights, 0, memory.weights.totals[0])
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = reach(memory.weights, 0, memory.columns[state])
    ticket[1] = (memory.losses[state] + 1.0) / (memory.counts[state] + 2.0)
    correct(memory, state, ticket[1], ticket[0])


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    memory.losses[state] += loss
    memory.counts[state] += 1.0
    correct(memory, state, loss - ticket[1], ticket[0])


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(EvolvingMemory, act, observe, update, play)
