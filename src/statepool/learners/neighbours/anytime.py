"""Pooled exponential weights that set their own rate, from what the run has cost or from what its estimates say.

*Anytime*: pooled exponential weights whose rate follows what the run has cost so far; any delays, nothing known ahead.

    G = .6 (m - 1 + sum_{s<t} (v_s - 1)) + D_t        m = min(K, S)        rate = min(1/2, sqrt(log K / 2G'))
    x(a) ∝ exp(-rate · L(a))        L(a) += P(s|a) · X / q(s)        q(s) as of the round played

D_t counts every outstanding outcome in every round. G' is G when the rate last fell, and a sixty-fourth more: the rate
falls when G has passed that, so a policy stands until an outcome or such a step changes it. With `skip` a round that
is waited for too long is given up (`outstanding`). Without `pooled` an outcome is learnt of the action played alone and
v = K.

Source: ours; guarantee: Theorems A and A-skip, docs/theory.md. Without `pooled` it is delay-adaptive EXP3 and stands
for Cesa-Bianchi, Gentile & Mansour 2019, Thune et al. 2019, Bistritz et al. 2019 and György & Joulani 2021, whose own
rates need a cap, a bound on the delays or an epoch's restart that Theorem A does without.

*Certified* is AdaHedge on delayed, pooled estimates; nothing to set, and the run itself says what its regret is below.

    on arrival   c(a) = P(s|a) · X / q(s)    mix = -(1/rate) log sum_a x(a) exp(-rate · c(a))    at today's x and rate
                 sum += X - mix        B = max(B, sum)        rate = log K / B        L += c
    policy       x(a) ∝ exp(-rate · L(a))        at first sum = B = b0 = 2 log K

    certificate  2B - b0 + outcomes that have not come: in the mean over runs, no less than the regret (Theorem C)
    guard        when 2B > A_t + 2 b0 + 4, A_t the bound of Theorem A for the rounds so far, `Anytime` starts afresh

Source: ours; proof and what it assumes: docs/theory.md. AdaHedge is de Rooij et al. 2014; with full information and
delays it is kin to AdaHedgeD of Flaspohler et al. 2021 (recalled, not read). Its mix loss uses today's policy, so an
outcome cannot be taken back: for simulation only.
"""

from math import log as natural_log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Bools, Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, add_scaled, effective_dimension, log, lowest, softmin
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

FIRST_BOUND = 2.0
"""b0 in units of log K: the first rate is 1/2."""

SLACK = 4.0
NEVER = -1

LEDGER = np.dtype(
    [("sum", "f8"), ("bound", "f8"), ("rate", "f8"), ("covered", "f8"), ("dimension", "f8"), ("spread", "f8"),
     ("mass", "f8"), ("low", "f8"), ("round", "i8"), ("rang", "i8"), ("in_flight", "i8"), ("changed", "?"),
     ("stale", "?")],
    align=True,
)  # fmt: skip


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
        return AnytimeMemory(estimates, np.ones(1, np.bool_), outstanding, pace, width, natural_log(K))


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


def policy_anytime(memory: Any, rows: Any, t: int, out: Any) -> None:
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


def learn_anytime(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if parts.count_arrival(memory.outstanding, played.t) and loss > 0.0:
        parts.add_estimate(memory.estimates, played.action, played.state, loss / saved[0])
        memory.changed[0] = True


add_rule(AnytimeMemory, policy_anytime, parts.remember_estimate, learn_anytime, parts.see_round)


class CertifiedMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    x: Floats
    """The policy that follows from them."""
    columns: Floats
    outstanding: parts.Outstanding
    ledger: Any
    """One record of LEDGER: `mass` is the sum of weights relative to that of the smallest total, `low`; `changed` while
    `x` is of other totals or another rate, `stale` while `dimension` is; `rang` the last round before the guard rang;
    `spread`, the sum of v - 1, is counted from there."""
    log_actions: float
    width: float


@parts.settled
class Certified(Learner):
    """Nothing to set, and `run.certificate` is a figure that the expected regret is below. Simulation only.

    >>> import statepool as sp
    >>> sp.learners.Certified()
    Certified()
    """

    def start(self, problem: Problem) -> CertifiedMemory:
        log_actions = natural_log(max(problem.n_actions, 2))  # one action has nothing to learn, at any rate
        ledger = np.zeros(1, LEDGER)
        ledger["sum"] = ledger["bound"] = FIRST_BOUND * log_actions
        ledger["rate"], ledger["rang"] = 1 / FIRST_BOUND, NEVER
        ledger["changed"] = ledger["stale"] = True
        return CertifiedMemory(
            np.zeros(problem.n_actions), np.empty(problem.n_actions), problem.columns, parts.start_outstanding(problem),
            ledger, log_actions, float(min(problem.n_actions, problem.n_states) - 1),
        )  # fmt: skip

    def certificate(self, memory: CertifiedMemory) -> float:
        """2B - b0 and one for each outcome that has not come; after the guard, Theorem A for the rest."""
        ledger, waiting = memory.ledger[0], memory.outstanding.tally[0]
        own = 2 * float(ledger["bound"]) - FIRST_BOUND * memory.log_actions
        if ledger["rang"] == NEVER:
            return own + int(waiting["active"])
        rest = anytime_bound(memory.log_actions, memory.width, float(ledger["spread"]), float(waiting["waited"]))
        return own + int(ledger["in_flight"]) + float(rest)


@compiled
def _reweigh(memory: Any) -> None:
    """Bring the policy up to date with totals and rate."""
    ledger = memory.ledger[0]
    ledger.changed = False
    ledger.mass, ledger.low = softmin(memory.totals, ledger.rate, memory.x), lowest(memory.totals)


@compiled
def _add_and_mix(memory: Any, state: int, amount: float) -> float:
    """Learn an estimate; its mix loss under the policy before is returned."""
    # The sums of weights before and after, each relative to its own smallest total, are all that the mix loss is.
    ledger = memory.ledger[0]
    mass, low = ledger.mass, ledger.low
    add_scaled(memory.totals, memory.columns[state], min(amount, LARGEST_ESTIMATE))
    _reweigh(memory)
    return log(mass / ledger.mass) / ledger.rate + (ledger.low - low)


@compiled
def _learn_guarded(memory: Any, state: int, loss: float, q: float) -> None:
    """One outcome, while the guard has not rung."""
    ledger = memory.ledger[0]
    if ledger.changed:
        _reweigh(memory)
    ledger.sum += loss - _add_and_mix(memory, state, loss / q)
    if ledger.sum > ledger.bound:
        ledger.bound = ledger.sum
        ledger.rate = memory.log_actions / ledger.bound
        ledger.changed = True
    allowed = anytime_bound(memory.log_actions, memory.width, ledger.spread, memory.outstanding.tally[0].waited)
    if 2.0 * ledger.bound > allowed + 2.0 * FIRST_BOUND * memory.log_actions + SLACK:
        _start_afresh(memory)


@compiled
def _start_afresh(memory: Any) -> None:
    """The guard rings: from the next round on this is `Anytime`, and no earlier round counts."""
    ledger, tally = memory.ledger[0], memory.outstanding.tally[0]
    ledger.rang, ledger.in_flight = ledger.round, tally.active
    ledger.spread, tally.waited, tally.active = 0.0, 0.0, 0
    ledger.rate, ledger.covered = LARGEST_RATE, 0.0
    memory.totals[:] = 0.0
    ledger.changed = True


def policy_certified(memory: Any, rows: Any, t: int, out: Any) -> None:
    ledger = memory.ledger[0]
    ledger.round = t
    parts.begin_round(memory.outstanding, t)
    if ledger.rang >= 0:
        cost = cost_so_far(memory.width, ledger.spread, memory.outstanding.tally[0].waited)
        if slow_down(ledger, memory.log_actions, cost):
            ledger.changed = ledger.stale = True
    if ledger.changed:
        _reweigh(memory)
    if ledger.stale:
        ledger.stale = False
        ledger.dimension = effective_dimension(memory.columns, memory.x)
    ledger.spread += ledger.dimension - 1.0
    for a in range(out.size):
        out[a] = memory.x[a]


def learn_certified(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    ledger = memory.ledger[0]
    if played.t > ledger.rang:
        parts.count_arrival(memory.outstanding, played.t)
        if loss > 0.0:
            ledger.stale = True
            if ledger.rang >= 0:
                add_scaled(memory.totals, memory.columns[played.state], min(loss / saved[0], LARGEST_ESTIMATE))
                ledger.changed = True
            else:
                _learn_guarded(memory, played.state, loss, saved[0])


add_rule(CertifiedMemory, policy_certified, parts.remember_state, learn_certified, parts.see_round)
