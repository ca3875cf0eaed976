"""The effective dimension of the map in the log: its proved bracket, and how far sampling moves it.

The bracket is about P_hat, as if it were the truth. The bootstrap says how well the log knows it: counts are drawn
anew from P_hat, shrunk by the same rule, and the dimension reached from the bracket's own play is compared.
"""

from dataclasses import dataclass

import numpy as np

from statepool.audit.counts import Counts
from statepool.audit.map import Map, shrinkage
from statepool.checks import Floats
from statepool.dimension import bracket
from statepool.dimension.measure import value

RESAMPLES = 40
MOST_ENTRIES = 200_000
"""Maps past this size are resampled on fewer draws, so that the bootstrap stays short."""


@dataclass(frozen=True)
class Width:
    lower: float
    upper: float
    reached: bool
    """Whether the bracket closed to its gap in the time allowed."""
    error: float
    """Standard deviation of the dimension over resampled logs."""
    n_actions: int
    n_states: int

    @property
    def smaller(self) -> float:
        """How many times fewer behaviours than actions, at the least."""
        return self.n_actions / self.upper


def measure_width(counts: Counts, map_: Map, seconds: float, seed: int = 0) -> Width:
    found = bracket(map_.P, gap=0.01, seconds=seconds)
    rng = np.random.default_rng((seed, 14))
    draws = max(4, min(RESAMPLES, RESAMPLES * MOST_ENTRIES // map_.P.size))
    values = [value(_resampled(counts, map_, rng), found.play) for _ in range(draws)]
    return Width(found.lower, found.upper, found.reached, float(np.std(values)), counts.n_actions, counts.n_states)


def _resampled(counts: Counts, map_: Map, rng: np.random.Generator) -> Floats:
    visits = counts.n.sum(axis=1)
    n = rng.multinomial(visits.astype(np.int64), map_.P).astype(np.float64)
    strength = shrinkage(n, map_.prior)
    return np.asarray((n + strength * map_.prior) / (visits[:, None] + strength))
