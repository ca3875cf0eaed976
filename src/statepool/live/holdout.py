"""The comparison of learner and holdout: the losses of each, counted from when the holdout last changed its play.

Which decisions are compared is known from the catalogue's events alone, so a snapshot holds the tallies and nothing
else. Outcomes of the holdout teach the learner as all others do: only what is played is kept from it.
"""

from typing import Any

from statepool.live.catalogue import Catalogue
from statepool.live.events import Lesson
from statepool.live.lift import Tally
from statepool.live.settings import Settings

ARMS = ("learner", "holdout")


class HoldoutComparison:
    """Tallies of both arms, of decisions drawn from versions made after event `since`."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self.since = 0
        self._rule = _rule(settings, catalogue)
        self.tallies = {arm: Tally() for arm in ARMS}

    def heed(self, settings: Settings, catalogue: Catalogue, seq: int) -> None:
        """Start anew if event `seq` has changed how often the holdout plays, or what."""
        rule = _rule(settings, catalogue)
        if rule != self._rule:
            self.since, self._rule = seq, rule
            self.tallies = {arm: Tally() for arm in ARMS}

    def add(self, event: Lesson, loss: float | None, sign: int = 1) -> None:
        """A loss that came, or with sign -1 one that is taken back; what was decided before `since` is left out."""
        if loss is not None and event.version > self.since:
            self.tallies[ARMS[event.is_holdout]].add(loss, sign)

    def dump(self) -> dict[str, Any]:
        return {arm: tally.dump() for arm, tally in self.tallies.items()}

    def load(self, dumped: dict[str, Any]) -> None:
        for arm, tally in self.tallies.items():
            tally.load(dumped[arm])


def _rule(settings: Settings, catalogue: Catalogue) -> tuple[float, Any]:
    """The holdout's share and action; an action that is retired is played as none: every action alike."""
    action = settings.holdout_action if settings.holdout else None
    return settings.holdout, action if action is not None and catalogue.is_active(action) else None
