"""SurrogateIndex: learn once what each state is worth, then rely on that for ever.

    until `history` outcomes have come   the uniform policy
    then                                 freeze h(s) = mean loss of the state (1/2 where none came), and run EXP3 that
                                         learns h(s) at once: G(s) += h(s)/q(s), or, not pooled, L(A) += h(s)/x(A)

Source: Athey et al. 2019 (the surrogate index), recalled; as a bandit it is ours. It shows what a frozen proxy costs:
regret <= history + d + EXP3's without delay + 2 sum_t max_s |theta_t(s) - h(s)|, linear where means move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_count
from statepool.learners.contract import Learner, Problem, add_rule, check_flag, check_settings
from statepool.learners.parts import Estimates, add_estimate, probability, start_estimates, weigh
from statepool.rates import default_rate


@dataclass(frozen=True)
class SurrogateIndex(Learner):
    """Explore uniformly until `history` outcomes have come, then rely for ever on what each state cost in them.

    Parameters
    ----------
    history : int
        How many outcomes the index is made of.
    pooled : bool
        Whether the index is pooled through the state, or learnt of the action played alone.
    rate : float, optional
        The learning rate; None is the paper's default without delay.

    Examples
    --------
    >>> from statepool.learners.neighbours.surrogate_index import SurrogateIndex
    >>> SurrogateIndex(history=100).history
    100
    """

    history: int = 200
    pooled: bool = True
    rate: float | None = None

    def __post_init__(self) -> None:
        check_count(self.history, "history")
        check_flag(self.pooled, "pooled")
        check_settings(self.rate)

    def start(self, problem: Problem) -> SurrogateMemory:
        K, S = problem.n_actions, problem.n_states
        rate = self.rate
        if rate is None:  # the index is learnt at once, whatever the delay
            rate = default_rate(K, S if self.pooled else K, problem.known_horizon(), 0)
        return SurrogateMemory(
            start_estimates(problem, self.pooled), np.zeros(S), np.zeros(S), np.zeros(1, np.int64), self.history,
            float(rate),
        )  # fmt: skip


class SurrogateMemory(NamedTuple):
    estimates: Estimates
    losses: Floats
    counts: Floats
    """Of the first `history` outcomes, by state."""
    arrived: Ints
    """How many outcomes have come, up to `history`."""
    history: int
    rate: float


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    weigh(memory.estimates, rows.columns, memory.rate, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = probability(memory.estimates, rows.columns, policy, choice, state)


def see(memory: Any, played: Any, saved: Any) -> None:
    if memory.arrived[0] == memory.history:
        n = memory.counts[played.state]
        proxy = memory.losses[played.state] / n if n > 0.0 else 0.5
        add_estimate(memory.estimates, played.action, played.state, proxy / saved[0])


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if memory.arrived[0] < memory.history:
        memory.losses[played.state] += loss
        memory.counts[played.state] += 1.0
        memory.arrived[0] += 1


add_rule(SurrogateMemory, policy, remember, learn, see)
