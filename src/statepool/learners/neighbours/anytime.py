"""Anytime: pooled exponential weights whose rate follows what the run has cost so far; any delays, nothing known ahead.

    G = .6 (m - 1 + sum_{s<t} (v_s - 1)) + D_t        m = min(K, S)        rate = min(1/2, sqrt(log K / 2G'))
    x(a) ∝ exp(-rate · L(a))        L(a) += P(s|a) · X / q(s)        q(s) as of the round played

D_t counts every outstanding outcome in every round. G' is G when the rate last fell, and a sixty-fourth more: the rate
falls when G has passed that, so a policy stands until an outcome or such a step changes it. With `skip` a round that
is waited for too long is given up (`outstanding`). Without `pooled` an outcome is learnt of the action played alone and
v = K.

Source: ours; guarantee: Theorems A and A-skip, docs/theory.md. Without `pooled` it is delay-adaptive EXP3 and stands
for Cesa-Bianchi, Gentile & Mansour 2019 and György & Joulani 2021. Two rules of others are here as `rule`:
    "constant"   Thune et al. 2019: one rate for the horizon, outcomes older than `patience` dropped. The rate is ours
                 (it minimises Theorem A with D at most patience · T), theirs is capped by 1/(2e d_max).
    "epochs"     Bistritz et al. 2019, recalled: a fresh start whenever D (this round counted) has doubled, at the rate
                 sqrt(log K / 2^epoch).
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Bools, check_count, check_name
from statepool.compiling import compiled
from statepool.kernels import effective_dimension
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule, check_flag

LARGEST_RATE = 0.5
SPREAD_COST = 0.6
"""A bound of (e^r - 1 - r)/r² at rates r up to 1/2."""

STEP = 65 / 64
"""A rate is set for that many times what was spent so far, and stands until this is spent."""

STEPPED = 8.07
"""At least 2 (1 + sqrt(STEP))²; it would be 8 if the rate fell in every round."""

RULES = ("adaptive", "constant", "epochs")
PACE = np.dtype(
    [("rate", "f8"), ("covered", "f8"), ("dimension", "f8"), ("spread", "f8"), ("epoch", "i8"), ("since", "i8")],
    align=True,
)


class AnytimeMemory(NamedTuple):
    estimates: parts.Estimates
    changed: Bools
    """Whether the estimates or the rate have changed since the last policy."""
    outstanding: parts.Outstanding
    pace: Any
    """One record of PACE: the rate and the cost it was set for, v of the policy, the sum of v - 1, the epoch and the
    round it began in."""
    width: float
    log_actions: float
    epochs: bool


@dataclass(frozen=True)
class Anytime(Learner):
    """Exponential weights whose rate follows what the run has cost so far: no horizon, delay or budget to give.

    Parameters
    ----------
    pooled : bool
        Whether losses are pooled through the state, or learnt of the action played alone.
    skip : bool
        Whether to give up on outcomes that are too late.
    rule : "adaptive", "epochs" or "constant"
        How the rate is set.
    patience : int, optional
        How old an outcome may be; for the constant rule, and only there.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.learners.Anytime(skip=True).skip
    True
    """

    pooled: bool = True
    skip: bool = False
    rule: str = "adaptive"
    patience: int | None = None

    def __post_init__(self) -> None:
        check_flag(self.pooled, "pooled")
        check_flag(self.skip, "skip")
        check_name("rule", self.rule, RULES)
        if self.patience is not None:
            check_count(self.patience, "patience")
        if (self.rule == "constant") != (self.patience is not None):
            given = f"{self.patience!r} with rule={self.rule!r}"
            raise ValueError(f"patience: is {given}, expected one with 'constant' only")

    def start(self, problem: Problem) -> AnytimeMemory:
        pace = np.zeros(1, PACE)
        pace["rate"] = self._constant_rate(problem) if self.rule == "constant" else LARGEST_RATE
        return AnytimeMemory(
            parts.start_estimates(problem, self.pooled), np.ones(1, np.bool_),
            parts.start_outstanding(problem, self.skip, self.patience), pace, self._width(problem),
            log(problem.n_actions), self.rule == "epochs",
        )  # fmt: skip

    def _width(self, problem: Problem) -> float:
        """The largest v - 1 there can be."""
        return float((min(problem.n_actions, problem.n_states) if self.pooled else problem.n_actions) - 1)

    def _constant_rate(self, problem: Problem) -> float:
        cost = (self._width(problem) / 2 + (self.patience or 0)) * problem.known_horizon()
        return min(LARGEST_RATE, sqrt(log(problem.n_actions) / cost)) if cost > 0 else LARGEST_RATE


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


@compiled
def set_pace(memory: Any, t: int) -> None:
    """The rate of round t."""
    pace, waited = memory.pace[0], memory.outstanding.tally[0].waited
    if memory.epochs:
        if waited + t + 1 >= 2.0**pace.epoch:
            _begin_epoch(memory, t, waited + t + 1)
    elif memory.outstanding.patience == 0.0:
        cost = cost_so_far(memory.width, pace.spread, waited)
        memory.changed[0] |= slow_down(pace, memory.log_actions, cost)


@compiled
def _begin_epoch(memory: Any, t: int, spent: float) -> None:
    pace = memory.pace[0]
    while spent >= 2.0**pace.epoch:
        pace.epoch += 1
    pace.since = t
    pace.rate = min(LARGEST_RATE, np.sqrt(memory.log_actions / 2.0**pace.epoch))
    memory.estimates.losses[:] = 0.0
    memory.changed[0] = True


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    pace = memory.pace[0]
    parts.begin_round(memory.outstanding, t)
    set_pace(memory, t)
    if memory.changed[0] or rows.vary:
        memory.changed[0] = False
        parts.weigh(memory.estimates, rows.columns, pace.rate, out)
        pace.dimension = memory.width + 1.0
        if memory.estimates.pooled:
            pace.dimension = effective_dimension(rows.columns, out)
    pace.spread += pace.dimension - 1.0


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if parts.count_arrival(memory.outstanding, played.t) and played.t >= memory.pace[0].since and loss > 0.0:
        parts.add_estimate(memory.estimates, played.action, played.state, loss / saved[0])
        memory.changed[0] = True


add_rule(AnytimeMemory, policy, parts.remember_estimate, learn, parts.see_round)
