"""NSD-UCRL2: optimism about means and about the rows of a map that may drift.

    means   low(s) = mean(s) - sqrt(radius · log(2ST) / (2 n(s))), at least 0 and 0 where nothing has come
    rows    counted over the last `window` rounds; a share ½ sqrt(2 radius (S log 2 + log 2KT) / N(a)) of each row is
            moved from its worst states to the best one
    policy  the action whose moved row costs least, the first of equals

`known_map` takes the rows from P and moves nothing. `radius` scales the squared radii: 1 is what is proved.

Source: Vernade et al. 2020, abstract and idea only; the radii are ours. The map may drift and is not read, the means
may not.
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import TIE
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class OptimistMemory(NamedTuple):
    rows: Floats
    """Counts of states in the window, or the map where it is known."""
    played: Floats
    recent: Ints
    """The (action, state) of the rounds in the window, in a ring."""
    sums: Floats
    counts: Floats
    low: Floats
    order: Ints
    """States, the cheapest first."""
    squared_radius: float
    row_radius: float
    known_map: bool


@parts.settled
class NSDUCRL2(Learner):
    """Optimism about state means and about the rows of a map that may drift.

    >>> import statepool as sp
    >>> sp.learners.NSDUCRL2(known_map=True).known_map
    True
    """

    window: int | None = None
    radius: float = 1.0
    known_map: bool = False

    def start(self, problem: Problem) -> OptimistMemory:
        K, S, T = problem.n_actions, problem.n_states, problem.known_horizon()
        window = T if self.window is None else self.window
        if window > T:
            raise ValueError(f"window: is {window}, expected at most the horizon, {T}")
        rows = problem.P.copy() if self.known_map else np.zeros((K, S))
        return OptimistMemory(
            rows, np.zeros(K), np.zeros((window, 2), np.int64), np.zeros(S), np.zeros(S), np.zeros(S),
            np.zeros(S, np.int64), self.radius * log(2 * S * T) / 2,
            0.0 if self.known_map else sqrt(self.radius * (S * log(2) + log(2 * K * T)) / 2), self.known_map,
        )  # fmt: skip


@compiled
def sort_states(memory: Any) -> None:
    """Low means, and the states in their order."""
    low, order = memory.low, memory.order
    for s in range(low.size):
        n = memory.counts[s]
        low[s] = max(0.0, memory.sums[s] / n - np.sqrt(memory.squared_radius / n)) if n > 0.0 else 0.0
        i = s
        while i > 0 and low[order[i - 1]] > low[s]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = s


@compiled
def hope_for(memory: Any, action: int) -> float:
    """What an action costs if its row is as good as it may be."""
    count = 1.0 if memory.known_map else memory.played[action]
    cheapest = memory.low[memory.order[0]]
    if count == 0.0:
        return cheapest
    left = memory.row_radius / np.sqrt(count)
    cost = 0.0
    for i in range(memory.order.size - 1, -1, -1):
        state = memory.order[i]
        share = memory.rows[action, state] / count
        moved = min(share, left)
        left -= moved
        cost += (share - moved) * memory.low[state] + moved * cheapest
    return cost


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    sort_states(memory)
    best, lowest = 0, hope_for(memory, 0)
    for a in range(1, out.size):
        cost = hope_for(memory, a)
        if cost < lowest - TIE:
            best, lowest = a, cost
    out[:] = 0.0
    out[best] = 1.0


def see(memory: Any, played: Any, saved: Any) -> None:
    if memory.known_map:
        return
    window = memory.recent.shape[0]
    oldest = memory.recent[played.t % window]
    if played.t >= window:
        memory.rows[oldest[0], oldest[1]] -= 1.0
        memory.played[oldest[0]] -= 1.0
    oldest[0], oldest[1] = played.action, played.state
    memory.rows[played.action, played.state] += 1.0
    memory.played[played.action] += 1.0


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.sums[played.state] += loss
    memory.counts[played.state] += 1.0


add_rule(OptimistMemory, policy, learn=learn, see=see)
