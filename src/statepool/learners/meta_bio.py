"""MetaBIO: any learner, fed at once with what the state is known to cost, once enough of its outcomes have come.

    observe   N(s) += 1;  if n(s) >= max(1, N(s)/2): feed the base max(0, mean(s) - sqrt(log(2ST²) / (2 n(s)))) at once
    update    n(s) += 1, sum(s) += X;  a base that was not fed at once is fed now

The lower end of the mean is fed because the comparator's states may be seldom seen. `adaptive` (MetaAdaBIO): the base
learns from true outcomes alone until sqrt(8 D_t log K) > 4 sqrt(S t log(2 S t²)), then a fresh one takes over with
MetaBIO.

Source: Esposito et al. 2023, abstract and idea only; radius, feeding rule and switch are ours. P is not read by the
wrapper. State means must not change: regret <= base's for the delays that are left (at most 2(d+1) rounds a state) +
4 sqrt(S T log(2 S T²)) + 1 + 2 sum_t max_s |theta_t(s) - its average so far|, proved if the base tolerates
delays that depend on what was played, which ours are not known to: measured, then (docs/theory.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log as natural_log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, shown
from statepool.compiling import compiled
from statepool.learners import rules
from statepool.learners.anytime import Anytime
from statepool.learners.learner import Learner, Problem, check_flag
from statepool.learners.parts.outstanding import Outstanding, begin_round, count_arrival, count_play, start_outstanding
from statepool.learners.rules import add_rule

WAITED, FED = 0.0, 1.0
"""What a decision's last number says: the base waits for its outcome, or was fed at once."""


@dataclass(frozen=True)
class MetaBIO(Learner):
    """Any learner, fed at once with what the state is known to cost, once that is known.

    `base` is the learner; `adaptive` feeds it true outcomes alone until waiting has become too dear (MetaAdaBIO).

    >>> import statepool as sp
    >>> sp.MetaBIO(sp.ActionEXP3()).base
    ActionEXP3(rate=None, copies=1, mixing=0.0)
    """

    base: Learner = Anytime()  # noqa: RUF009 (settings are frozen, so sharing one is safe)
    adaptive: bool = False

    def __post_init__(self) -> None:
        check_flag(self.adaptive, "adaptive")
        if not isinstance(self.base, Learner) or isinstance(self.base, MetaBIO) or self.base.reads_losses:
            expected = "a learner that learns from outcomes and wraps none: Anytime(), say"
            raise ValueError(f"base: is {shown(self.base)}, expected {expected}")

    def start(self, problem: Problem) -> MetaMemory:
        S, horizon = problem.n_states, problem.known_horizon()
        bases = self.base.start(problem), self.base.start(problem)
        begun = np.full(1, -1 if self.adaptive else 0)
        return MetaMemory(
            bases, np.zeros(S), np.zeros(S), np.zeros(S), begun, start_outstanding(problem),
            natural_log(2 * S * horizon**2) / 2, natural_log(max(problem.n_actions, 2)),
        )  # fmt: skip

    def ticket_width(self, problem: Problem) -> int:
        return self.base.ticket_width(problem) + 1


class MetaMemory(NamedTuple):
    bases: tuple[Any, Any]
    """The one that waits for true outcomes, and the one that is fed at once."""
    seen: Floats
    come: Floats
    sums: Floats
    begun: Any
    """The first round of the base that is fed at once; -1 before there is one."""
    outstanding: Outstanding
    squared_radius: float
    """Of a mean of one outcome."""
    log_actions: float


@compiled
def low_mean(memory: Any, state: int) -> float:
    """The lower end of what a state costs."""
    n = memory.come[state]
    return max(0.0, memory.sums[state] / n - np.sqrt(memory.squared_radius / n))


@compiled
def switch_is_due(memory: Any, t: int) -> bool:
    """Whether waiting has become dearer than learning the means of all states."""
    n_states, rounds = memory.seen.size, t + 1.0
    wait = 8.0 * memory.outstanding.tally[0].waited * memory.log_actions
    return bool(wait > 16.0 * n_states * rounds * np.log(2.0 * n_states * rounds * rounds))


@compiled
def in_charge(memory: Any) -> int:
    """Which base plays."""
    return 0 if memory.begun[0] < 0 else 1


def act(memory: Any, t: int, u: float) -> int:
    begin_round(memory.outstanding, t)
    if memory.begun[0] < 0 and switch_is_due(memory, t):
        memory.begun[0] = t
    return rules.act(memory.bases[in_charge(memory)], t, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    count_play(memory.outstanding, t)
    memory.seen[state] += 1.0
    base = memory.bases[in_charge(memory)]
    rules.observe(base, t, action, state, ticket[:-1])
    ticket[-1] = WAITED
    if memory.begun[0] >= 0 and memory.come[state] >= max(1.0, memory.seen[state] / 2.0):
        ticket[-1] = FED
        rules.update(base, t, action, state, low_mean(memory, state), ticket[:-1])


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    count_arrival(memory.outstanding, t)
    memory.come[state] += 1.0
    memory.sums[state] += loss
    if t >= memory.begun[0] and ticket[-1] == WAITED:
        rules.update(memory.bases[in_charge(memory)], t, action, state, loss, ticket[:-1])


def play(memory: Any, t: int, out: Any) -> None:
    rules.play(memory.bases[in_charge(memory)], t, out)


add_rule(MetaMemory, act, observe, update, play)
