"""Counted denominator: freeze the policy for a block, count states in its first half, pool in its second.

Does dividing by a state's counted frequency beat dividing by the predicted x·P_hat? First half: action-level
estimates. Second half: plug-in numerators over either denominator. Outcomes are learnt as they come; the policy
follows at the next block.
Source: the paper's released study 5. Differs from the source: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_count, check_name, check_number
from statepool.compiling import compiled
from statepool.kernels import add_scaled, dot, mix_evenly, softmin
from statepool.learners.contract import Learner, Problem, add_rule, check_settings
from statepool.learners.parts import MapCounts, count_pair, estimate_column, start_counts

_SMALLEST_FREQUENCY = 1e-6


@dataclass(frozen=True)
class CountedDenominator(Learner):
    """Freeze the policy for a block, count states in its first half, pool in its second.

    Parameters
    ----------
    denominator : "counted" or "predicted"
        What the second half divides by.
    block : int
        The rounds of a block.
    smoothing : float
        Added to the count of each pair.
    mixing : float
        The share of uniform exploration.
    rate : float, optional
        The learning rate; None is the paper's default.

    Examples
    --------
    >>> from statepool.learners.paper.counted_denominator import CountedDenominator
    >>> CountedDenominator(block=200).block
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

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, problem.n_actions

    def start(self, problem: Problem) -> CountedMemory:
        K, rate = problem.n_actions, problem.rate(self.rate, width=problem.n_states)
        return CountedMemory(
            np.zeros(K), np.empty(K), start_counts(problem, self.smoothing), np.zeros(problem.n_states),
            np.zeros(1, np.int64), self.block, self.denominator == "counted", rate, float(self.mixing),
        )  # fmt: skip


class CountedMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    frozen: Floats
    """The policy of this block."""
    counts: MapCounts
    seen: Floats
    """How often each state was seen in the first half of this block."""
    place: Ints
    """The round's place in its block."""
    block: int
    counted: bool
    rate: float
    mixing: float


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
        mix_evenly(memory.mixing, memory.frozen)
    for a in range(out.size):
        out[a] = memory.frozen[a]


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    if memory.place[0] < memory.block // 2:
        saved[:] = 0.0
        saved[choice] = 1.0 / policy[choice]
    else:
        estimate_column(memory.counts, state, saved)
        q = denominator_of(memory, state, saved)
        for a in range(saved.size):
            saved[a] /= q


def see(memory: Any, played: Any, saved: Any) -> None:
    if memory.place[0] < memory.block // 2:
        memory.seen[played.state] += 1.0
    count_pair(memory.counts, played.action, played.state)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    add_scaled(memory.totals, saved, loss)


add_rule(CountedMemory, policy, remember, learn, see)
