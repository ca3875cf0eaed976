"""Best-state rule: find the state with the lowest mean loss, play the action most likely to lead to it.

    .92 on that action, .08 spread evenly; a state not seen yet counts as 1/2

A heuristic, and what optimising clicks amounts to: it never weighs a mixture of good states, and nothing in it notices
when that is what the best action offers.
Source: paper, Appendix E. Differs from the source: with contexts, states that no action on offer leads to are left out.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import mix_evenly
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class BestStateMemory(NamedTuple):
    losses: Floats
    counts: Floats
    """Of the outcomes that have come, by state."""
    exploration: float
    has_contexts: bool


@parts.settled
class BestState(Learner):
    """Find the state with the lowest mean loss and play the action most likely to lead to it.

    >>> import statepool as sp
    >>> sp.learners.BestState()
    BestState(exploration=0.08)
    """

    exploration: float = 0.08
    knows_contexts: ClassVar[bool] = True
    runs_live: ClassVar[bool] = True

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0

    def start(self, problem: Problem) -> BestStateMemory:
        S = problem.n_states
        return BestStateMemory(np.zeros(S), np.zeros(S), float(self.exploration), problem.has_contexts)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    favourite, lowest = 0, np.inf
    for s in range(memory.counts.size):
        mean = memory.losses[s] / memory.counts[s] if memory.counts[s] > 0.0 else 0.5
        if mean < lowest:
            action = rows.columns[s].argmax()
            if rows.columns[s, action] > 0.0 or not memory.has_contexts:
                favourite, lowest = action, mean
    out[:] = 0.0
    out[favourite] = 1.0
    mix_evenly(memory.exploration, out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.state] += sign * loss
    memory.counts[played.state] += sign


add_rule(BestStateMemory, policy, learn=learn)
