"""EXP3 as first published: gains instead of losses, and uniform exploration mixed in.

    G(A) += (1 - X) / x(A)        x(a) = (1 - γ) exp(γ G(a)/K) / sum_b exp(γ G(b)/K) + γ/K

γ is `exploration`, min(1, sqrt(K log K / ((e - 1) T))) by default.

Source: Auer et al. 2002; guarantee: 2.63 sqrt(K T log K) without delay (recalled). Differs from the source: an
outcome is divided by the probability of the round played, so that it may come late.
"""

from math import e, log, sqrt

from statepool.checks import check_number
from statepool.learners import parts
from statepool.learners.action_exp3 import ActionMemory, start_actions
from statepool.learners.contract import Learner, Problem


@parts.settled
class AuerEXP3(Learner):
    """EXP3 as first published: gains instead of losses, and uniform exploration mixed in.

    >>> import statepool as sp
    >>> sp.learners.AuerEXP3(exploration=0.1)
    AuerEXP3(exploration=0.1)
    """

    exploration: float | None = None

    def __post_init__(self) -> None:
        if self.exploration is not None:
            check_number(self.exploration, "exploration", 0, 1, open_low=True)

    def start(self, problem: Problem) -> ActionMemory:
        K, share = problem.n_actions, self.exploration
        if share is None:
            share = min(1.0, sqrt(K * log(K) / ((e - 1) * problem.known_horizon())))
        return start_actions(problem, share / K, share, gains=True)
