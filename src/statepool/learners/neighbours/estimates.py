"""Exponential weights on other estimates than State-EXP3's: what its neighbours learn from an outcome.

*AuerEXP3*, EXP3 as first published, takes gains instead of losses and mixes in uniform exploration.

    G(A) += (1 - X) / x(A)        x(a) = (1 - γ) exp(γ G(a)/K) / sum_b exp(γ G(b)/K) + γ/K

γ is `exploration`, min(1, sqrt(K log K / ((e - 1) T))) by default.
Source: Auer et al. 2002; guarantee: 2.63 sqrt(K T log K) without delay (recalled). Differs from the source: an
outcome is divided by the probability of the round played, so that it may come late.

*CoinGraph* has a stochastic feedback graph in place of pooling, to show what pooling is worth.

    L(a) += coin(a) · X / q(s)        coin(a) = 1 with probability P(s|a), drawn for each action by itself

An action is "seen" when its own coin falls. The mean over the coins is State-EXP3's estimate, the second moment under
the policy is the number of states instead of the dimension v: pooling is Rao–Blackwell for this graph. With a
deterministic map the coins are certain and both are EXP3.G on cliques (Alon et al. 2015).
Source: ours, after the stochastic feedback graphs of Esposito et al. 2022 and Alon et al. 2015 (with known edges).
The coins come from a second stream, so the first stays paired with the other arms.

*DelayAdapted* divides by the larger of the probability of the round played and today's.

    G(s) += X / max(q then(s), q now(s))        `pooled` off: L(A) += X / max(x then(A), x now(A))

Under today's policy the expected estimate is at most X, so no rate is too large for the delay; it is biased low.
Source: Levy et al. 2025 (EXP4-DALE), recalled; here the policies are the constant ones, and the rate is the package's
default. With no delay it is the plain learner, bit for bit. Its bound, O(sqrt(KT log N) + sqrt(D log N)) for N
policies, is of the action-level form (abstract only); the pooled form is measured, not proved.

*Evolving* learns a guess from the state at once, and corrects it when the outcome comes.

    at once      G(s) += h(s) / q(s)              h(s) = (sum(s) + 1)/(count(s) + 2) of the outcomes so far
    on arrival   G(s) += (X - h(s)) / q(s)        h, q as of the round played

Source: Bar-On & Mansour 2025, abstract only, in a form of two steps: the state is the only observation before the
outcome. Their bound, of the order of sqrt(KT + d Lambda2), is for exact losses at the action level; pooled it is not
proved, since taking back a guess has no bound on one side. With no delay a guess cancels before the next action and
this is State-EXP3 up to rounding.

*SurrogateIndex* learns once what each state is worth, then relies on that for ever.

    until `history` outcomes have come   the uniform policy
    then                                 freeze h(s) = mean loss of the state (1/2 where none came), and run EXP3 that
                                         learns h(s) at once: G(s) += h(s)/q(s)

Source: Athey et al. 2019 (the surrogate index), recalled; as a bandit it is ours. It shows what a frozen proxy costs:
regret <= history + d + EXP3's without delay + 2 sum_t max_s |theta_t(s) - h(s)|, linear where means move.
"""

from math import e, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, check_number
from statepool.kernels import LARGEST_ESTIMATE, dot, softmin
from statepool.learners import parts
from statepool.learners.action_exp3 import ActionMemory, start_actions
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.rates import default_rate


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


class CoinMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    columns: Floats
    generator: np.random.Generator
    rate: float


@parts.settled
class CoinGraph(Learner):
    """A stochastic feedback graph whose mean is pooling: coins decide which actions learn from an outcome.

    >>> import statepool as sp
    >>> sp.learners.CoinGraph(rate=0.1)
    CoinGraph(rate=0.1)
    """

    rate: float | None = None

    def start(self, problem: Problem) -> CoinMemory:
        rate = problem.rate(self.rate, width=problem.n_states)
        return CoinMemory(np.zeros(problem.n_actions), problem.columns, problem.stream.side_generator(), rate)


def policy_coins(memory: Any, rows: Any, t: int, out: Any) -> None:
    softmin(memory.totals, memory.rate, out)


def learn_coins(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        for a in range(memory.totals.size):
            if memory.generator.random() < memory.columns[played.state, a]:
                memory.totals[a] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(CoinMemory, policy_coins, parts.remember_state, learn_coins)


class AdaptedMemory(NamedTuple):
    estimates: parts.Estimates
    columns: Floats
    today: Floats
    """Room for today's policy."""
    rate: float


@parts.settled
class DelayAdapted(Learner):
    """Divide by the larger of the probability of the round played and today's.

    >>> import statepool as sp
    >>> sp.learners.DelayAdapted(pooled=False)
    DelayAdapted(pooled=False, rate=None)
    """

    pooled: bool = True
    rate: float | None = None

    def start(self, problem: Problem) -> AdaptedMemory:
        rate = problem.rate(self.rate, width=problem.n_states if self.pooled else problem.n_actions)
        estimates = parts.start_estimates(problem, self.pooled)
        return AdaptedMemory(estimates, problem.columns, np.empty(problem.n_actions), rate)


def learn_adapted(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        parts.weigh(memory.estimates, memory.columns, memory.rate, memory.today)
        now = parts.probability(memory.estimates, memory.columns, memory.today, played.action, played.state)
        parts.add_estimate(memory.estimates, played.action, played.state, loss / max(saved[0], now))


add_rule(AdaptedMemory, parts.policy_of_estimates, parts.remember_estimate, learn_adapted)


class EvolvingMemory(NamedTuple):
    estimates: parts.Estimates
    losses: Floats
    counts: Floats
    """Of the outcomes that have come, by state."""
    rate: float


@parts.settled
class Evolving(Learner):
    """Learn a guess from the state at once, and correct it when the outcome comes.

    >>> import statepool as sp
    >>> sp.learners.Evolving()
    Evolving(rate=None)
    """

    rate: float | None = None

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 2, 0

    def start(self, problem: Problem) -> EvolvingMemory:
        S, estimates = problem.n_states, parts.start_estimates(problem, pooled=True)
        return EvolvingMemory(estimates, np.zeros(S), np.zeros(S), problem.rate(self.rate, width=S))


def remember_evolving(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = min(1.0 / dot(policy, rows.columns[state]), LARGEST_ESTIMATE)
    saved[1] = (memory.losses[state] + 1.0) / (memory.counts[state] + 2.0)


def see_evolving(memory: Any, played: Any, saved: Any) -> None:
    parts.add_estimate(memory.estimates, played.action, played.state, saved[1] * saved[0])


def learn_evolving(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.losses[played.state] += loss
    memory.counts[played.state] += 1.0
    parts.add_estimate(memory.estimates, played.action, played.state, (loss - saved[1]) * saved[0])


add_rule(EvolvingMemory, parts.policy_of_estimates, remember_evolving, learn_evolving, see_evolving)


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


def see_index(memory: Any, played: Any, saved: Any) -> None:
    if memory.arrived[0] == memory.history:
        n = memory.counts[played.state]
        proxy = memory.losses[played.state] / n if n > 0.0 else 0.5
        parts.add_estimate(memory.estimates, played.action, played.state, proxy / saved[0])


def learn_index(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if memory.arrived[0] < memory.history:
        memory.losses[played.state] += loss
        memory.counts[played.state] += 1.0
        memory.arrived[0] += 1


add_rule(SurrogateMemory, parts.policy_of_estimates, parts.remember_estimate, learn_index, see_index)
