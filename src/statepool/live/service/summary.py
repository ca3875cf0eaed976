"""What there is to say about a pool in one answer."""

from math import isfinite, sqrt
from typing import Any

import msgspec

from statepool.live.fold import Fold
from statepool.live.lift import Tally, lift
from statepool.live.pool import Pool, specification


def summarise(pool: Pool) -> dict[str, Any]:
    """Counts, settings and losses, all of one moment."""
    return pool._journal.look(lambda fold: _summary(pool, fold))


def _summary(pool: Pool, fold: Fold) -> dict[str, Any]:
    learner, options = specification(fold.learner)
    return {
        "name": pool.name,
        "actions": fold.catalogue.n_active,
        "states": list(fold.catalogue.states),
        "learner": {"name": learner, "options": options},
        "settings": msgspec.to_builtins(fold.settings),
        "plays": fold.plays,
        "pending": pool.n_pending,
        "counts": dict(fold.counts),
        "version": fold.version,
        "losses": {arm: _losses(tally) for arm, tally in fold.tallies.items()},
        "lift": found._asdict() if (found := lift(**fold.tallies, share=fold.settings.holdout)) else None,
    }


def _losses(tally: Tally) -> dict[str, Any]:
    error = sqrt(tally.variance)
    return {
        "count": tally.count,
        "mean": tally.mean if isfinite(tally.mean) else None,
        "error": error if isfinite(error) else None,
    }
