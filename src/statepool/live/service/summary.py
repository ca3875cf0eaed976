"""What there is to say about a pool in one answer."""

from math import isfinite, sqrt

from statepool.live.lift import Tally, lift
from statepool.live.pool import Pool, specification
from statepool.live.service.answers import ArmAnswer, ArmsAnswer, CountsAnswer, LearnerAnswer, LiftAnswer, PoolAnswer


def summarise(pool: Pool) -> PoolAnswer:
    """Counts, settings and losses, all of one moment."""
    status = pool.status()
    found = lift(status.losses["learner"], status.losses["holdout"], status.settings.holdout)
    return PoolAnswer(
        name=status.name,
        actions=len(status.playing.numbers),
        states=list(status.states),
        learner=LearnerAnswer(*specification(status.learner)),
        settings=status.settings,
        decisions=status.decisions,
        pending=status.pending,
        counts=CountsAnswer(**status.counts),
        version=status.version,
        losses=ArmsAnswer(**{arm: _arm(tally) for arm, tally in status.losses.items()}),
        lift=None if found is None else LiftAnswer(*found),
    )


def _arm(tally: Tally) -> ArmAnswer:
    error = sqrt(tally.variance)
    mean = tally.mean if isfinite(tally.mean) else None
    return ArmAnswer(tally.count, mean, error if isfinite(error) else None)
