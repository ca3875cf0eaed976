"""An instance fitted to the log, to try learners on: its map, its drifting means, its delays, its direct effects.

It covers the log's latest decisions, at their own pace: as many as the horizon asks for. Direct effects are put back
in, so that what pooling assumes can fail here as it does in the log.
"""

from dataclasses import dataclass

import numpy as np

from statepool.audit.counts import Counts
from statepool.audit.delays import Lateness
from statepool.audit.drift import Drift
from statepool.audit.effects import ActionEffects
from statepool.audit.map import Map, effective_counts
from statepool.checks import Floats, Ints
from statepool.model import Instance

WORK = 2 * 10**7
"""Rounds × actions × states that one run may take, at the most, unless a horizon is given."""

SHORTEST, LONGEST = 1_000, 50_000


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the log says of the world, and the worlds that it leaves possible."""

    P: Floats
    rows: Floats
    """What each entry of P rests on, in rows, the prior's included: the map of a world is drawn from that."""
    theta: Floats
    direct: Floats
    doubt: Floats
    """Direct effects and what is unknown of them: shrunken effects alone would make the world too tame."""
    late: Floats
    """Equally likely delays."""

    @property
    def horizon(self) -> int:
        return len(self.theta)

    def instance(self, seed: int) -> Instance:
        """One possible world: map and direct effects drawn from what is known of them.

        If every world had the same map, rows that are alike but for noise would favour the same action in all of them.
        """
        rng = np.random.default_rng((seed, 15))
        drawn = self.direct + self.doubt * rng.standard_normal(self.direct.shape)
        effects = np.clip(drawn, -self.theta.min(axis=0), 1 - self.theta.max(axis=0))
        weights = rng.standard_gamma(self.rows)
        P = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, self.P)
        return Instance(P / P.sum(axis=1, keepdims=True), self.theta, effects if effects.any() else None)

    def delays(self, seed: int) -> Ints:
        """A delay for each round, drawn from the log's; past the horizon for those that never come."""
        drawn = np.random.default_rng((seed, 13)).choice(self.late, self.horizon)
        return np.where(np.isfinite(drawn), drawn, self.horizon).astype(np.int64)


def default_horizon(counts: Counts) -> int:
    """All decisions of a small log, fewer of a large one."""
    entries = counts.n_actions * counts.n_states
    return int(max(min(counts.rows, LONGEST, max(WORK // entries, SHORTEST)), 1))


def fit_instance(
    counts: Counts, map_: Map, drift: Drift, effects: ActionEffects, lateness: Lateness, horizon: int
) -> Fitted:
    covered = min(horizon / max(counts.rows, 1), 1.0)
    theta = drift.path(np.linspace(1 - covered, 1, horizon))
    rows = effective_counts(counts) + map_.strength * map_.prior
    return Fitted(map_.P, rows, theta, effects.direct, effects.doubt, lateness.draws)
