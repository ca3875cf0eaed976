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
from statepool.compiling import compiled
from statepool.kernels import LARGEST_CHARGE, dot
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem, check_copies, check_settings, n_copies, n_rows
from statepool.learners.sums import Newcomers, Sum, Sums, lay_out, start_clock, start_newcomers
from statepool.learners.weights import Weights, charge, distribution, draw, reach, refresh, set_totals, start_weights


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

    def sums(self) -> tuple[Sum, ...]:
        return (Sum("charges", told_by="outcome"),)

    def start(self, problem: Problem) -> "StateMemory":
        groups = np.arange(problem.n_states) if self.groups is None else check_groups(self.groups, problem.n_states)
        columns = problem.columns if self.groups is None else merge_columns(problem.columns, groups)
        copies = n_copies(self.copies, problem.delay)
        rate = problem.rate(self.rate, width=columns.shape[0], copies=copies)
        rows = n_rows(copies, problem.horizon)
        weights = start_weights(problem.n_actions, rate, self.mixing, rows)
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        return StateMemory(
            sums, start_clock(), of["charges"][0], weights, columns, groups, np.zeros(1, np.int64),
            np.zeros((rows, columns.shape[0])), problem.newcomers or start_newcomers(problem.n_actions),
        )  # fmt: skip


class StateMemory(NamedTuple):
    sums: Sums
    clock: Any
    charges: Floats
    """G of all copies together, a number a state."""
    weights: Weights
    """One row a copy; its totals are a cache of P^g G."""
    columns: Floats
    groups: Ints
    copy: Ints
    """The one that plays."""
    by_copy: Floats
    """G, one row a copy, a number a group."""
    newcomers: Newcomers


def merge_columns(columns: Floats, groups: Ints) -> Floats:
    """The map onto groups, P^g, one row a group."""
    merged = np.zeros((int(groups.max()) + 1, columns.shape[1]))
    np.add.at(merged, groups, columns)
    return merged


def prepare(memory: Any, t: int) -> None:
    memory.copy[0] = t % memory.weights.totals.shape[0]
    refresh(memory.weights, memory.copy[0])


def rest(memory: Any, out: Any) -> None:
    distribution(memory.weights, memory.copy[0], out)


def pick(memory: Any, u: float) -> int:
    return draw(memory.weights, memory.copy[0], u)


def own_reach(memory: Any, state: int) -> float:
    return reach(memory.weights, memory.copy[0], memory.columns[memory.groups[state]])


def reach_under(memory: Any, play: Any, state: int) -> float:
    return dot(play, memory.columns[memory.groups[state]])


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    ticket[0] = q


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    # 0 / q(s) is not a number where q(s) has underflowed.
    out[0] = min(loss / ticket[0], LARGEST_CHARGE) if loss > 0.0 else 0.0


def absorb(memory: Any, t: int, action: int, state: int) -> None:
    copy, group, amount = t % memory.by_copy.shape[0], memory.groups[state], memory.sums.outcome.lesson[0]
    memory.by_copy[copy, group] += amount
    charge(memory.weights, copy, memory.columns[group], amount)


def rebuild(memory: Any) -> None:
    memory.by_copy[0, :] = 0.0
    for s in range(memory.groups.size):
        memory.by_copy[0, memory.groups[s]] += memory.charges[s]
    set_totals(memory.weights, memory.columns, memory.by_copy[0], memory.newcomers.handicap)


add_additive_rule(
    StateMemory, prepare=prepare, rest=rest, pick=pick, own_reach=own_reach, reach_under=reach_under, carry=carry,
    lesson=lesson, absorb=absorb, rebuild=rebuild,
)  # fmt: skip
