"""Evolving: learn a guess from the state at once, and correct it when the outcome comes.

    at once      G(s) += h(s) / q(s)              h(s) = (sum(s) + 1)/(count(s) + 2) of the outcomes so far
    on arrival   G(s) += (X - h(s)) / q(s)        h, q as of the round played

Source: Bar-On & Mansour 2025, abstract only, in a form of two steps: the state is the only observation before the
outcome. Their bound, of the order of sqrt(KT + d Lambda2), is for exact losses at the action level; pooled it is not
proved, since taking back a guess has no bound on one side. With no delay a guess cancels before the next action and
this is State-EXP3 up to rounding.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import LARGEST_ESTIMATE, combine, dot, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class EvolvingMemory(NamedTuple):
    estimates: Floats
    """G, by state."""
    totals: Floats
    """Room for P G."""
    losses: Floats
    counts: Floats
    """Of the outcomes that have come, by state."""
    rate: float


@parts.settled
class Evolving(Learner):
    """Learn a guess from the state at once, and correct it when the outcome comes.

    >>> import statepool as sp
    >>> sp.learners.Evolving()
    Evolving(rate=None)
    """

    rate: float | None = None

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 2, 0

    def start(self, problem: Problem) -> EvolvingMemory:
        K, S = problem.n_actions, problem.n_states
        return EvolvingMemory(np.zeros(S), np.empty(K), np.zeros(S), np.zeros(S), problem.rate(self.rate, width=S))


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    combine(rows.columns, memory.estimates, memory.totals)
    softmin(memory.totals, memory.rate, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = min(1.0 / dot(policy, rows.columns[state]), LARGEST_ESTIMATE)
    saved[1] = (memory.losses[state] + 1.0) / (memory.counts[state] + 2.0)


def see(memory: Any, played: Any, saved: Any) -> None:
    memory.estimates[played.state] += saved[1] * saved[0]


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.state] += loss
    memory.counts[played.state] += 1.0
    memory.estimates[played.state] += (loss - saved[1]) * saved[0]


add_rule(EvolvingMemory, policy, remember, learn, see)
