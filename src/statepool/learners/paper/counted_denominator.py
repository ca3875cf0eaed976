"""Counted denominator: freeze the policy for a block, count states in its first half, pool in its second.

Does dividing by a state's counted frequency beat dividing by the predicted x·P_hat? First half: action-level
estimates. Second half: plug-in numerators over either denominator. Outcomes are learnt as they come; the policy
follows at the next block.
Source: the paper's released study 5. Differs from the source: nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_name
from statepool.compiling import compiled
from statepool.kernels import dot, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule

_SMALLEST_FREQUENCY = 1e-6


class CountedMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    frozen: Floats
    """The policy of this block."""
    counts: parts.MapCounts
    seen: Floats
    """How often each state was seen in the first half of this block."""
    place: Ints
    """The round's place in its block."""
    block: int
    counted: bool
    rate: float


@parts.settled
class CountedDenominator(Learner):
    """Freeze the policy for a block, count states in its first half, pool in its second.

    >>> import statepool as sp
    >>> sp.learners.CountedDenominator(block=200).block
    200
    """

    denominator: str = "counted"
    block: int = 400
    rate: float | None = None

    def __post_init__(self) -> None:
        check_name("denominator", self.denominator, ("counted", "predicted"))

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, problem.n_actions

    def start(self, problem: Problem) -> CountedMemory:
        K, S = problem.n_actions, problem.n_states
        return CountedMemory(
            np.zeros(K), np.empty(K), parts.start_counts(problem), np.zeros(S), np.zeros(1, np.int64), self.block,
            self.denominator == "counted", problem.rate(self.rate, width=S),
        )  # fmt: skip


@compiled
def denominator_of(memory: Any, state: int, column: Any) -> float:
    """What the second half divides by, for a state whose estimated column is given."""
    if memory.counted:
        return max(memory.seen[state] / (memory.block // 2), _SMALLEST_FREQUENCY)
    return dot(memory.frozen, column)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    memory.place[0] = t % memory.block
    if memory.place[0] == 0:
        memory.seen[:] = 0.0
        softmin(memory.totals, memory.rate, memory.frozen)
    for a in range(out.size):
        out[a] = memory.frozen[a]


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    if memory.place[0] < memory.block // 2:
        parts.save_alone(policy, choice, saved)
    else:
        parts.estimate_column(memory.counts, state, saved)
        saved /= denominator_of(memory, state, saved)


def see(memory: Any, played: Any, saved: Any) -> None:
    if memory.place[0] < memory.block // 2:
        memory.seen[played.state] += 1.0
    parts.count_pair(memory.counts, played.action, played.state)


add_rule(CountedMemory, policy, remember, parts.learn_saved, see)
