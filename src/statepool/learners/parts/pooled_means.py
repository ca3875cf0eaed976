"""Forgetting mean losses per state, shared by the pooled rules a practitioner would try first.

every delivery:  sums, counts ← forgetting · (sums, counts), then sums(s) += X, counts(s) += 1
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled


class PooledMeans(NamedTuple):
    sums: Floats
    counts: Floats
    forgetting: float


def start_means(n_states: int, forgetting: float) -> PooledMeans:
    """Nothing seen."""
    return PooledMeans(np.zeros(n_states), np.zeros(n_states), float(forgetting))


@compiled
def add_loss(means: Any, state: int, loss: float) -> None:
    """One outcome of a state."""
    if means.forgetting < 1.0:
        for s in range(means.sums.size):
            means.sums[s] *= means.forgetting
            means.counts[s] *= means.forgetting
    means.sums[state] += loss
    means.counts[state] += 1.0
