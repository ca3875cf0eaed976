"""Delay-adapted estimates: divide by the larger of the probability of the round played and today's.

    L(a) += P(s|a) · X / max(q then(s), q now(s))        `pooled` off: L(A) += X / max(x then(A), x now(A))

Under today's play the charge is at most X, so no rate is too large for the delay; it is biased low.

Source: Levy et al. 2025 (EXP4-DALE), recalled; here the policies are the constant ones, and the rate is the package's
default. With no delay it is the plain learner, bit for bit. Its bound, O(sqrt(KT log N) + sqrt(D log N)) for N
policies, is of the action-level form (abstract only); the pooled form is measured, not proved.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.checks import Floats
from statepool.learners.action_exp3 import ActionEXP3
from statepool.learners.learner import Learner, Problem, check_flag, check_settings
from statepool.learners.parts.weights import Weights, charge, distribution, draw, reach, refresh, start_weights
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class DelayAdapted(Learner):
    """Divide by the larger of the probability of the round played and today's.

    `pooled` False charges the action played alone.

    >>> import statepool as sp
    >>> sp.DelayAdapted(pooled=False)
    DelayAdapted(pooled=False, rate=None)
    """

    pooled: bool = True
    rate: float | None = None

    def __post_init__(self) -> None:
        check_flag(self.pooled, "pooled")
        check_settings(self.rate)

    def start(self, problem: Problem) -> Any:
        if not self.pooled:
            return ActionEXP3(self.rate).start(problem)._replace(adapted=True)
        rate = problem.rate(self.rate, width=problem.n_states)
        return AdaptedMemory(start_weights(problem.n_actions, rate), problem.columns)


class AdaptedMemory(NamedTuple):
    weights: Weights
    columns: Floats


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = reach(memory.weights, 0, memory.columns[state])


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    if loss > 0.0:
        refresh(memory.weights, 0)
        reached = max(ticket[0], reach(memory.weights, 0, memory.columns[state]))
        charge(memory.weights, 0, memory.columns[state], loss / reached)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(AdaptedMemory, act, observe, update, play)
