"""State-EXP3: exponential weights on losses pooled through the state.

    G(s) += X / q(s)        q(s) = sum_a x(a) P(s|a) as of the round played        x(a) ∝ exp(-rate · (P G)(a))

G holds one number for each state, and that is all there is to remember. With `copies` > 1, copy t mod copies plays
round t and learns from it alone (Interleaved-State-EXP3 at "d+1"). With `groups`, states of one group share G and q.
With contexts q(s) is averaged over the latest requests, this one among them.

Source: paper, Section 3 and Appendices A and B; guarantees: Theorems A, 1 and B (one copy), 3 and 4.
Differs from the source: nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statepool.checks import Floats, Ints, check_groups, shown
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, aligned, combine, dot, dots, mix_evenly, softmin
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.parts import n_copies, settled

KEPT = 1 - 1 / 32
"""What a request leaves of the state probabilities of those before it."""


@settled
class StateEXP3(Learner):
    """The paper's learner: exponential weights on losses pooled through the state.

    >>> import statepool as sp
    >>> sp.StateEXP3(groups=[0, 0, 1]).groups
    (0, 0, 1)
    """

    rate: float | None = None
    copies: int | str = 1
    groups: ArrayLike | None = None
    mixing: float = 0.0
    knows_contexts: ClassVar[bool] = True
    needs_state_probability: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("totals",)

    def __post_init__(self) -> None:
        if self.groups is not None:
            labels = check_groups(self.groups)
            object.__setattr__(self, "groups", tuple(labels.tolist()))  # a copy that can be compared and hashed

    @property
    def runs_live(self) -> bool:  # type: ignore[override]
        return self.copies == 1

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return (2, problem.n_states) if problem.has_contexts else (1, 0)

    def start(self, problem: Problem) -> StateMemory:
        K, S = problem.n_actions, problem.n_states
        groups = np.zeros(0, np.int64) if self.groups is None else check_groups(self.groups, S)
        if problem.has_contexts and self.copies != 1:
            raise ValueError(f"copies: is {shown(self.copies)}, expected 1 where there are contexts")
        n_groups = S if self.groups is None else int(groups.max()) + 1
        rate = problem.rate(self.rate, n_groups, n_copies(self.copies, problem.delay))
        copies = n_copies(self.copies, problem.delay, problem.horizon)
        return StateMemory(
            np.zeros((copies, S)), groups, aligned(K), np.ones(1, np.bool_),
            np.zeros(S + 1 if problem.has_contexts else 0), rate, float(self.mixing),
        )  # fmt: skip

    def grow(self, memory: Any, before: Problem, after: Problem) -> Any:
        """A state that no action could lead to before starts level with the best action, not at 0."""
        grown = super().grow(memory, before, after)
        rows = before.P.reshape(-1, before.n_states)
        unseen = ~(rows > 0).any(axis=0)
        grown.losses[0, unseen & (grown.losses[0] == 0)] = (rows @ memory.losses[0]).min()
        return grown


class StateMemory(NamedTuple):
    losses: Floats
    """G: the cumulative loss estimates, one row for each copy, one number for each state."""
    groups: Ints
    """The group of each state; empty without groups."""
    totals: Floats
    """Room for P G."""
    changed: NDArray[np.bool_]
    """Whether G has changed since the last policy."""
    reached: Floats
    """With contexts: the state probabilities of the latest requests, summed, and how many requests; else empty."""
    rate: float
    mixing: float


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    copies = memory.losses.shape[0]
    if memory.changed[0] or copies > 1 or rows.vary:
        memory.changed[0] = False
        totals = memory.totals[: out.size]
        combine(rows.columns, memory.losses[t % copies], totals)
        softmin(totals, memory.rate, out)
        mix_evenly(memory.mixing, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    if memory.reached.size > 0:
        saved[0], saved[1] = _of_group(memory, memory.reached, state), memory.reached[memory.reached.size - 1]
        dots(policy, rows.columns, saved[2:])
        return
    saved[0] = dot(policy, rows.columns[state])
    for s in range(memory.groups.size):
        if s != state and memory.groups[s] == memory.groups[state]:
            saved[0] += dot(policy, rows.columns[s])


@compiled
def _of_group(memory: Any, values: Any, state: int) -> float:
    """The sum over the states of the group that a state is in."""
    result = values[state]
    for s in range(memory.groups.size):
        if s != state and memory.groups[s] == memory.groups[state]:
            result += values[s]
    return result


def see(memory: Any, played: Any, saved: Any) -> None:
    if memory.reached.size > 0:
        n_states = memory.losses.shape[1]
        for s in range(n_states):
            memory.reached[s] = KEPT * memory.reached[s] + saved[2 + s]
        memory.reached[n_states] = KEPT * memory.reached[n_states] + 1.0


@compiled
def _denominator(memory: Any, state: int, saved: Any) -> float:
    if memory.reached.size == 0:
        return saved[0]
    own = _of_group(memory, saved[2:], state)
    # Contexts may reach different states: an estimate divided by the average is unbiased for all of them.
    return (saved[0] + own) / (saved[1] + 1.0)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    copy = played.t % memory.losses.shape[0]
    if loss > 0.0:
        amount = sign * min(loss / _denominator(memory, played.state, saved), LARGEST_ESTIMATE)
        memory.losses[copy, played.state] += amount
        for s in range(memory.groups.size):
            if s != played.state and memory.groups[s] == memory.groups[played.state]:
                memory.losses[copy, s] += amount
        memory.changed[0] = True


add_rule(StateMemory, policy, remember, learn, see)
