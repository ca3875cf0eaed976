"""Action-level EXP3: exponential weights on losses of the action played alone.

    L(A) += X / x(A)        x(A) as of the round played        x(a) ∝ exp(-rate · L(a))

Source: Auer et al. 2002, with delays as in paper, Appendix E. Differs from the source: nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats
from statepool.kernels import LARGEST_ESTIMATE, mix_evenly, softmin
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.parts import n_copies, remember_action, settled


@settled
class ActionEXP3(Learner):
    """Exponential weights by action: the bandit that does not look at states.

    >>> import statepool as sp
    >>> sp.ActionEXP3(copies="d+1")
    ActionEXP3(rate=None, copies='d+1', mixing=0.0)
    """

    rate: float | None = None
    copies: int | str = 1
    mixing: float = 0.0

    def start(self, problem: Problem) -> ActionMemory:
        rate = problem.rate(self.rate, problem.n_actions, n_copies(self.copies, problem.delay))
        return start_actions(problem, rate, self.mixing, n_copies(self.copies, problem.delay, problem.horizon))


class ActionMemory(NamedTuple):
    losses: Floats
    """L: the cumulative loss estimates, one row for each copy, one number for each action."""
    changed: NDArray[np.bool_]
    """Whether L has changed since the last policy."""
    rate: float
    mixing: float
    caution: float
    """Added to x(A) in the denominator: 0, or half the rate for implicit exploration (`EXP3IX`)."""
    gains: bool
    """Whether 1 - X is subtracted in place of adding X (`AuerEXP3`)."""


def start_actions(
    problem: Problem, rate: float, mixing: float, copies: int = 1, caution: float = 0.0, gains: bool = False
) -> ActionMemory:
    """Nothing learnt: the uniform policy."""
    losses = np.zeros((copies, problem.n_actions))
    return ActionMemory(losses, np.ones(1, np.bool_), rate, float(mixing), caution, gains)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    copies = memory.losses.shape[0]
    if memory.changed[0] or copies > 1 or rows.vary:
        memory.changed[0] = False
        softmin(memory.losses[t % copies, : out.size], memory.rate, out)
        mix_evenly(memory.mixing, out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    amount = loss - 1.0 if memory.gains else loss
    if amount != 0.0:
        estimate = amount / (saved[0] + memory.caution)
        estimate = max(min(estimate, LARGEST_ESTIMATE), -LARGEST_ESTIMATE)
        memory.losses[played.t % memory.losses.shape[0], played.action] += estimate
        memory.changed[0] = True


add_rule(ActionMemory, policy, remember_action, learn)
