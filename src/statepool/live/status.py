"""Readings of a pool: one moment of it, as values that nobody moves afterwards.

They are taken while nobody writes. What can change is copied, which is short; what is made anew with each version or
each change of the catalogue is frozen already, or copied once and kept for the readings that follow.
"""

from collections.abc import Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.learners.learner import Learner
from statepool.live.catalogue import Catalogue, Table, offered
from statepool.live.lift import Tally
from statepool.live.pool_state import PoolState
from statepool.live.settings import Settings
from statepool.live.versions import Version


@dataclass(frozen=True)
class Status:
    """What a pool knows and does after `events` events; printed without what is long."""

    name: str
    """Of the pool."""
    at: int = field(repr=False)
    """When this was read, in microseconds by the pool's clock."""
    events: int
    """Of the journal, all that was written up to now."""
    decisions: int
    """Decisions made."""
    pending: int
    """Decisions that wait for an outcome."""
    counts: Mapping[str, int]
    """States, outcomes, expiries and corrections that came, and states that were impossible for their action."""
    lessons: int
    """States and outcomes that taught the learner."""
    changes: int
    """How often the catalogue or the settings have changed."""
    version: int
    """The event that made the latest version of the play, by whichever process; 0: none yet."""
    actions: tuple[Any, ...] = field(repr=False)
    """The label of every action by its number, retired ones included."""
    states: tuple[Any, ...]
    """The label of every state, in the order of the columns of P."""
    contexts: tuple[Any, ...] = field(repr=False)
    """The label of every context; none: the pool has no contexts."""
    learner: Learner
    """What decides, with its options."""
    settings: Settings
    """As they are now, defaults included."""
    seeded: bool
    """Whether the seed was given by somebody, who can then foretell the draws."""
    lessons_a_version: int
    """How much is learnt at least before the play is made anew, where nobody said how many seconds.

    Unless `refresh` says how many lessons, a budget of bytes may ask for more."""
    sums: Mapping[str, Floats] = field(repr=False)
    """All that the learner knows, by the name of each sum: a row for each memory of it."""
    registers: Mapping[str, Any] = field(repr=False)
    """What the latest version was made with."""
    leader: Any
    """The action that the latest version leads with, where the learner has such."""
    beliefs: Floats | None = field(repr=False)
    """The mean loss of each state that the latest version was made with, where the learner keeps such."""
    losses: Mapping[str, Tally] = field(repr=False)
    """Of the learner's decisions and of the holdout's, since the holdout last changed."""
    playing: "CurrentPlay" = field(repr=False)
    """What is played, by number; `distribution` has it by label."""

    @cached_property
    def distribution(self) -> Mapping[Any, float]:
        """What this process plays, by the label of each active action (without a context): the version that it draws
        from, or one made for this reading where it has none, or where that one is old and more is known by now."""
        labels = [self.actions[number] for number in self.playing.numbers.tolist()]
        return MappingProxyType(dict(zip(labels, self.playing.distribution.tolist(), strict=True)))


class CurrentPlay(NamedTuple):
    """A play, by the numbers of the actions that are active; arrays that nobody can write to."""

    key: tuple[Hashable, ...]
    """Another key, another play."""
    numbers: Ints
    distribution: Floats
    learnt: Floats | None
    """Where the map is learnt: a row a state, a column an action, as the latest version had them."""


@dataclass(frozen=True)
class Vitals:
    """What a process knows of a pool that it has open, at the price of no play: for those who watch many of them."""

    n_actions: int
    """Actions that are active."""
    settings: Settings
    counts: Mapping[str, int]
    mean_losses: Mapping[str, float]
    """Of the learner and of the holdout, since the holdout last changed; not a number: none came."""
    folded: int
    """The last event that this process had taken in before it was asked."""
    version_at: int | None = field(repr=False)
    """When the version was made that this process plays from, in microseconds; None: it has made none."""
    versions_made: int
    refused_snapshots: int
    """How often a stored snapshot was of no use, and the journal was folded anew."""


@dataclass(frozen=True)
class Listing:
    """Actions, by number, active or not."""

    actions: tuple[Any, ...]
    rows: Floats = field(repr=False)
    """Of P, without a context; the given ones, also where the map is learnt."""
    active: Ints = field(repr=False)
    """The numbers of those that are played."""
    tables: Mapping[Any, Table] = field(repr=False)
    """Of each context: the actions that have rows of their own there, and these rows."""
    n_first: int
    """Actions of this number and above came after the contexts were given, and have one row for all."""

    def offered(self, context: Any) -> Table:
        """The actions that a context may be answered with, and their rows there; none for a context not known."""
        table = self.tables.get(context)
        if table is None:
            return self.active[:0], self.rows[:0]
        return offered(table, self.active, self.n_first, self.rows)


class Moment(NamedTuple):
    """What a process adds to a pool's state for a reading of it."""

    name: str
    at: int
    decisions: int
    """Decisions made, those that the journal has not taken over yet included."""
    pending: int
    played: tuple[int, Version] | None
    """The version that it draws from, and the event that made it; None: none, or not one to show any more."""


def read_status(moment: Moment, pool_state: PoolState, known: Status | None) -> Status:
    """Everything of one moment; `known`: an earlier reading since which the catalogue has not changed."""
    playing = _read_playing(moment, pool_state, known)
    catalogue, live_learner = pool_state.catalogue, pool_state.live_learner
    leader, beliefs = live_learner.leader(), live_learner.beliefs()
    return Status(
        name=moment.name,
        at=moment.at,
        events=pool_state.seq,
        decisions=moment.decisions,
        pending=moment.pending,
        counts=MappingProxyType(dict(pool_state.counts)),
        lessons=pool_state.lessons,
        changes=pool_state.changes,
        version=pool_state.version,
        actions=tuple(catalogue.actions) if known is None else known.actions,
        states=tuple(catalogue.states),
        contexts=tuple(catalogue.contexts) if known is None else known.contexts,
        learner=pool_state.learner,
        settings=pool_state.settings,
        seeded=pool_state.seeded,
        lessons_a_version=pool_state.lessons_a_version,
        sums=MappingProxyType(
            {name: _frozen(live_learner.sums(name, pool_state.decisions)) for name in live_learner.names()}
        ),
        registers=MappingProxyType(live_learner.registers()),
        leader=None if leader is None else catalogue.actions[leader],
        beliefs=None if beliefs is None else _frozen(beliefs),
        losses=MappingProxyType({arm: deepcopy(tally) for arm, tally in pool_state.tallies.items()}),
        playing=playing,
    )


def _read_playing(moment: Moment, pool_state: PoolState, known: Status | None) -> CurrentPlay:
    """A version is made where the process has none to show, and nothing was learnt since the last that was made so."""
    key = (pool_state.lessons,) if moment.played is None else ("event", moment.played[0])
    if known is not None and known.playing.key == key:
        return known.playing
    version = pool_state.make_version()[0] if moment.played is None else moment.played[1]
    learnt = _frozen(pool_state.live_learner.columns()) if pool_state.live_learner.learns_map else None
    return CurrentPlay(key, version.ids, version.distribution, learnt)


def read_listing(catalogue: Catalogue) -> Listing:
    """A copy of the catalogue's actions and rows."""
    rows, active = _frozen(catalogue.rows()), catalogue.active_numbers()
    return Listing(tuple(catalogue.actions), rows, active, MappingProxyType(catalogue.tables), catalogue.n_first)


def _frozen(values: Floats) -> Floats:
    table = np.array(values)
    table.setflags(write=False)
    return table
