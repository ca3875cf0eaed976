"""Best-state rule: find the state with the lowest mean loss, play the action most likely to lead to it.

    .92 on that action, .08 spread evenly; a state not seen yet counts as 1/2

A heuristic, and what optimising clicks amounts to: it never weighs a mixture of good states, and nothing in it notices
when that is what the best action offers.
Source: paper, Appendix E. Differs from the source: nothing.
"""

from typing import Any, NamedTuple

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


@parts.settled
class BestState(Learner):
    """Find the state with the lowest mean loss and play the action most likely to lead to it.

    >>> import statepool as sp
    >>> sp.learners.BestState()
    BestState(exploration=0.08)
    """

    exploration: float = 0.08

    def start(self, problem: Problem) -> BestStateMemory:
        return BestStateMemory(np.zeros(problem.n_states), np.zeros(problem.n_states), float(self.exploration))


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    favourite, lowest = 0, np.inf
    for s in range(memory.counts.size):
        mean = memory.losses[s] / memory.counts[s] if memory.counts[s] > 0.0 else 0.5
        if mean < lowest:
            favourite, lowest = s, mean
    out[:] = 0.0
    out[rows.columns[favourite].argmax()] = 1.0
    mix_evenly(memory.exploration, out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.state] += loss
    memory.counts[played.state] += 1.0


add_rule(BestStateMemory, policy, learn=learn)
