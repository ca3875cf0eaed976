"""The action-to-state map, estimated from the pairs seen so far.

P_hat(s|a) = (pairs(a, s) + smoothing) / (visits(a) + smoothing · |S|)
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.learners.contract import Problem


class MapCounts(NamedTuple):
    pairs: Floats
    """One row for each state, one column for each action."""
    visits: Floats
    """By action."""
    smoothing: float


def start_counts(problem: Problem, smoothing: float) -> MapCounts:
    """Nothing seen: every row even."""
    K = problem.n_actions
    return MapCounts(np.zeros((problem.n_states, K)), np.zeros(K), float(smoothing))


@compiled
def count_pair(counts: Any, action: int, state: int) -> None:
    """One more (action, state) pair."""
    counts.pairs[state, action] += 1.0
    counts.visits[action] += 1.0


@compiled
def estimate_column(counts: Any, state: int, out: Any) -> None:
    """P_hat(state|a) for every action, into `out`."""
    spread = counts.smoothing * counts.pairs.shape[0]
    for a in range(out.size):
        out[a] = (counts.pairs[state, a] + counts.smoothing) / (counts.visits[a] + spread)
