"""Naive sharing: pooled like State-EXP3, but divided by the probability of the state under the uniform policy.

    G(s) += X / mean_b P(s|b)        x(a) ∝ exp(-rate · (P G)(a))

Biased as soon as the policy is not uniform: kept to show what the right denominator is worth.
Source: paper's baseline study. Differs from the source: nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import LARGEST_ESTIMATE, combine, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class NaiveMemory(NamedTuple):
    losses: Floats
    """G: the cumulative loss estimates, by state."""
    totals: Floats
    """Room for P G."""
    rate: float


@parts.settled
class NaiveSharing(Learner):
    """Pooled with the wrong denominator, that of the uniform policy, to show what the right one is worth.

    >>> import statepool as sp
    >>> sp.learners.NaiveSharing(rate=0.1)
    NaiveSharing(rate=0.1)
    """

    rate: float | None = None

    def start(self, problem: Problem) -> NaiveMemory:
        rate = problem.rate(self.rate, width=problem.n_states)
        return NaiveMemory(np.zeros(problem.n_states), np.empty(problem.n_actions), rate)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    combine(rows.columns, memory.losses, memory.totals)
    softmin(memory.totals, memory.rate, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = rows.columns[state].mean()


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.state] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(NaiveMemory, policy, remember, learn)
