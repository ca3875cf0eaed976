"""Delay-adapted estimates: divide by the larger of the probability of the round played and today's.

    L(a) += P(s|a) · X / max(q then(s), q now(s))        `pooled` off: L(A) += X / max(x then(A), x now(A))

Under today's play the charge is at most X, so no rate is too large for the delay; it is biased low.

Source: Levy et al. 2025 (EXP4-DALE), recalled; here the policies are the constant ones, and the rate is the package's
default. With no delay it is the plain learner, bit for bit. Its bound, O(sqrt(KT log N) + sqrt(D log N)) for N
policies, is of the action-level form (abstract only); the pooled form is measured, not proved.
"""

from dataclasses import dataclass
from typing import Any

from statepool.learners.action_exp3 import ActionEXP3
from statepool.learners.learner import Learner, Problem, check_flag, check_settings
from statepool.learners.state_exp3 import StateEXP3


@dataclass(frozen=True)
class DelayAdapted(Learner):
    pooled: bool = True
    rate: float | None = None

    def __post_init__(self) -> None:
        check_flag(self.pooled, "pooled")
        check_settings(self.rate)

    def start(self, problem: Problem) -> Any:
        plain = StateEXP3(self.rate) if self.pooled else ActionEXP3(self.rate)
        return plain.start(problem)._replace(adapted=True)
