"""Losses of the pool's scale in the unit that the user reports."""

from typing import NamedTuple

from statepool.live.lift import Lift, Tally
from statepool.live.pool import Pool


class Unit(NamedTuple):
    """`name` is reward or loss; a loss on the pool's scale is `zero + slope * loss` in this unit."""

    name: str
    zero: float
    slope: float

    def mean(self, tally: Tally) -> float:
        """The mean outcome; not a number without outcomes."""
        return self.zero + self.slope * tally.mean

    def lift(self, lift: Lift) -> Lift:
        """How much better the learner does than the holdout."""
        return Lift(*(abs(self.slope) * value for value in lift))


def unit_of(pool: Pool) -> Unit:
    """Rewards where the pool has bounds of rewards, losses otherwise."""
    scale, settings = pool.definition.scale, pool.settings
    low, high = settings.reward_bounds or settings.loss_bounds
    if settings.reward_bounds is not None:
        first, last = (scale.outcome(settings, None, bound).loss for bound in (low, high))
    else:
        first, last = (scale.outcome(settings, bound, None).loss for bound in (low, high))
    slope = (high - low) / (last - first)
    return Unit("loss" if settings.reward_bounds is None else "reward", low - slope * first, slope)
