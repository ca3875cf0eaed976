"""Learners that estimate the action-to-state map from the pairs seen so far, and learn a loss of each action.

P_hat(s|a) = (pairs(a, s) + smoothing) / (visits(a) + smoothing · |S|)        x(a) ∝ exp(-rate · L(a))

*Plug-in* is State-EXP3 with the map of earlier rounds.

    L(a) += P_hat(s|a) · X / q_hat(s)        P_hat and q_hat = x P_hat both as of the round played

*Counted denominator* freezes the policy for a block, counts states in its first half and pools in its second. Does
dividing by a state's counted frequency beat dividing by the predicted x·P_hat? First half: action-level estimates.
Second half: plug-in numerators over either denominator. Outcomes are learnt as they come; the policy follows at the
next block.

*Safe-Pool* pools only the actions whose estimated rows are certified to be good enough, and learns the others alone.
Per round it weighs, over prefixes of the actions sorted by how well their rows are known, the variance saved
against the bias risked, and abstains (action-level EXP3) unless pooling is cheaper:

    abstain   rate/2 · K
    pool      rate/2 [(K - n) + 2 sum_pooled x_a sum_s P_hat(s|a)²/q_hat(s)] + 4 r1 + 4 rho

r1 and r_inf bound a row's error in total and in any entry; rho bounds the denominator's relative error,
u/(q_hat - u) with u = <x, r_inf>. `certified` radii hold with high probability; the others are a heuristic.

A decision saves one number for each action, because the numerators of the round played are not recomputed.
Source: the paper's released studies 2, 5 and 4. Differs from the source: Safe-Pool recognises rounds that must abstain
early, without the same sums.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Bools, Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import add_scaled, dot, lowest, mix_evenly, softmin
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.parts import settled

SMOOTHING = 0.01
"""Added to the count of each pair, where nothing else is set."""
_SMALLEST_FREQUENCY = 1e-6


class MapCounts(NamedTuple):
    pairs: Floats
    """One row for each state, one column for each action."""
    visits: Floats
    """By action."""
    smoothing: float


def start_counts(problem: Problem, smoothing: float = SMOOTHING) -> MapCounts:
    """Nothing seen: every row even."""
    K = problem.n_actions
    return MapCounts(np.zeros((problem.n_states, K)), np.zeros(K), float(smoothing))


@compiled
def count_pair(counts: Any, action: int, state: int) -> None:
    """One more (action, state) pair."""
    counts.pairs[state, action] += 1.0
    counts.visits[action] += 1.0


@compiled
def estimate_column(counts: Any, state: int, out: Any) -> None:
    """P_hat(state|a) for every action, into `out`."""
    spread = counts.smoothing * counts.pairs.shape[0]
    for a in range(out.size):
        out[a] = (counts.pairs[state, a] + counts.smoothing) / (counts.visits[a] + spread)


@compiled
def save_alone(policy: Any, choice: int, saved: Any) -> None:
    """What a loss of the action played is worth to each action, if the action learns alone."""
    saved[:] = 0.0
    saved[choice] = 1.0 / policy[choice]


def policy_of_totals(memory: Any, rows: Any, t: int, out: Any) -> None:
    """Exponential weights on `totals`, with exploration."""
    softmin(memory.totals, memory.rate, out)
    mix_evenly(memory.mixing, out)


def learn_saved(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    """Add the loss to `totals`, where a decision saves what a loss is worth to each action."""
    add_scaled(memory.totals, saved, loss)


class PlugInMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    counts: MapCounts
    rate: float
    mixing: float


@settled
class PlugIn(Learner):
    """`StateEXP3` with the map estimated from the pairs of earlier rounds.

    >>> import statepool as sp
    >>> sp.learners.PlugIn(smoothing=0.1)
    PlugIn(smoothing=0.1, mixing=0.0, rate=None)
    """

    smoothing: float = SMOOTHING
    mixing: float = 0.0
    rate: float | None = None

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return problem.n_actions, 0

    def start(self, problem: Problem) -> PlugInMemory:
        counts, rate = start_counts(problem, self.smoothing), problem.rate(self.rate, width=problem.n_states)
        return PlugInMemory(np.zeros(problem.n_actions), counts, rate, float(self.mixing))


def remember_plug_in(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    estimate_column(memory.counts, state, saved)
    saved /= dot(policy, saved)


def see_plug_in(memory: Any, played: Any, saved: Any) -> None:
    count_pair(memory.counts, played.action, played.state)


add_rule(PlugInMemory, policy_of_totals, remember_plug_in, learn_saved, see_plug_in)


class CountedMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    frozen: Floats
    """The policy of this block."""
    counts: MapCounts
    seen: Floats
    """How often each state was seen in the first half of this block."""
    place: Ints
    """The round's place in its block."""
    block: int
    counted: bool
    rate: float


@settled
class CountedDenominator(Learner):
    """Freeze the policy for a block, count states in its first half, pool in its second.

    >>> import statepool as sp
    >>> sp.learners.CountedDenominator(block=200).block
    200
    """

    denominator: str = "counted"
    block: int = 400
    rate: float | None = None

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, problem.n_actions

    def start(self, problem: Problem) -> CountedMemory:
        K, S = problem.n_actions, problem.n_states
        return CountedMemory(
            np.zeros(K), np.empty(K), start_counts(problem), np.zeros(S), np.zeros(1, np.int64), self.block,
            self.denominator == "counted", problem.rate(self.rate, width=S),
        )  # fmt: skip


@compiled
def denominator_of(memory: Any, state: int, column: Any) -> float:
    """What the second half divides by, for a state whose estimated column is given."""
    if memory.counted:
        return max(memory.seen[state] / (memory.block // 2), _SMALLEST_FREQUENCY)
    return dot(memory.frozen, column)


def policy_counted(memory: Any, rows: Any, t: int, out: Any) -> None:
    memory.place[0] = t % memory.block
    if memory.place[0] == 0:
        memory.seen[:] = 0.0
        softmin(memory.totals, memory.rate, memory.frozen)
    for a in range(out.size):
        out[a] = memory.frozen[a]


def remember_counted(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    if memory.place[0] < memory.block // 2:
        save_alone(policy, choice, saved)
    else:
        estimate_column(memory.counts, state, saved)
        saved /= denominator_of(memory, state, saved)


def see_counted(memory: Any, played: Any, saved: Any) -> None:
    if memory.place[0] < memory.block // 2:
        memory.seen[played.state] += 1.0
    count_pair(memory.counts, played.action, played.state)


add_rule(CountedMemory, policy_counted, remember_counted, learn_saved, see_counted)


class SafePoolMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    counts: MapCounts
    estimate: Floats
    """Room for P_hat, one row for each state."""
    q: Floats
    """Room for the state probabilities by P_hat."""
    row_radii: Floats
    entry_radii: Floats
    pooled: Bools
    """Which actions this round pools."""
    n_pooled: Ints
    """How many (round, action) pairs were pooled so far."""
    certified: bool
    row_scale: float
    entry_scale: float
    rate: float
    mixing: float


@settled
class SafePool(Learner):
    """Pool only the actions whose estimated rows are certified to be good enough; learn the others alone.

    >>> import statepool as sp
    >>> sp.learners.SafePool().certified
    True
    """

    certified: bool = True
    mixing: float = 0.0
    rate: float | None = None

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, problem.n_actions

    def start(self, problem: Problem) -> SafePoolMemory:
        K, S, T = problem.n_actions, problem.n_states, problem.known_horizon()
        rate = problem.rate(self.rate, width=K)
        memory = SafePoolMemory(
            np.zeros(K), start_counts(problem), np.empty((S, K)), np.empty(S), np.empty(K),
            np.empty(K), np.zeros(K, np.bool_), np.zeros(1, np.int64), bool(self.certified),
            2 * (S * log(2) + log(2 * K * T**2)), log(4 * K * S * T**2) / 2, rate, float(self.mixing),
        )  # fmt: skip
        for action in range(K):
            _set_radii.py_func(memory, action)  # type: ignore[attr-defined]
        return memory


@compiled
def _set_radii(memory: Any, action: int) -> None:
    n_states = memory.q.size
    n = max(memory.counts.visits[action], 1.0)
    smoothing = memory.counts.smoothing
    if memory.certified:
        bias = smoothing * (n_states - 1) / (n + smoothing * n_states)
        memory.row_radii[action] = min(2.0, np.sqrt(memory.row_scale / n) + 2.0 * bias)
        memory.entry_radii[action] = min(1.0, np.sqrt(memory.entry_scale / n) + bias)
    else:
        memory.row_radii[action] = min(2.0, np.sqrt(n_states / n))
        memory.entry_radii[action] = min(1.0, np.sqrt(1.0 / n))


@compiled
def _denominator_error(uncertainty: float, q: float) -> float:
    return uncertainty / (q - uncertainty) if q > uncertainty else np.inf


@compiled
def _choose_pooled(memory: Any, policy: Any) -> None:
    """Mark the actions to pool this round; none to abstain."""
    memory.pooled[:] = False
    abstain = memory.rate / 2.0 * policy.size
    uncertainty = dot(policy, memory.entry_radii)
    row_error = lowest(memory.row_radii)
    # The least likely state has at most 1/|S|: most rounds abstain on that alone.
    rho = _denominator_error(uncertainty, 1.0 / memory.q.size)
    if rho > 0.5 or 4.0 * row_error + 4.0 * rho >= abstain:
        return
    for s in range(memory.q.size):
        estimate_column(memory.counts, s, memory.estimate[s])
        memory.q[s] = dot(policy, memory.estimate[s])
        rho = max(rho, _denominator_error(uncertainty, memory.q[s]))
    if rho <= 0.5 and 4.0 * row_error + 4.0 * rho < abstain:
        _choose_prefix(memory, policy, rho, abstain)


@compiled
def _choose_prefix(memory: Any, policy: Any, rho: float, abstain: float) -> None:
    """Grow the pooled set from the best-known row on, rows known equally well together."""
    best, best_radius = abstain, -1.0
    n, moment, radius = 0, 0.0, -1.0
    while n < policy.size:
        following = np.inf
        for a in range(policy.size):
            if memory.row_radii[a] > radius:
                following = min(following, memory.row_radii[a])
        radius = following
        for a in range(policy.size):
            if memory.row_radii[a] == radius:
                n += 1
                for s in range(memory.q.size):
                    moment += policy[a] * memory.estimate[s, a] ** 2 / memory.q[s]
        cost = memory.rate / 2.0 * ((policy.size - n) + 2.0 * moment) + 4.0 * radius + 4.0 * rho
        if cost < best:
            best, best_radius = cost, radius
    for a in range(policy.size):
        memory.pooled[a] = memory.row_radii[a] <= best_radius


def remember_safe(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    save_alone(policy, choice, saved)
    _choose_pooled(memory, policy)
    for a in range(saved.size):
        if memory.pooled[a]:
            saved[a] = memory.estimate[state, a] / memory.q[state]


def see_safe(memory: Any, played: Any, saved: Any) -> None:
    memory.n_pooled[0] += memory.pooled.sum()
    count_pair(memory.counts, played.action, played.state)
    _set_radii(memory, played.action)


add_rule(SafePoolMemory, policy_of_totals, remember_safe, learn_saved, see_safe)
