"""What logged propensities add: the pooled choice's mean loss, weighted by how likely each decision was.

Plain means trust that rows of an action are like those of others. With propensities the same mean is estimated by
self-normalised inverse weights, and a gap between the two says that actions were chosen for their circumstances.
"""

from dataclasses import dataclass

import numpy as np

from statepool.audit.counts import Counts
from statepool.checks import Floats


@dataclass(frozen=True)
class Propensities:
    share_effective: float
    """How many rows, as a share, an evenly weighted log would need to say as much."""
    plain: float
    weighted: float
    """Mean loss of the action that the pooled estimate chooses, plain and weighted."""
    largest_gap: float
    """Between the two means, over actions, in standard errors."""


def check_propensities(counts: Counts, pooled: Floats) -> Propensities | None:
    if not len(counts.weights) or not counts.weights[:, 0].any():
        return None
    w, ww, wx = counts.weights.T
    k, loss, square = counts.k.sum(axis=1), counts.loss.sum(axis=1), counts.square.sum(axis=1)
    plain = np.divide(loss, k, out=np.full(k.size, np.nan), where=k > 0)
    weighted = np.divide(wx, w, out=np.full(k.size, np.nan), where=w > 0)
    variance = np.divide(square, k, out=np.full(k.size, np.nan), where=k > 0) - plain**2
    error = np.sqrt(np.maximum(variance, 1e-12) * np.divide(ww, w**2, out=np.full(k.size, np.nan), where=w > 0))
    gaps = np.abs(plain - weighted) / error
    best = int(pooled.argmin())
    effective = float(w.sum() ** 2 / ww.sum() / k.sum())
    largest = float(np.nanmax(gaps)) if np.isfinite(gaps).any() else 0.0
    return Propensities(effective, float(plain[best]), float(weighted[best]), largest)
