"""EXP3-IX: action-level EXP3 with implicit exploration, a little bias for much less variance.

    L(A) += X / (x(A) + rate/2)

Source: Neu 2015, with delays as in paper, Appendix E. Differs from the source: nothing.
"""

from dataclasses import dataclass

from statepool.learners.action_exp3 import ActionMemory, start_actions
from statepool.learners.contract import Learner, Problem, check_settings


@dataclass(frozen=True)
class EXP3IX(Learner):
    """`ActionEXP3` with implicit exploration: a little bias for much less variance.

    Parameters
    ----------
    rate : float, optional
        The learning rate; None is the paper's default.
    mixing : float
        The share of uniform exploration.

    Examples
    --------
    >>> from statepool.learners.paper.exp3_ix import EXP3IX
    >>> EXP3IX(rate=0.1)
    EXP3IX(rate=0.1, mixing=0.0)
    """

    rate: float | None = None
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)

    def start(self, problem: Problem) -> ActionMemory:
        rate = problem.rate(self.rate, width=problem.n_actions)
        return start_actions(problem, rate, self.mixing, caution=rate / 2)
