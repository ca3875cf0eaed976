"""Certified: AdaHedge on delayed, pooled estimates; nothing to set, and the run itself says what its regret is below.

    on arrival   c(a) = P(s|a) · X / q(s)    mix = -(1/rate) log sum_a x(a) exp(-rate · c(a))    at today's x and rate
                 sum += X - mix        B = max(B, sum)        rate = log K / B        L += c
    play         x(a) ∝ exp(-rate · L(a))        at first sum = B = b0 = 2 log K

    certificate  2B - b0 + outcomes that have not come: in the mean over runs, no less than the regret (Theorem C)
    guard        when 2B > A_t + 2 b0 + 4, A_t the bound of Theorem A for what was played, `Anytime` starts afresh

Source: ours; proof and what it assumes: docs/theory.md. AdaHedge is de Rooij et al. 2014; with full information and
delays it is kin to AdaHedgeD of Flaspohler et al. 2021 (recalled, not read). Its mix loss uses today's play, so an
outcome cannot be taken back: for simulation only.
"""

from dataclasses import dataclass
from math import log as natural_log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import effective_dimension, log
from statepool.learners.anytime import LARGEST_RATE, anytime_bound, cost_so_far, slow_down
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.outstanding import Outstanding, begin_round, count_arrival, count_play, start_outstanding
from statepool.learners.parts.weights import Weights, charge, distribution, draw, reach, reweigh_at, start_weights
from statepool.learners.rules import add_rule

FIRST_BOUND = 2.0
"""b0 in units of log K: the first rate is 1/2."""

SLACK = 4.0
NEVER = -1

LEDGER = np.dtype(
    [("sum", "f8"), ("bound", "f8"), ("rate", "f8"), ("covered", "f8"), ("dimension", "f8"), ("spread", "f8"),
     ("round", "i8"), ("rang", "i8"), ("in_flight", "i8"), ("stale", "?")],
    align=True,
)  # fmt: skip


@dataclass(frozen=True)
class Certified(Learner):
    """Nothing to set, and `run.certificate` is a figure that the expected regret is below. Simulation only.

    >>> import statepool as sp
    >>> sp.Certified()
    Certified()
    """

    def start(self, problem: Problem) -> "CertifiedMemory":
        log_actions = natural_log(max(problem.n_actions, 2))  # one action has nothing to learn, at any rate
        ledger = np.zeros(1, LEDGER)
        ledger["sum"] = ledger["bound"] = FIRST_BOUND * log_actions
        ledger["rate"], ledger["stale"], ledger["rang"] = 1 / FIRST_BOUND, True, NEVER
        return CertifiedMemory(
            start_weights(problem.n_actions, 0.0), problem.columns, start_outstanding(problem), ledger, log_actions,
            float(min(problem.n_actions, problem.n_states) - 1),
        )  # fmt: skip

    def certificate(self, memory: "CertifiedMemory") -> float:
        """2B - b0 and one for each outcome that has not come; after the guard, Theorem A for the rest."""
        ledger, waiting = memory.ledger[0], memory.outstanding.tally[0]
        own = 2 * float(ledger["bound"]) - FIRST_BOUND * memory.log_actions
        if ledger["rang"] == NEVER:
            return own + int(waiting["active"])
        rest = anytime_bound(memory.log_actions, memory.width, float(ledger["spread"]), float(waiting["waited"]))
        return own + int(ledger["in_flight"]) + float(rest)


class CertifiedMemory(NamedTuple):
    weights: Weights
    columns: Floats
    outstanding: Outstanding
    ledger: Any
    """One record of LEDGER: `stale` while `dimension` is that of an earlier play, `rang` the last round before the
    guard rang; `spread`, the sum of v - 1, is counted anew from there."""
    log_actions: float
    width: float


@compiled
def charge_and_mix(weights: Any, rate: float, column: Any, amount: float) -> float:
    """Charge the totals; the mix loss of the charge under the play before it is returned."""
    # The sums of weights before and after, each relative to its own reference, are all that the mix loss is.
    before, reference = weights.sums[0], weights.references[0]
    charge(weights, 0, column, amount)
    reweigh_at(weights, 0, rate)
    return log(before / weights.sums[0]) / rate + (weights.references[0] - reference)


@compiled
def learn(memory: Any, state: int, loss: float, reached: float) -> None:
    """One outcome, while the guard has not rung."""
    ledger, weights = memory.ledger[0], memory.weights
    if weights.changed[0]:
        reweigh_at(weights, 0, ledger.rate)
    ledger.sum += loss - charge_and_mix(weights, ledger.rate, memory.columns[state], loss / reached)
    if ledger.sum > ledger.bound:
        ledger.bound = ledger.sum
        ledger.rate = memory.log_actions / ledger.bound
        weights.changed[0] = True
    allowed = anytime_bound(memory.log_actions, memory.width, ledger.spread, memory.outstanding.tally[0].waited)
    if 2.0 * ledger.bound > allowed + 2.0 * FIRST_BOUND * memory.log_actions + SLACK:
        start_afresh(memory)


@compiled
def start_afresh(memory: Any) -> None:
    """The guard rings: from the next round on this is `Anytime`, and no earlier round counts."""
    ledger, tally = memory.ledger[0], memory.outstanding.tally[0]
    ledger.rang, ledger.in_flight = ledger.round, tally.active
    ledger.spread, tally.waited, tally.active = 0.0, 0.0, 0
    ledger.rate, ledger.covered = LARGEST_RATE, 0.0
    memory.weights.totals[0, :] = 0.0
    memory.weights.references[0] = 0.0
    memory.weights.changed[0] = True


def act(memory: Any, t: int, u: float) -> int:
    ledger, weights = memory.ledger[0], memory.weights
    ledger.round = t
    begin_round(memory.outstanding, t)
    if ledger.rang >= 0:
        cost = cost_so_far(memory.width, ledger.spread, memory.outstanding.tally[0].waited)
        if slow_down(ledger, memory.log_actions, cost):
            weights.changed[0] = ledger.stale = True
    if weights.changed[0]:
        reweigh_at(weights, 0, ledger.rate)
    if ledger.stale:
        ledger.stale = False
        ledger.dimension = effective_dimension(memory.columns, weights.weights[0])
    ledger.spread += ledger.dimension - 1.0
    return draw(weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    count_play(memory.outstanding, t)
    ticket[0] = reach(memory.weights, 0, memory.columns[state])


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    ledger = memory.ledger[0]
    if t > ledger.rang:
        count_arrival(memory.outstanding, t)
        if loss > 0.0:
            ledger.stale = True
            if ledger.rang >= 0:
                charge(memory.weights, 0, memory.columns[state], loss / ticket[0])
            else:
                learn(memory, state, loss, ticket[0])


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(CertifiedMemory, act, observe, update, play)
