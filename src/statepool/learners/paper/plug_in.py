"""Plug-in: State-EXP3 with the map estimated from the pairs of earlier rounds.

    L(a) += P_hat(s|a) · X / q_hat(s)        P_hat and q_hat = x P_hat both as of the round played

Source: the paper's released study 2. Differs from the source: nothing. A decision saves one number for each action,
because the numerators of the round played are not recomputed.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import dot, mix_evenly, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class PlugInMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    counts: parts.MapCounts
    rate: float
    mixing: float


@parts.settled
class PlugIn(Learner):
    """`StateEXP3` with the map estimated from the pairs of earlier rounds.

    >>> import statepool as sp
    >>> sp.learners.PlugIn(smoothing=0.1)
    PlugIn(smoothing=0.1, mixing=0.0, rate=None)
    """

    smoothing: float = parts.SMOOTHING
    mixing: float = 0.0
    rate: float | None = None

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return problem.n_actions, 0

    def start(self, problem: Problem) -> PlugInMemory:
        counts, rate = parts.start_counts(problem, self.smoothing), problem.rate(self.rate, width=problem.n_states)
        return PlugInMemory(np.zeros(problem.n_actions), counts, rate, float(self.mixing))


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    softmin(memory.totals, memory.rate, out)
    mix_evenly(memory.mixing, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    parts.estimate_column(memory.counts, state, saved)
    saved /= dot(policy, saved)


def see(memory: Any, played: Any, saved: Any) -> None:
    parts.count_pair(memory.counts, played.action, played.state)


add_rule(PlugInMemory, policy, remember, parts.learn_saved, see)
