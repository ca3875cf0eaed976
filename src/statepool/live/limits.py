"""What a pool's settings leave of a learner's play: the holdout, and the smallest and largest share of each action."""

import numpy as np

from statepool.checks import Floats, Ints
from statepool.live.catalogue import Catalogue
from statepool.live.settings import Settings
from statepool.live.versions import Part, Version, spread, within

NOBODY = -(1 << 62)
"""The number of no action, nor of a candidate."""


class Limits:
    """As of one change of the catalogue or of the settings: a value."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self._holdout = settings.holdout
        self._holdout_action = catalogue.number_of_action.get(settings.holdout_action, NOBODY)
        self._shares = [(catalogue.action(label), low, high) for label, low, high in settings.shares]

    def keep(self, distribution: Floats, parts: tuple[Part, ...], ids: Ints) -> Version:
        """The version of a learner's play over these actions, and of how it is drawn from."""
        base = self._holdout_distribution(ids) if self._holdout else None
        if self._shares:
            distribution = within(distribution, *self._bounds(base, ids))
            parts = (spread(distribution),)
        return Version(ids, distribution, parts, self._holdout, base)

    def _holdout_distribution(self, ids: Ints) -> Floats:
        place = _place(ids, self._holdout_action)
        if place is None:
            return np.full(len(ids), 1 / len(ids))
        base = np.zeros(len(ids))
        base[place] = 1.0
        return base

    def _bounds(self, base: Floats | None, ids: Ints) -> tuple[Floats, Floats]:
        """What is left of the shares for the learner's part of the play."""
        size = len(ids)
        low, high = np.zeros(size), np.ones(size)
        for number, smallest, largest in self._shares:
            place = _place(ids, number)
            if place is not None:
                low[place], high[place] = smallest, largest
        if base is not None:
            part = self._holdout
            low, high = np.maximum(low - part * base, 0) / (1 - part), np.maximum(high - part * base, 0) / (1 - part)
        return low, high


def _place(ids: Ints, number: int) -> int | None:
    """Where an action stands."""
    places = np.flatnonzero(ids == number)
    return int(places[0]) if places.size else None
