"""The learner's decisions and their outcomes by context, of the first MOST contexts that come in the window."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.live.catalogue import check_label
from statepool.live.events import Corrected, Decided, Expired, Resolved

MOST = 1_000
REMEMBERED = 1 << 17
"""Decisions whose context is known when their outcome comes: the latest."""


@dataclass
class ContextTally:
    """The decisions of one context, and the outcomes that came for them."""

    context: Any
    place: int
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
        self._plays = np.full(REMEMBERED, -1, np.int64)
        self._places = np.zeros(REMEMBERED, np.int32)
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
        tally = self._of(check_label(event.context, "context"))
        if tally is None:
            self.others += 1
            return
        tally.decisions += 1
        tally.actions[event.action] += 1
        tally.reached += row
        place = event.play % REMEMBERED
        self._plays[place], self._places[place] = event.play, tally.place

    def _of(self, context: Any) -> ContextTally | None:
        place = self._place_of.get(context)
        if place is not None:
            return self._kept[place]
        if len(self._kept) >= MOST:
            return None
        place = self._place_of[context] = len(self._kept)
        self._kept.append(ContextTally(context, place, np.zeros(self._n_states)))
        return self._kept[place]

    def lose(self, event: Resolved | Expired) -> None:
        """Count an outcome, or the default in its place."""
        tally = self._decided(event.play)
        if tally is not None and event.loss is not None:
            tally.outcomes += 1
            tally.loss += event.loss

    def correct(self, event: Corrected) -> None:
        """Count an outcome that came after its default, in the default's place."""
        tally = self._decided(event.play)
        if tally is not None and event.loss is not None:
            tally.outcomes += event.replaced is None
            tally.loss += event.loss - (event.replaced or 0.0)

    def _decided(self, play: int) -> ContextTally | None:
        """The context of a decision; None if it had none, or is not remembered."""
        place = play % REMEMBERED
        return self._kept[self._places[place]] if self._plays[place] == play else None
