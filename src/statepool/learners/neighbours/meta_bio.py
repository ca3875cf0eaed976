"""MetaBIO: any learner, fed at once with what the state is known to cost, once enough of its outcomes have come.

    state     N(s) += 1;  if n(s) >= max(1, N(s)/2): feed the base max(0, mean(s) - sqrt(log(2ST²) / (2 n(s)))) at once
    outcome   n(s) += 1, sum(s) += X;  a base that was not fed at once is fed now

The lower end of the mean is fed because the comparator's states may be seldom seen. `adaptive` (MetaAdaBIO): the base
learns from true outcomes alone until sqrt(8 D_t log K) > 4 sqrt(S t log(2 S t²)), then a fresh one takes over with
MetaBIO.

Source: Esposito et al. 2023, abstract and idea only; radius, feeding rule and switch are ours. P is not read by the
wrapper. State means must not change: where they do, the base is fed means that are out of date.
"""

from math import log as natural_log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, shown
from statepool.compiling import compiled
from statepool.learners import contract, parts
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.neighbours.anytime import Anytime

WAITED, FED = 0.0, 1.0
"""The last number that a decision saves: the base waits for its outcome, or was fed at once."""


class MetaMemory(NamedTuple):
    bases: tuple[Any, Any]
    """The one that waits for true outcomes, and the one that is fed at once."""
    seen: Floats
    come: Floats
    sums: Floats
    begun: Ints
    """The first round of the base that is fed at once; -1 before there is one."""
    outstanding: parts.Outstanding
    squared_radius: float
    """Of a mean of one outcome."""
    log_actions: float


@parts.settled
class MetaBIO(Learner):
    """Any learner, fed at once with what the state is known to cost, once that is known.

    >>> import statepool as sp
    >>> sp.learners.MetaBIO(sp.ActionEXP3()).base
    ActionEXP3(rate=None, copies=1, mixing=0.0)
    """

    base: Learner = Anytime()
    adaptive: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, Learner) or isinstance(self.base, MetaBIO) or self.base.reads_losses:
            expected = "a learner that learns from outcomes and wraps none: Anytime(), say"
            raise ValueError(f"base: is {shown(self.base)}, expected {expected}")

    def start(self, problem: Problem) -> MetaMemory:
        S, horizon = problem.n_states, problem.known_horizon()
        bases = self.base.start(problem), self.base.start(problem)
        begun = np.full(1, -1 if self.adaptive else 0)
        return MetaMemory(
            bases, np.zeros(S), np.zeros(S), np.zeros(S), begun, parts.start_outstanding(problem),
            natural_log(2 * S * horizon**2) / 2, natural_log(max(problem.n_actions, 2)),
        )  # fmt: skip

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return sum(self.base.saved_width(problem)) + 1, 0


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
def base_of(memory: Any) -> Any:
    """The base that plays."""
    return memory.bases[0 if memory.begun[0] < 0 else 1]


def advance(memory: Any, t: int, now: float) -> None:
    contract.advance(base_of(memory), t, now)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    parts.begin_round(memory.outstanding, t)
    if memory.begun[0] < 0 and switch_is_due(memory, t):
        memory.begun[0] = t
    contract.policy(base_of(memory), rows, t, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    contract.remember(base_of(memory), rows, policy, choice, state, saved[:-1])
    known = memory.come[state] >= max(1.0, (memory.seen[state] + 1.0) / 2.0)
    saved[-1] = FED if memory.begun[0] >= 0 and known else WAITED


def see(memory: Any, played: Any, saved: Any) -> None:
    parts.count_round(memory.outstanding, played.t)
    memory.seen[played.state] += 1.0
    contract.see(base_of(memory), played, saved[:-1])
    if saved[-1] == FED:
        contract.learn(base_of(memory), played, low_mean(memory, played.state), saved[:-1], 1.0)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    parts.count_arrival(memory.outstanding, played.t)
    memory.come[played.state] += 1.0
    memory.sums[played.state] += loss
    if played.t >= memory.begun[0] and saved[-1] == WAITED:
        contract.learn(base_of(memory), played, loss, saved[:-1], sign)


add_rule(MetaMemory, policy, remember, learn, see, advance)
