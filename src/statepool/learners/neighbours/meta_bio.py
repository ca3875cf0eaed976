"""MetaBIO: any learner, fed at once with what the state is known to cost, once enough of its outcomes have come.

    state     N(s) += 1;  if n(s) >= max(1, N(s)/2): feed the base max(0, mean(s) - sqrt(log(2ST²) / (2 n(s)))) at once
    outcome   n(s) += 1, sum(s) += X;  a base that was not fed at once is fed now

The lower end of the mean is fed because the comparator's states may be seldom seen.

Source: Esposito et al. 2023, abstract and idea only; radius and feeding rule are ours. P is not read by the
wrapper. State means must not change: where they do, the base is fed means that are out of date.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, shown
from statepool.compiling import compiled
from statepool.learners import contract, parts
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.neighbours.anytime import Anytime

WAITED, FED = 0.0, 1.0
"""The last number that a decision saves: the base waits for its outcome, or was fed at once."""


class MetaMemory(NamedTuple):
    base: Any
    seen: Floats
    come: Floats
    sums: Floats
    squared_radius: float
    """Of a mean of one outcome."""


@parts.settled
class MetaBIO(Learner):
    """Any learner, fed at once with what the state is known to cost, once that is known.

    >>> import statepool as sp
    >>> sp.learners.MetaBIO(sp.ActionEXP3()).base
    ActionEXP3(rate=None, copies=1, mixing=0.0)
    """

    base: Learner = Anytime()

    def __post_init__(self) -> None:
        if not isinstance(self.base, Learner) or isinstance(self.base, MetaBIO) or self.base.reads_losses:
            expected = "a learner that learns from outcomes and wraps none: Anytime(), say"
            raise ValueError(f"base: is {shown(self.base)}, expected {expected}")

    def start(self, problem: Problem) -> MetaMemory:
        S, horizon = problem.n_states, problem.known_horizon()
        squared_radius = log(2 * S * horizon**2) / 2
        return MetaMemory(self.base.start(problem), np.zeros(S), np.zeros(S), np.zeros(S), squared_radius)

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return sum(self.base.saved_width(problem)) + 1, 0


@compiled
def low_mean(memory: Any, state: int) -> float:
    """The lower end of what a state costs."""
    n = memory.come[state]
    return max(0.0, memory.sums[state] / n - np.sqrt(memory.squared_radius / n))


def advance(memory: Any, t: int, now: float) -> None:
    contract.advance(memory.base, t, now)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    contract.policy(memory.base, rows, t, out)


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    contract.remember(memory.base, rows, policy, choice, state, saved[:-1])
    known = memory.come[state] >= max(1.0, (memory.seen[state] + 1.0) / 2.0)
    saved[-1] = FED if known else WAITED


def see(memory: Any, played: Any, saved: Any) -> None:
    memory.seen[played.state] += 1.0
    contract.see(memory.base, played, saved[:-1])
    if saved[-1] == FED:
        contract.learn(memory.base, played, low_mean(memory, played.state), saved[:-1], 1.0)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.come[played.state] += 1.0
    memory.sums[played.state] += loss
    if saved[-1] == WAITED:
        contract.learn(memory.base, played, loss, saved[:-1], sign)


add_rule(MetaMemory, policy, remember, learn, see, advance)
