"""The learner's decisions and their outcomes by context, of the first MOST contexts that come in the window."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.live.catalogue import check_label
from statepool.live.dashboard.lessons import LatestDecisions
from statepool.live.events import Corrected, Decided, Expired, Resolved

MOST = 1_000


@dataclass
class ContextTally:
    """The decisions of one context, and the outcomes that came for them."""

    context: Any
    reached: Floats
    """The sum of the rows of what was played."""
    decisions: int = 0
    actions: Counter[int] = field(default_factory=Counter)
    outcomes: int = 0
    loss: float = 0.0
    """The sum over the outcomes."""


class ContextTallies:
    """In the order in which contexts came."""

    def __init__(self, n_states: int) -> None:
        self._n_states = n_states
        self._place_of: dict[Any, int] = {}
        self._kept: list[ContextTally] = []
        self._decided_in = LatestDecisions()
        self.others = 0
        """Decisions of contexts that are not followed."""

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[ContextTally]:
        return iter(self._kept)

    def decide(self, event: Decided, row: Floats) -> None:
        """Count a decision of the learner's that was made in a context; `row` is that of its action there."""
        if event.context is None or event.is_holdout:
            return
        place = self._place(check_label(event.context, "context"))
        if place is None:
            self.others += 1
            return
        tally = self._kept[place]
        tally.decisions += 1
        tally.actions[event.action] += 1
        tally.reached += row
        self._decided_in.keep(event.number, place)

    def _place(self, context: Any) -> int | None:
        if context not in self._place_of and len(self._kept) < MOST:
            self._place_of[context] = len(self._kept)
            self._kept.append(ContextTally(context, np.zeros(self._n_states)))
        return self._place_of.get(context)

    def lose(self, event: Resolved | Expired) -> None:
        """Count an outcome, or the default in its place."""
        tally = self._decided(event.number)
        if tally is not None and event.loss is not None:
            tally.outcomes += 1
            tally.loss += event.loss

    def correct(self, event: Corrected) -> None:
        """Count an outcome that came after its default, in the default's place."""
        tally = self._decided(event.number)
        if tally is not None and event.loss is not None:
            tally.outcomes += event.replaced is None
            tally.loss += event.loss - (event.replaced or 0.0)

    def _decided(self, number: int) -> ContextTally | None:
        """The context of a decision; None if it had none, or is not remembered."""
        place = self._decided_in.find(number)
        return None if place is None else self._kept[place]
