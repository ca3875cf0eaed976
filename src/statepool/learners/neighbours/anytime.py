"""Anytime: pooled exponential weights whose rate follows what the run has cost so far; any delays, nothing known ahead.

    G = .6 (m - 1 + sum_{s<t} (v_s - 1)) + D_t        m = min(K, S)        rate = min(1/2, sqrt(log K / 2G'))
    x(a) ∝ exp(-rate · L(a))        L(a) += P(s|a) · X / q(s)        q(s) as of the round played

D_t counts every outstanding outcome in every round. G' is G when the rate last fell, and a sixty-fourth more: the rate
falls when G has passed that, so a policy stands until an outcome or such a step changes it. With `skip` a round that
is waited for too long is given up (`outstanding`). Without `pooled` an outcome is learnt of the action played alone and
v = K.

Source: ours; guarantee: Theorems A and A-skip, docs/theory.md. Without `pooled` it is delay-adaptive EXP3 and stands
for Cesa-Bianchi, Gentile & Mansour 2019, Thune et al. 2019, Bistritz et al. 2019 and György & Joulani 2021, whose own
rates need a cap, a bound on the delays or an epoch's restart that Theorem A does without.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Bools
from statepool.compiling import compiled
from statepool.kernels import effective_dimension
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule

LARGEST_RATE = 0.5
SPREAD_COST = 0.6
"""A bound of (e^r - 1 - r)/r² at rates r up to 1/2."""

STEP = 65 / 64
"""A rate is set for that many times what was spent so far, and stands until this is spent."""

STEPPED = 8.07
"""At least 2 (1 + sqrt(STEP))²; it would be 8 if the rate fell in every round."""

PACE = np.dtype([("rate", "f8"), ("covered", "f8"), ("dimension", "f8"), ("spread", "f8")], align=True)


class AnytimeMemory(NamedTuple):
    estimates: parts.Estimates
    changed: Bools
    """Whether the estimates or the rate have changed since the last policy."""
    outstanding: parts.Outstanding
    pace: Any
    """One record of PACE: the rate and the cost it was set for, v of the policy, the sum of v - 1."""
    width: float
    log_actions: float


@parts.settled
class Anytime(Learner):
    """Exponential weights whose rate follows what the run has cost so far: no horizon, delay or budget to give.

    >>> import statepool as sp
    >>> sp.learners.Anytime(skip=True).skip
    True
    """

    pooled: bool = True
    skip: bool = False

    def start(self, problem: Problem) -> AnytimeMemory:
        K, pace = problem.n_actions, np.zeros(1, PACE)
        pace["rate"] = LARGEST_RATE
        width = float((min(K, problem.n_states) if self.pooled else K) - 1)  # the largest v - 1 there can be
        estimates, outstanding = (
            parts.start_estimates(problem, self.pooled),
            parts.start_outstanding(problem, self.skip),
        )
        return AnytimeMemory(estimates, np.ones(1, np.bool_), outstanding, pace, width, log(K))


@compiled
def cost_so_far(width: float, spread: float, waited: float) -> float:
    """G of Theorem A."""
    return SPREAD_COST * (width + spread) + waited


@compiled
def slow_down(pace: Any, log_actions: float, cost: float) -> bool:
    """Let the rate fall to what Theorem A asks for after that cost, if it has to; whether it did."""
    if cost <= pace.covered:
        return False
    pace.covered = STEP * cost
    pace.rate = min(LARGEST_RATE, np.sqrt(log_actions / (2.0 * pace.covered)))
    return True


@compiled
def anytime_bound(log_actions: float, width: float, spread: float, waited: float) -> float:
    """What Theorem A says of the adaptive rate after that cost."""
    return np.sqrt(STEPPED * log_actions * cost_so_far(width, spread, waited)) + 2.0 * log_actions


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    pace = memory.pace[0]
    parts.begin_round(memory.outstanding, t)
    cost = cost_so_far(memory.width, pace.spread, memory.outstanding.tally[0].waited)
    memory.changed[0] |= slow_down(pace, memory.log_actions, cost)
    if memory.changed[0] or rows.vary:
        memory.changed[0] = False
        parts.weigh(memory.estimates, rows.columns, pace.rate, out)
        pace.dimension = memory.width + 1.0
        if memory.estimates.pooled:
            pace.dimension = effective_dimension(rows.columns, out)
    pace.spread += pace.dimension - 1.0


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if parts.count_arrival(memory.outstanding, played.t) and loss > 0.0:
        parts.add_estimate(memory.estimates, played.action, played.state, loss / saved[0])
        memory.changed[0] = True


add_rule(AnytimeMemory, policy, parts.remember_estimate, learn, parts.see_round)
