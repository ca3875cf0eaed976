"""State-EXP3: exponential weights on losses pooled through the state.

    L(a) += P(s|a) · X / q(s)        q(s) = sum_a x(a) P(s|a) as of the round played        x(a) ∝ exp(-rate · L(a))

With `copies` > 1, copy t mod copies plays round t and learns from it alone (Interleaved-State-EXP3 at "d+1").
With `groups`, the same on merged states. L is a cache of P G: `charges` holds G, one number a state, all there
is to remember.

Source: paper, Section 3 and Appendices A and B; guarantees: Theorems 1 (one copy), 3 and 4.
Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Floats, Ints, check_groups
from statepool.kernels import LARGEST_CHARGE
from statepool.learners.learner import Learner, Problem, check_copies, check_settings, n_copies, n_rows
from statepool.learners.rules import add_rule
from statepool.learners.weights import Weights, charge, distribution, draw, reach, refresh, start_weights


@dataclass(frozen=True)
class StateEXP3(Learner):
    rate: float | None = None
    copies: int | str = 1
    groups: ArrayLike | None = None
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)
        check_copies(self.copies)
        if self.groups is not None:
            labels = check_groups(self.groups)
            object.__setattr__(self, "groups", tuple(labels.tolist()))  # a copy that can be compared and hashed

    def start(self, problem: Problem) -> "StateMemory":
        groups = np.arange(problem.n_states) if self.groups is None else check_groups(self.groups, problem.n_states)
        columns = problem.columns if self.groups is None else merge_columns(problem.columns, groups)
        copies = n_copies(self.copies, problem.delay)
        rate = problem.rate(self.rate, width=columns.shape[0], copies=copies)
        rows = n_rows(copies, problem.horizon)
        weights = start_weights(problem.n_actions, rate, self.mixing, rows)
        return StateMemory(weights, columns, groups, np.zeros((rows, columns.shape[0])))


class StateMemory(NamedTuple):
    weights: Weights
    columns: Floats
    groups: Ints
    charges: Floats


def merge_columns(columns: Floats, groups: Ints) -> Floats:
    """The map onto groups, P^g, one row a group."""
    merged = np.zeros((int(groups.max()) + 1, columns.shape[1]))
    np.add.at(merged, groups, columns)
    return merged


def act(memory: Any, t: int, u: float) -> int:
    copy = t % memory.charges.shape[0]
    refresh(memory.weights, copy)
    return draw(memory.weights, copy, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    copy = t % memory.charges.shape[0]
    ticket[0] = reach(memory.weights, copy, memory.columns[memory.groups[state]])


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    copy = t % memory.charges.shape[0]
    group = memory.groups[state]
    if loss > 0.0:  # 0 / q(s) is not a number where q(s) has underflowed
        amount = min(loss / ticket[0], LARGEST_CHARGE)
        memory.charges[copy, group] += amount
        charge(memory.weights, copy, memory.columns[group], amount)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, t % memory.charges.shape[0], out)


add_rule(StateMemory, act, observe, update, play)
