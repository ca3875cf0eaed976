"""Action-level EXP3: exponential weights on losses of the action played alone.

    L(A) += X / x(A)        x(A) as of the round played        x(a) ∝ exp(-rate · L(a))

Source: Auer et al. 2002, with delays as in paper, Appendix E. Differs from the source: nothing.

*EXP3-IX* adds implicit exploration, a little bias for much less variance: L(A) += X / (x(A) + rate/2).
Source: Neu 2015, with delays as in paper, Appendix E. Differs from the source: nothing.

*AuerEXP3* is EXP3 as first published: gains instead of losses, and uniform exploration mixed in.

    G(A) += (1 - X) / x(A)        x(a) = (1 - γ) exp(γ G(a)/K) / sum_b exp(γ G(b)/K) + γ/K

γ is `exploration`, min(1, sqrt(K log K / ((e - 1) T))) by default.
Source: Auer et al. 2002; guarantee: 2.63 sqrt(K T log K) without delay (recalled). Differs from the source: an
outcome is divided by the probability of the round played, so that it may come late.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, check_number
from statepool.kernels import LARGEST_ESTIMATE, lowest, mix_evenly, softmin
from statepool.learners.contract import Learner, Problem, add_rule, check_copies, check_settings, n_copies
from statepool.learners.parts import remember_action, settled


@dataclass(frozen=True)
class ActionEXP3(Learner):
    """Exponential weights by action: the bandit that does not look at states.

    Parameters
    ----------
    rate : float, optional
        The learning rate; None is the paper's default for the horizon and the delay.
    copies : int or "d+1"
        How many learners take turns: a number, or one more than the delay.
    mixing : float
        The share of uniform exploration.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.ActionEXP3(copies="d+1")
    ActionEXP3(rate=None, copies='d+1', mixing=0.0)
    """

    rate: float | None = None
    copies: int | str = 1
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)
        check_copies(self.copies)

    @property
    def runs_live(self) -> bool:  # type: ignore[override]
        return self.copies == 1

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 1

    def start(self, problem: Problem) -> ActionMemory:
        rate = problem.rate(self.rate, problem.n_actions, n_copies(self.copies, problem.delay))
        return start_actions(problem, rate, self.mixing, n_copies(self.copies, problem.delay, problem.horizon))

    def grow(self, memory: Any, before: Problem, after: Problem) -> Any:
        """New actions start level with the best one, not at 0."""
        grown = super().grow(memory, before, after)
        grown.losses[:, before.n_actions :] = memory.losses.min(axis=1)[:, None]
        grown.changed[0] = True
        return grown


@settled
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


@settled
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


class ActionMemory(NamedTuple):
    losses: Floats
    """L: the cumulative loss estimates, one row for each copy, one number for each action."""
    totals: Floats
    """Room for those of the actions on offer."""
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
    K = problem.n_actions
    return ActionMemory(
        np.zeros((copies, K)), np.empty(K), np.ones(1, np.bool_), rate, float(mixing), caution, gains,
    )  # fmt: skip


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    copies = memory.losses.shape[0]
    if memory.changed[0] or copies > 1 or rows.vary:
        memory.changed[0] = False
        losses, totals = memory.losses[t % copies], memory.totals[: out.size]
        for i in range(out.size):
            # An action that is not in the catalogue starts level with the best one.
            totals[i] = losses[rows.actions[i]] if rows.actions[i] >= 0 else lowest(losses)
        softmin(totals, memory.rate, out)
        mix_evenly(memory.mixing, out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    amount = loss - 1.0 if memory.gains else loss
    if amount != 0.0 and played.action >= 0:
        estimate = amount / (saved[0] + memory.caution)
        estimate = max(min(estimate, LARGEST_ESTIMATE), -LARGEST_ESTIMATE)
        memory.losses[played.t % memory.losses.shape[0], played.action] += sign * estimate
        memory.changed[0] = True


add_rule(ActionMemory, policy, remember_action, learn)
