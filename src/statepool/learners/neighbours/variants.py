"""Five variants of State-EXP3, which differ in what is added to the cumulative loss estimates, and when.

    x(a) ∝ exp(-rate · (P G)(a))        G by state; q(s) and x(A) as of the round played

*Evolving* learns a guess from the state at once, and corrects it when the outcome comes.

    at once      G(s) += h(s) / q(s)              h(s) = (sum(s) + 1)/(count(s) + 2) of the outcomes so far
    on arrival   G(s) += (X - h(s)) / q(s)        h as of the round played

Source: Bar-On & Mansour 2025, abstract only, in a form of two steps: the state is the only observation before the
outcome. Their bound, of the order of sqrt(KT + d Lambda2), is for exact losses at the action level; pooled it is not
proved, since taking back a guess has no bound on one side. With no delay a guess cancels before the next action and
this is State-EXP3 up to rounding.

*DelayAdapted* divides by the larger of the probability of the round played and today's.

    G(s) += X / max(q then(s), q now(s))        `pooled` off: L(A) += X / max(x then(A), x now(A))

Under today's policy the expected estimate is at most X, so no rate is too large for the delay; it is biased low.
Source: Levy et al. 2025 (EXP4-DALE), recalled; here the policies are the constant ones, and the rate is the package's
default. With no delay it is the plain learner, bit for bit. Its bound, O(sqrt(KT log N) + sqrt(D log N)) for N
policies, is of the action-level form (abstract only); the pooled form is measured, not proved.

*SurrogateIndex* learns once what each state is worth, then relies on that for ever.

    until `history` outcomes have come   the uniform policy
    then                                 freeze h(s) = mean loss of the state (1/2 where none came), and run EXP3 that
                                         learns h(s) at once: G(s) += h(s)/q(s)

Source: Athey et al. 2019 (the surrogate index), recalled; as a bandit it is ours. It shows what a frozen proxy costs:
regret <= history + d + EXP3's without delay + 2 sum_t max_s |theta_t(s) - h(s)|, linear where means move.

*CoinGraph* has a stochastic feedback graph in place of pooling, to show what pooling is worth.

    L(a) += coin(a) · X / q(s)        coin(a) = 1 with probability P(s|a), drawn for each action by itself

An action is "seen" when its own coin falls. The mean over the coins is State-EXP3's estimate, the second moment under
the policy is the number of states instead of the dimension v: pooling is Rao–Blackwell for this graph. With a
deterministic map the coins are certain and both are EXP3.G on cliques (Alon et al. 2015).
Source: ours, after the stochastic feedback graphs of Esposito et al. 2022 and Alon et al. 2015 (with known edges).
The coins come from a second stream, so the first stays paired with the other arms.

*NaiveSharing* divides by the probability of the state under the uniform policy: G(s) += X / mean_b P(s|b).

Biased as soon as the policy is not uniform: kept to show what the right denominator is worth.
Source: the paper's baseline study. Differs from the source: nothing.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import LARGEST_ESTIMATE, dot, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.rates import default_rate

NONE: Floats = np.empty(0)
NO_COLUMNS: Floats = np.empty((0, 0))


class VariantMemory(NamedTuple):
    """What the variants keep, each as a type of its own; the last five fields only where they are used."""

    losses: Floats
    """G by state, or L by action."""
    totals: Floats
    """Room for P G."""
    rate: float
    pooled: bool = True
    history: int = 0
    has_contexts: bool = False
    sums: Floats = NONE
    counts: Floats = NONE
    """Of the outcomes that have come, by state."""
    columns: Floats = NO_COLUMNS
    today: Floats = NONE
    """Room for today's policy."""


class EvolvingMemory(VariantMemory):
    pass


class AdaptedMemory(VariantMemory):
    pass


class SurrogateMemory(VariantMemory):
    pass


class NaiveMemory(VariantMemory):
    pass


class CoinMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    columns: Floats
    generator: np.random.Generator
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
        K, S = problem.n_actions, problem.n_states
        rate = problem.rate(self.rate, width=S)
        return EvolvingMemory(np.zeros(S), np.empty(K), rate, sums=np.zeros(S), counts=np.zeros(S))


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
        K, width = problem.n_actions, problem.n_states if self.pooled else problem.n_actions
        rate = problem.rate(self.rate, width)
        return AdaptedMemory(
            np.zeros(width), np.empty(K), rate, self.pooled, columns=problem.columns, today=np.empty(K)
        )


@parts.settled
class SurrogateIndex(Learner):
    """Explore uniformly until `history` outcomes have come, then rely for ever on what each state cost in them.

    >>> import statepool as sp
    >>> sp.learners.SurrogateIndex(history=100).history
    100
    """

    history: int = 200

    def start(self, problem: Problem) -> SurrogateMemory:
        K, S = problem.n_actions, problem.n_states
        rate = default_rate(K, S, problem.known_horizon(), 0)  # the index is learnt without delay
        return SurrogateMemory(
            np.zeros(S), np.empty(K), rate, history=self.history, sums=np.zeros(S), counts=np.zeros(S)
        )


@parts.settled
class NaiveSharing(Learner):
    """Pooled with the wrong denominator, that of the uniform policy, to show what the right one is worth.

    >>> import statepool as sp
    >>> sp.learners.NaiveSharing(rate=0.1)
    NaiveSharing(rate=0.1)
    """

    rate: float | None = None
    knows_contexts: ClassVar[bool] = True
    runs_live: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("totals",)
    needs_state_probability: ClassVar[bool] = True

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return (0, problem.n_states) if problem.has_contexts else (1, 0)

    def start(self, problem: Problem) -> NaiveMemory:
        S = problem.n_states
        rate = problem.rate(self.rate, width=S)
        return NaiveMemory(np.zeros(S), np.empty(problem.n_actions), rate, has_contexts=problem.has_contexts)


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


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    parts.weigh(memory, rows.columns, memory.rate, out)


def policy_coins(memory: Any, rows: Any, t: int, out: Any) -> None:
    softmin(memory.totals, memory.rate, out)


def remember_evolving(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = min(1.0 / dot(policy, rows.columns[state]), LARGEST_ESTIMATE)
    saved[1] = (memory.sums[state] + 1.0) / (memory.counts[state] + 2.0)


def see_evolving(memory: Any, played: Any, saved: Any) -> None:
    memory.losses[played.state] += saved[1] * saved[0]


def learn_evolving(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.sums[played.state] += loss
    memory.counts[played.state] += 1.0
    memory.losses[played.state] += (loss - saved[1]) * saved[0]


def remember_adapted(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    saved[0] = parts.probability(memory, rows.columns, policy, choice, state)


def learn_adapted(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        parts.weigh(memory, memory.columns, memory.rate, memory.today)
        now = parts.probability(memory, memory.columns, memory.today, played.action, played.state)
        parts.add_estimate(memory, played.action, played.state, loss / max(saved[0], now))


def see_surrogate(memory: Any, played: Any, saved: Any) -> None:
    if memory.counts.sum() == memory.history:
        n = memory.counts[played.state]
        proxy = memory.sums[played.state] / n if n > 0.0 else 0.5
        parts.add_estimate(memory, played.action, played.state, proxy / saved[0])


def learn_surrogate(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if memory.counts.sum() < memory.history:
        memory.sums[played.state] += loss
        memory.counts[played.state] += 1.0


def remember_naive(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    if memory.has_contexts:
        for s in range(memory.losses.size):
            saved[s] = rows.columns[s].mean()
    else:
        saved[0] = rows.columns[state].mean()


def learn_naive(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        share = saved[played.state] if memory.has_contexts else saved[0]
        memory.losses[played.state] += sign * min(loss / share, LARGEST_ESTIMATE)


def learn_coins(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        for a in range(memory.totals.size):
            if memory.generator.random() < memory.columns[played.state, a]:
                memory.totals[a] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(EvolvingMemory, policy, remember_evolving, learn_evolving, see_evolving)
add_rule(AdaptedMemory, policy, remember_adapted, learn_adapted)
add_rule(SurrogateMemory, policy, parts.remember_state, learn_surrogate, see_surrogate)
add_rule(NaiveMemory, policy, remember_naive, learn_naive)
add_rule(CoinMemory, policy_coins, parts.remember_state, learn_coins)
