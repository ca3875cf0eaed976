"""The two steps every simplex method shares, on a dense inverse basis."""

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_allocating as compiled


@compiled
def ratio_test(xB: Floats, w: Floats) -> int:
    """Who leaves: the smallest ratio, and among ties the largest pivot."""
    least, leaving = np.inf, -1
    for i in range(w.size):
        if w[i] > 1e-9:
            ratio = xB[i] / w[i]
            if ratio < least - 1e-13 or (ratio <= least + 1e-13 and w[i] > w[leaving]):
                least, leaving = ratio, i
    return leaving


@compiled
def pivot(B: Floats, xB: Floats, w: Floats, leaving: int) -> None:
    """Exchange the leaving row: update the inverse basis and the basic values."""
    step = max(xB[leaving] / w[leaving], 0.0)
    for j in range(w.size):
        B[leaving, j] /= w[leaving]
    for i in range(w.size):
        if i != leaving and w[i] != 0.0:
            xB[i] -= step * w[i]
            for j in range(w.size):
                B[i, j] -= w[i] * B[leaving, j]
    xB[leaving] = step
