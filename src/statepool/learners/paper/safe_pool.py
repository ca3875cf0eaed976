"""Safe-Pool: pool only the actions whose estimated rows are certified to be good enough, learn the others alone.

Per round it weighs, over prefixes of the actions sorted by how well their rows are known, the variance saved
against the bias risked, and abstains (action-level EXP3) unless pooling is cheaper:

    abstain   rate/2 · K
    pool      rate/2 [(K - n) + 2 sum_pooled x_a sum_s P_hat(s|a)²/q_hat(s)] + 4 r1 + 4 rho

r1 and r_inf bound a row's error in total and in any entry; rho bounds the denominator's relative error,
u/(q_hat - u) with u = <x, r_inf>. `certified` radii hold with high probability; the others are a heuristic.
Source: the paper's released study 4.
Differs from the source: rounds that must abstain are recognised early, without the same sums.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Bools, Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import dot, lowest, mix_evenly, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class SafePoolMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    counts: parts.MapCounts
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


@parts.settled
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
            np.zeros(K), parts.start_counts(problem), np.empty((S, K)), np.empty(S), np.empty(K),
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
        parts.estimate_column(memory.counts, s, memory.estimate[s])
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


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    softmin(memory.totals, memory.rate, out)
    mix_evenly(memory.mixing, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    parts.save_alone(policy, choice, saved)
    _choose_pooled(memory, policy)
    for a in range(saved.size):
        if memory.pooled[a]:
            saved[a] = memory.estimate[state, a] / memory.q[state]


def see(memory: Any, played: Any, saved: Any) -> None:
    memory.n_pooled[0] += memory.pooled.sum()
    parts.count_pair(memory.counts, played.action, played.state)
    _set_radii(memory, played.action)


add_rule(SafePoolMemory, policy, remember, parts.learn_saved, see)
