"""What there is to say about a pool in one answer."""

from math import isfinite, sqrt
from typing import Any

import msgspec

from statepool.live.lift import Tally, lift
from statepool.live.pool import Pool, specification


def summarise(pool: Pool) -> dict[str, Any]:
    """Counts, settings and losses, all of one moment."""
    status = pool.status()
    learner, options = specification(status.learner)
    found = lift(status.losses["learner"], status.losses["holdout"], status.settings.holdout)
    return {
        "name": status.name,
        "actions": len(status.playing.numbers),
        "states": list(status.states),
        "learner": {"name": learner, "options": options},
        "settings": msgspec.to_builtins(status.settings),
        "plays": status.plays,
        "pending": status.pending,
        "counts": dict(status.counts),
        "version": status.version,
        "losses": {arm: _losses(tally) for arm, tally in status.losses.items()},
        "lift": found._asdict() if found else None,
    }


def _losses(tally: Tally) -> dict[str, Any]:
    error = sqrt(tally.variance)
    return {
        "count": tally.count,
        "mean": tally.mean if isfinite(tally.mean) else None,
        "error": error if isfinite(error) else None,
    }
