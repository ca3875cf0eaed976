"""Certified: AdaHedge on delayed, pooled estimates; nothing to set, and the run itself says what its regret is below.

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

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, add_scaled, effective_dimension, log, lowest, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.neighbours.anytime import LARGEST_RATE, anytime_bound, cost_so_far, slow_down

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


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
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


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
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


add_rule(CertifiedMemory, policy, parts.remember_state, learn, parts.see_round)
