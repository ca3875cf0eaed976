"""What logged propensities add: means, map and price are weighted by how likely each decision was.

Plain means trust that rows of an action are like those of others. Weighted by 1/propensity they are what evenly chosen
actions would have shown, and a gap between both says that actions were chosen for their circumstances. The price is
that the log counts for fewer rows: (sum w)² / sum w², Kish's effective number.
"""

from dataclasses import dataclass

import numpy as np

from statepool.audit.counts import Counts
from statepool.checks import Floats


@dataclass(frozen=True)
class Propensities:
    effective: float
    """How many rows an evenly weighted log would need to say as much."""
    share_effective: float
    plain: float
    weighted: float
    """Mean loss of the action that the pooled estimate chooses, plain and weighted."""
    largest_gap: float
    """Between the two means, over actions, in standard errors."""
    held: bool
    """Whether means and effects rest on the rows of a holdout alone."""


def check_propensities(counts: Counts, pooled: Floats, held: bool = False) -> Propensities | None:
    if counts.weighted is None or not counts.weighted.k.any():
        return None
    w, ww, wx = (table.sum(axis=1) for table in (counts.weighted.k, counts.weighted.kk, counts.weighted.loss))
    k, loss, square = (table.sum(axis=1) for table in (counts.k, counts.loss, counts.square))
    plain = np.divide(loss, k, out=np.full(k.size, np.nan), where=k > 0)
    weighted = np.divide(wx, w, out=np.full(k.size, np.nan), where=w > 0)
    variance = np.divide(square, k, out=np.full(k.size, np.nan), where=k > 0) - plain**2
    error = np.sqrt(np.maximum(variance, 1e-12) * np.divide(ww, w**2, out=np.full(k.size, np.nan), where=w > 0))
    gaps = np.abs(plain - weighted) / error
    best = int(pooled.argmin())
    effective = counts.weighted.share_effective
    largest = float(np.nanmax(gaps)) if np.isfinite(gaps).any() else 0.0
    return Propensities(
        effective, effective / max(counts.rows, 1), float(plain[best]), float(weighted[best]), largest, held
    )
