"""The paper's baselines: each leaves out something that State-EXP3 has, or is handed what no learner has.

*EXP3-IX* is action-level EXP3 with implicit exploration, a little bias for much less variance (Neu 2015).

    L(A) += X / (x(A) + rate/2)

*Naive sharing* pools like State-EXP3, but divides by the probability of the state under the uniform policy. It is
biased as soon as the policy is not uniform: kept to show what the right denominator is worth.

    G(s) += X / mean_b P(s|b)        x(a) ∝ exp(-rate · (P G)(a))

*Best state* finds the state with the lowest mean loss and plays the action most likely to lead to it: .92 on that
action, .08 spread evenly; a state not seen yet counts as 1/2. It is a heuristic, and what optimising clicks amounts to:
it never weighs a mixture of good states, and nothing in it notices when that is what the best action offers.

Two oracles, for simulation only, are handed the stale loss vector m_t = c_{t-d}, which Theorem 2 says is not enough.
*GreedyStale* plays argmin m_t, the first of equals; *OptimisticStale* is action-level EXP3 that plays on L + m_t.

Source: paper, Appendix E and its baseline study. Differs from the source: nothing.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, TIE, combine, lowest_index, mix_evenly, softmin
from statepool.learners import parts
from statepool.learners.action_exp3 import ActionMemory, start_actions
from statepool.learners.contract import Learner, Problem, add_rule


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


class NaiveMemory(NamedTuple):
    estimates: parts.Estimates
    rate: float


@parts.settled
class NaiveSharing(Learner):
    """Pooled with the wrong denominator, that of the uniform policy, to show what the right one is worth.

    >>> import statepool as sp
    >>> sp.learners.NaiveSharing(rate=0.1)
    NaiveSharing(rate=0.1)
    """

    rate: float | None = None

    def start(self, problem: Problem) -> NaiveMemory:
        rate = problem.rate(self.rate, width=problem.n_states)
        return NaiveMemory(parts.start_estimates(problem, pooled=True), rate)


def remember_naive(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = rows.columns[state].mean()


def learn_naive(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    parts.add_estimate(memory.estimates, played.action, played.state, loss / saved[0])


add_rule(NaiveMemory, parts.policy_of_estimates, remember_naive, learn_naive)


class BestStateMemory(NamedTuple):
    losses: Floats
    counts: Floats
    """Of the outcomes that have come, by state."""
    exploration: float


@parts.settled
class BestState(Learner):
    """Find the state with the lowest mean loss and play the action most likely to lead to it.

    >>> import statepool as sp
    >>> sp.learners.BestState()
    BestState(exploration=0.08)
    """

    exploration: float = 0.08

    def start(self, problem: Problem) -> BestStateMemory:
        return BestStateMemory(np.zeros(problem.n_states), np.zeros(problem.n_states), float(self.exploration))


def policy_best(memory: Any, rows: Any, t: int, out: Any) -> None:
    favourite, lowest = 0, np.inf
    for s in range(memory.counts.size):
        mean = memory.losses[s] / memory.counts[s] if memory.counts[s] > 0.0 else 0.5
        if mean < lowest:
            favourite, lowest = s, mean
    out[:] = 0.0
    out[rows.columns[favourite].argmax()] = 1.0
    mix_evenly(memory.exploration, out)


def learn_best(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.state] += loss
    memory.counts[played.state] += 1.0


add_rule(BestStateMemory, policy_best, learn=learn_best)


class GreedyStaleMemory(NamedTuple):
    theta: Floats
    direct: Floats
    delay: int
    stale: Floats
    """m_t, by action."""


class OptimisticStaleMemory(NamedTuple):
    oracle: GreedyStaleMemory
    losses: Floats
    """L: the cumulative loss estimates, by action."""
    rate: float


@parts.settled
class GreedyStale(Learner):
    """An oracle: it is handed the losses of `delay` rounds ago and plays the best action by them.

    >>> import statepool as sp
    >>> sp.learners.GreedyStale().reads_losses
    True
    """

    reads_losses: ClassVar[bool] = True

    def start(self, problem: Problem) -> GreedyStaleMemory:
        instance = problem.oracle()
        return GreedyStaleMemory(instance.theta, instance.direct, problem.delay, np.empty(problem.n_actions))


@parts.settled
class OptimisticStale(Learner):
    """An oracle: exponential weights with the losses of `delay` rounds ago as a hint.

    >>> import statepool as sp
    >>> sp.learners.OptimisticStale().reads_losses
    True
    """

    rate: float | None = None
    reads_losses: ClassVar[bool] = True

    def start(self, problem: Problem) -> OptimisticStaleMemory:
        rate = problem.rate(self.rate, width=problem.n_actions)
        return OptimisticStaleMemory(GreedyStale().start(problem), np.zeros(problem.n_actions), rate)


@compiled
def _read_vector(oracle: Any, rows: Any, t: int) -> None:
    """m_t; that of round 0 before there is one."""
    combine(rows.columns, oracle.theta[max(t - oracle.delay, 0)], oracle.stale)
    for a in range(oracle.stale.size):
        oracle.stale[a] += oracle.direct[a]


def policy_greedy(memory: Any, rows: Any, t: int, out: Any) -> None:
    _read_vector(memory, rows, t)
    out[:] = 0.0
    out[lowest_index(memory.stale, TIE)] = 1.0


def policy_optimistic(memory: Any, rows: Any, t: int, out: Any) -> None:
    _read_vector(memory.oracle, rows, t)
    hoped = memory.oracle.stale
    for a in range(hoped.size):
        hoped[a] += memory.losses[a]
    softmin(hoped, memory.rate, out)


def learn_optimistic(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.action] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(GreedyStaleMemory, policy_greedy)
add_rule(OptimisticStaleMemory, policy_optimistic, parts.remember_action, learn_optimistic)
