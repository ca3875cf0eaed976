"""A reading of a pool: one moment of it, as a value that nobody moves afterwards."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.learners.learner import Learner
from statepool.live.fold import Fold
from statepool.live.lift import Tally
from statepool.live.settings import Settings


@dataclass(frozen=True)
class Status:
    """What a pool knows and does after `events` events."""

    name: str
    events: int
    plays: int
    """Decisions made."""
    pending: int
    """Decisions that wait for an outcome."""
    counts: Mapping[str, int]
    """States, outcomes, expiries and corrections that came, and states that were impossible for their action."""
    lessons: int
    version: int
    """The event that made the latest version of the play; 0: none yet."""
    distribution: Mapping[Any, float]
    """What would be played now, by the label of each active action (without a context)."""
    states: tuple[Any, ...]
    contexts: tuple[Any, ...]
    learner: Learner
    settings: Settings
    sums: Mapping[str, Floats] = field(repr=False)
    """All that the learner knows, by the name of each sum: a row for each memory of it."""
    registers: Mapping[str, Any] = field(repr=False)
    """What the latest version was made with."""
    losses: Mapping[str, Tally] = field(repr=False)
    """Of the learner's decisions and of the holdout's, since the holdout last changed."""


def read_status(name: str, fold: Fold, in_lanes: int, pending: int) -> Status:
    """All of it copied, while nobody writes; `in_lanes`: decisions that the journal has not taken over yet."""
    version, _ = fold.make_version()
    labels = [fold.catalogue.actions[number] for number in version.ids]
    sums = {declared: _frozen(fold.ledger.sums(declared, fold.plays)) for declared in fold.ledger.names()}
    return Status(
        name, fold.seq, fold.plays + in_lanes, pending, MappingProxyType(dict(fold.counts)), fold.lessons, fold.version,
        MappingProxyType(dict(zip(labels, version.play.tolist(), strict=True))), tuple(fold.catalogue.states),
        tuple(fold.catalogue.contexts), fold.learner, fold.settings, MappingProxyType(sums),
        MappingProxyType(fold.ledger.registers()),
        MappingProxyType({arm: deepcopy(tally) for arm, tally in fold.tallies.items()}),
    )  # fmt: skip


def _frozen(values: Floats) -> Floats:
    table = np.array(values)
    table.setflags(write=False)
    return table
