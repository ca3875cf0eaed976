"""SurrogateIndex: learn once what each state is worth, then rely on that for ever.

    until `history` outcomes have come   the uniform policy
    then                                 freeze h(s) = mean loss of the state (1/2 where none came), and run EXP3 that
                                         learns h(s) at once: G(s) += h(s)/q(s)

Source: Athey et al. 2019 (the surrogate index), recalled; as a bandit it is ours. It shows what a frozen proxy costs:
regret <= history + d + EXP3's without delay + 2 sum_t max_s |theta_t(s) - h(s)|, linear where means move.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.rates import default_rate


class SurrogateMemory(NamedTuple):
    estimates: parts.Estimates
    losses: Floats
    counts: Floats
    """Of the first `history` outcomes, by state."""
    arrived: Ints
    """How many outcomes have come, up to `history`."""
    history: int
    rate: float


@parts.settled
class SurrogateIndex(Learner):
    """Explore uniformly until `history` outcomes have come, then rely for ever on what each state cost in them.

    >>> import statepool as sp
    >>> sp.learners.SurrogateIndex(history=100).history
    100
    """

    history: int = 200

    def start(self, problem: Problem) -> SurrogateMemory:
        S = problem.n_states
        rate = default_rate(problem.n_actions, S, problem.known_horizon(), 0)  # the index is learnt without delay
        estimates, arrived = parts.start_estimates(problem, pooled=True), np.zeros(1, np.int64)
        return SurrogateMemory(estimates, np.zeros(S), np.zeros(S), arrived, self.history, rate)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    parts.weigh(memory.estimates, rows.columns, memory.rate, out)


def see(memory: Any, played: Any, saved: Any) -> None:
    if memory.arrived[0] == memory.history:
        n = memory.counts[played.state]
        proxy = memory.losses[played.state] / n if n > 0.0 else 0.5
        parts.add_estimate(memory.estimates, played.action, played.state, proxy / saved[0])


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if memory.arrived[0] < memory.history:
        memory.losses[played.state] += loss
        memory.counts[played.state] += 1.0
        memory.arrived[0] += 1


add_rule(SurrogateMemory, policy, parts.remember_estimate, learn, see)
