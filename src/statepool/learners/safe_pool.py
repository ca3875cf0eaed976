"""Safe-Pool: pool only the actions whose estimated rows are certified to be good enough, charge the others alone.

Per round it weighs, over prefixes of the actions sorted by how well their rows are known, the variance saved
against the bias risked, and abstains (action-level EXP3) unless pooling is cheaper:

    abstain   rate/2 · K
    pool      rate/2 [(K - n) + 2 sum_pooled x_a sum_s P_hat(s|a)²/q_hat(s)] + 4 r1 + 4 rho

r1 and r_inf bound a row's error in total and in any entry; rho bounds the denominator's relative error,
u/(q_hat - u) with u = <x, r_inf>. `certified` radii hold with high probability; the others are a heuristic.
Source: the paper's released study 4.
Differs from the source: rounds that must abstain are recognised early, without the
same sums.
"""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, check_number
from statepool.compiling import compiled
from statepool.kernels import dot, lowest
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.map_counts import MapCounts, count_pair, estimate_column, start_counts
from statepool.learners.parts.weights import Weights, charge, distribution, draw, probability, refresh, start_weights
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class SafePool(Learner):
    """Pool only the actions whose estimated rows are certified to be good enough; charge the others alone.

    >>> import statepool as sp
    >>> sp.SafePool().certified
    True
    """

    certified: bool = True
    smoothing: float = 0.01
    mixing: float = 0.0
    rate: float | None = None

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)
        check_number(self.smoothing, "smoothing", 0, 1e9, open_low=True)

    def ticket_width(self, problem: Problem) -> int:
        return problem.n_actions

    def start(self, problem: Problem) -> "SafePoolMemory":
        K, S, T = problem.n_actions, problem.n_states, problem.known_horizon()
        rate = problem.rate(self.rate, width=K)
        memory = SafePoolMemory(
            start_weights(K, rate, self.mixing), start_counts(K, S, self.smoothing), np.empty((S, K)),
            np.empty(S), np.empty(K), np.empty(K), np.empty(K, np.bool_), np.zeros(1, np.int64),
            bool(self.certified), 2 * (S * log(2) + log(2 * K * T**2)), log(4 * K * S * T**2) / 2,
        )  # fmt: skip
        _set_all_radii(memory)
        return memory


class SafePoolMemory(NamedTuple):
    weights: Weights
    counts: MapCounts
    estimate: Floats
    q: Floats
    row_radii: Floats
    entry_radii: Floats
    pooled: Any
    n_pooled: Any
    """How many (round, action) pairs were pooled so far."""
    certified: bool
    row_scale: float
    entry_scale: float


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
def _set_all_radii(memory: Any) -> None:
    for a in range(memory.row_radii.size):
        _set_radii(memory, a)


@compiled
def _denominator_error(uncertainty: float, q: float) -> float:
    return uncertainty / (q - uncertainty) if q > uncertainty else np.inf


@compiled
def _choose_pooled(memory: Any) -> bool:
    """Mark the actions to pool this round; False to abstain."""
    rate, x_sum = memory.weights.rate, memory.weights.sums[0]
    weights = memory.weights.weights[0]
    abstain = rate / 2.0 * weights.size
    uncertainty = dot(weights, memory.entry_radii) / x_sum
    row_error = lowest(memory.row_radii)
    # The least likely state has at most 1/|S|: most rounds abstain on that alone.
    rho = _denominator_error(uncertainty, 1.0 / memory.q.size)
    if rho > 0.5 or 4.0 * row_error + 4.0 * rho >= abstain:
        return False
    for s in range(memory.q.size):
        estimate_column(memory.counts, s, memory.estimate[s])
        memory.q[s] = dot(weights, memory.estimate[s]) / x_sum
        rho = max(rho, _denominator_error(uncertainty, memory.q[s]))
    if rho > 0.5 or 4.0 * row_error + 4.0 * rho >= abstain:
        return False
    return _best_prefix(memory, rho, abstain)


@compiled
def _best_prefix(memory: Any, rho: float, abstain: float) -> bool:
    """Grow the pooled set from the best-known row on, rows known equally well together."""
    rate, x_sum = memory.weights.rate, memory.weights.sums[0]
    weights = memory.weights.weights[0]
    best, best_radius = abstain, -1.0
    n, moment, radius = 0, 0.0, -1.0
    while n < weights.size:
        following = np.inf
        for a in range(weights.size):
            if memory.row_radii[a] > radius:
                following = min(following, memory.row_radii[a])
        radius = following
        for a in range(weights.size):
            if memory.row_radii[a] == radius:
                n += 1
                for s in range(memory.q.size):
                    moment += weights[a] / x_sum * memory.estimate[s, a] ** 2 / memory.q[s]
        cost = rate / 2.0 * ((weights.size - n) + 2.0 * moment) + 4.0 * radius + 4.0 * rho
        if cost < best:
            best, best_radius = cost, radius
    for a in range(weights.size):
        memory.pooled[a] = memory.row_radii[a] <= best_radius
    return best_radius >= 0.0


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[:] = 0.0
    ticket[action] = 1.0 / probability(memory.weights, 0, action)
    if _choose_pooled(memory):
        for a in range(ticket.size):
            if memory.pooled[a]:
                ticket[a] = memory.estimate[state, a] / memory.q[state]
                memory.n_pooled[0] += 1
    count_pair(memory.counts, action, state)
    _set_radii(memory, action)


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    charge(memory.weights, 0, ticket, loss)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(SafePoolMemory, act, observe, update, play)
