"""Compiled: a statistic of the actions' sums under reshuffling of outcomes within short stretches of time.

    U(a) = sum of residuals of action a        T = sum_a w(a) U(a)²

Residuals are outcomes less the mean of their stretch. Shuffling them within stretches leaves everything as it is but
for which action they go with: exactly what is exchangeable if actions do not matter.
"""

from typing import Any

import numpy as np

from statepool.compiling import compiled


@compiled
def shuffled_statistics(
    residuals: Any, actions: Any, starts: Any, weights: Any, sums: Any, seed: Any, out: Any
) -> None:
    """Fill `out` with T under as many shuffles; `residuals` are left shuffled, `sums` is room for U."""
    state = np.uint64(seed)
    for i in range(out.size):
        for a in range(sums.size):
            sums[a] = 0.0
        for b in range(starts.size - 1):
            low, high = starts[b], starts[b + 1]
            for j in range(high - 1, low, -1):
                # splitmix64; the product of its upper half and the range is an even enough draw for short stretches.
                state = state + np.uint64(0x9E3779B97F4A7C15)
                z = state
                z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                z = z ^ (z >> np.uint64(31))
                k = low + np.int64(((z >> np.uint64(32)) * np.uint64(j - low + 1)) >> np.uint64(32))
                residuals[j], residuals[k] = residuals[k], residuals[j]
                sums[actions[j]] += residuals[j]
            sums[actions[low]] += residuals[low]
        total = 0.0
        for a in range(sums.size):
            total += weights[a] * sums[a] * sums[a]
        out[i] = total
