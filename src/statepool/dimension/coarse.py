"""Upper bounds that need no search: two passes over the map.

    v ≤ number of distinct rows          v ≤ number of states reached          v ≤ sum_s M(s)
    v ≤ sum_s M(s) - min_a sum_s P(s|a) (M(s) - P(s|a)) / M(s)                  M(s) = max_a P(s|a)

The last holds because v = sum_s M(s) - sum_a x(a) sum_s P(s|a)(M(s) - P(s|a)) / q(s) and q(s) ≤ M(s).
Proofs: docs/dimension.md, Section 2. Counts are exact; sums are rounded upwards.
"""

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_allocating as compiled

UNIT = 2.0**-53
"""The unit roundoff of float64."""

DISTINCT_ENTRIES = 1_000_000
"""Maps larger than this are not sorted to find equal rows: sorting copies them."""


def column_maxima(P: Floats) -> Floats:
    """M(s), not below the exact column maxima of the map whose scaled rows P holds rounded."""
    largest: Floats = P.max(axis=0)
    # A probability never exceeds 1, so a rounded-up 1 is still 1: deterministic maps stay exact.
    return np.asarray(np.minimum(largest * (1 + 4 * (P.shape[1] + 24) * UNIT), 1.0))


def distinct_rows(P: Floats) -> int:
    """How many different rows, or their number where counting would cost too much; of the map as it was
    given."""
    if (P[0] == P).all():
        return 1
    return len(np.unique(P, axis=0)) if P.size <= DISTINCT_ENTRIES else len(P)


def coarse_bound(P: Floats, M: Floats, distinct: int) -> tuple[float, str]:
    """The smallest of the bounds above, and its name."""
    slack = 8 * (P.shape[1] + 8) * UNIT * (float(M.sum()) + 1)
    return min(
        (float(distinct), "number of distinct actions"),
        (float(np.count_nonzero(M)), "number of states"),
        (float(M.sum()) + slack, "column maxima"),
        (one_row_bound(P, M) + slack, "column maxima less the least shortfall"),
    )


@compiled
def one_row_bound(P: Floats, M: Floats) -> float:
    """sum M - min_a sum_s P (M - P) / M, in plain floating point."""
    K, S = P.shape
    least = np.inf
    for a in range(K):
        shortfall = 0.0
        for s in range(S):
            if M[s] > 0:
                shortfall += P[a, s] * (M[s] - P[a, s]) / M[s]
        least = min(least, shortfall)
    total = 0.0
    for s in range(S):
        total += M[s]
    return total - least
