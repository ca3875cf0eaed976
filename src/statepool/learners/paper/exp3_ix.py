"""EXP3-IX: action-level EXP3 with implicit exploration, a little bias for much less variance.

    L(A) += X / (x(A) + rate/2)

Source: Neu 2015, with delays as in paper, Appendix E. Differs from the source: nothing.
"""

from statepool.learners import parts
from statepool.learners.action_exp3 import ActionMemory, start_actions
from statepool.learners.contract import Learner, Problem


@parts.settled
class EXP3IX(Learner):
    """`ActionEXP3` with implicit exploration: a little bias for much less variance.

    >>> import statepool as sp
    >>> sp.learners.EXP3IX(rate=0.1)
    EXP3IX(rate=0.1)
    """

    rate: float | None = None

    def start(self, problem: Problem) -> ActionMemory:
        rate = problem.rate(self.rate, width=problem.n_actions)
        return start_actions(problem, rate, mixing=0.0, caution=rate / 2)
