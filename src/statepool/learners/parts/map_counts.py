"""The action-to-state map, estimated from the pairs seen so far.

P_hat(s|a) = (pairs(a, s) + smoothing) / (visits(a) + smoothing · |S|)
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled


class MapCounts(NamedTuple):
    """`pairs` has one row a state, `visits` one number an action."""

    pairs: Floats
    visits: Floats
    smoothing: float


def start_counts(n_actions: int, n_states: int, smoothing: float) -> MapCounts:
    """Nothing seen: every row even."""
    return MapCounts(np.zeros((n_states, n_actions)), np.zeros(n_actions), float(smoothing))


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
