"""State-EXP3: exponential weights on losses pooled through the state.

    L(a) += P(s|a) · X / q(s)        q(s) = sum_a x(a) P(s|a) as of the round played        x(a) ∝ exp(-rate · L(a))

With `copies` > 1, copy t mod copies plays round t and learns from it alone (Interleaved-State-EXP3 at "d+1").
With `groups`, the same on merged states. L is a cache of P G: `charges` holds G, one number a state, all there
is to remember.

    copies="idle"     BOLD (Joulani et al. 2013): the lowest-numbered copy that waits for nothing plays, a new one if
                      all wait; with one delay for all this is "d+1"
    caution=γ         implicit exploration (Neu 2015, Kocák et al. 2014), pooled: divide by q(s) + γ; theirs: "rate/2"
    rate="capacity"   Eldowa et al. 2024, d = 0: sqrt(2 log K/((vbar - 1) T)), vbar a proved bound of the dimension

Source: paper, Section 3 and Appendices A and B; guarantees: Theorems A, 1 and B (one copy), 3 and 4.
Differs from the source: nothing. The three options are of the neighbours named, read in abstract only; BOLD's rate is
that of "d+1", the pooled caution and its bound are ours (docs/theory.md).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statepool.checks import Floats, Ints, check_groups, check_number
from statepool.compiling import compiled
from statepool.dimension import bracket
from statepool.kernels import LARGEST_CHARGE
from statepool.learners.learner import Learner, Problem, check_copies, check_settings, n_copies, n_rows
from statepool.learners.parts.weights import Weights, charge, distribution, draw, reach, refresh, start_weights
from statepool.learners.rules import add_rule

CAPACITY, IDLE, HALF = "capacity", "idle", "rate/2"
CAPACITY_GAP = 0.05
"""How closely the dimension is bracketed for a rate."""

MOST_NUMBERS = 1 << 27
"""A copy for every round would take this many totals at most: a gigabyte."""


@dataclass(frozen=True)
class StateEXP3(Learner):
    rate: float | str | None = None
    copies: int | str = 1
    groups: ArrayLike | None = None
    mixing: float = 0.0
    caution: float | str = 0.0

    def __post_init__(self) -> None:
        check_settings(None if self.rate == CAPACITY else self.rate, self.mixing)  # type: ignore[arg-type]
        if self.copies != IDLE:
            check_copies(self.copies)
        if self.caution != HALF:
            check_number(self.caution, "caution", 0, 1e9)
        if self.groups is not None:
            labels = check_groups(self.groups)
            object.__setattr__(self, "groups", tuple(labels.tolist()))  # a copy that can be compared and hashed

    def start(self, problem: Problem) -> "StateMemory":
        groups = np.arange(problem.n_states) if self.groups is None else check_groups(self.groups, problem.n_states)
        columns = problem.columns if self.groups is None else merge_columns(problem.columns, groups)
        copies = problem.delay + 1 if self.copies == IDLE else n_copies(self.copies, problem.delay)
        rows = _most_copies(problem) if self.copies == IDLE else n_rows(copies, problem.horizon)
        rate = self._rate(problem, columns, copies)
        weights = start_weights(problem.n_actions, rate, self.mixing, rows)
        return StateMemory(
            weights, columns, groups, np.zeros((rows, columns.shape[0])),
            rate / 2 if self.caution == HALF else float(self.caution), False,
            np.zeros(rows if self.copies == IDLE else 0, np.bool_), np.zeros(1, np.int64),
        )  # fmt: skip

    def _rate(self, problem: Problem, columns: Floats, copies: int) -> float:
        if self.rate == CAPACITY:
            return capacity_rate(columns.T, problem.known_horizon())
        return problem.rate(self.rate, width=columns.shape[0], copies=copies)  # type: ignore[arg-type]

    def ticket_width(self, problem: Problem) -> int:
        return 2 if self.copies == IDLE else 1


class StateMemory(NamedTuple):
    weights: Weights
    columns: Floats
    groups: Ints
    charges: Floats
    caution: float
    """Added to q(s) in the denominator."""
    adapted: bool
    """Whether to divide by the larger of q(s) then and now (`DelayAdapted`)."""
    busy: NDArray[np.bool_]
    """Which copies wait for an outcome; empty where they take turns."""
    turn: Ints
    """The copy that plays, where the idle ones do."""


def capacity_rate(P: Floats, horizon: int) -> float:
    """The rate for a budget (vbar - 1) T without delay; vbar is bounded from above."""
    n_actions = P.shape[0]
    spread = (bracket(P, gap=CAPACITY_GAP).upper - 1) * horizon
    return float(np.sqrt(2 * np.log(n_actions) / spread)) if spread > 0 else 1.0


def _most_copies(problem: Problem) -> int:
    """A copy for every round: what is never played is never touched, and takes no memory."""
    if problem.horizon is None:
        raise ValueError("horizon: is None, expected a number of rounds: idle copies may come to one a round")
    if problem.horizon * problem.n_actions > MOST_NUMBERS:
        raise ValueError(
            f"copies: 'idle' may take one copy a round, {problem.horizon} of {problem.n_actions} actions, "
            f"expected at most {MOST_NUMBERS} numbers in all, or copies='d+1'"
        )
    return problem.horizon


def merge_columns(columns: Floats, groups: Ints) -> Floats:
    """The map onto groups, P^g, one row a group."""
    merged = np.zeros((int(groups.max()) + 1, columns.shape[1]))
    np.add.at(merged, groups, columns)
    return merged


@compiled
def copy_of(memory: Any, t: int) -> int:
    """The copy that plays round t."""
    return memory.turn[0] if memory.busy.size > 0 else t % memory.charges.shape[0]


@compiled
def choose_idle(memory: Any) -> None:
    """The lowest-numbered copy that waits for nothing takes the turn."""
    copy = 0
    while memory.busy[copy]:
        copy += 1
    memory.turn[0] = copy


@compiled
def release(memory: Any, t: int, ticket: Any) -> int:
    """The copy that played round t, which waits no longer."""
    if memory.busy.size == 0:
        return t % memory.charges.shape[0]
    copy = int(ticket[1])
    memory.busy[copy] = False
    return copy


def act(memory: Any, t: int, u: float) -> int:
    if memory.busy.size > 0:
        choose_idle(memory)
    copy = copy_of(memory, t)
    refresh(memory.weights, copy)
    return draw(memory.weights, copy, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    copy = copy_of(memory, t)
    ticket[0] = reach(memory.weights, copy, memory.columns[memory.groups[state]]) + memory.caution
    if memory.busy.size > 0:
        memory.busy[copy] = True
        ticket[1] = copy


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    copy = release(memory, t, ticket)
    group = memory.groups[state]
    if loss > 0.0:  # 0 / q(s) is not a number where q(s) has underflowed
        reached = ticket[0]
        if memory.adapted:
            refresh(memory.weights, copy)
            reached = max(reached, reach(memory.weights, copy, memory.columns[group]) + memory.caution)
        amount = min(loss / reached, LARGEST_CHARGE)
        memory.charges[copy, group] += amount
        charge(memory.weights, copy, memory.columns[group], amount)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, copy_of(memory, t), out)


add_rule(StateMemory, act, observe, update, play)
