"""Delay-adapted estimates: divide by the larger of the probability of the round played and today's.

    G(s) += X / max(q then(s), q now(s))        `pooled` off: L(A) += X / max(x then(A), x now(A))

Under today's policy the expected estimate is at most X, so no rate is too large for the delay; it is biased low.

Source: Levy et al. 2025 (EXP4-DALE), recalled; here the policies are the constant ones, and the rate is the package's
default. With no delay it is the plain learner, bit for bit. Its bound, O(sqrt(KT log N) + sqrt(D log N)) for N
policies, is of the action-level form (abstract only); the pooled form is measured, not proved.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class AdaptedMemory(NamedTuple):
    estimates: parts.Estimates
    columns: Floats
    today: Floats
    """Room for today's policy."""
    rate: float


@parts.settled
class DelayAdapted(Learner):
    """Divide by the larger of the parts.probability of the round played and today's.

    >>> import statepool as sp
    >>> sp.learners.DelayAdapted(pooled=False)
    DelayAdapted(pooled=False, rate=None)
    """

    pooled: bool = True
    rate: float | None = None

    def start(self, problem: Problem) -> AdaptedMemory:
        rate = problem.rate(self.rate, width=problem.n_states if self.pooled else problem.n_actions)
        estimates = parts.start_estimates(problem, self.pooled)
        return AdaptedMemory(estimates, problem.columns, np.empty(problem.n_actions), rate)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    parts.weigh(memory.estimates, memory.columns, memory.rate, out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        parts.weigh(memory.estimates, memory.columns, memory.rate, memory.today)
        now = parts.probability(memory.estimates, memory.columns, memory.today, played.action, played.state)
        parts.add_estimate(memory.estimates, played.action, played.state, loss / max(saved[0], now))


add_rule(AdaptedMemory, policy, parts.remember_estimate, learn)
