"""What a journal adds up to: the catalogue, the learner's ledger, the latest version, and counts for people to read.

`apply` takes the events one by one, in order; nothing else changes a fold, and it reads no clock. Decisions change
nothing but the number of plays, so one who only follows may leave them out.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from statepool.checks import Floats
from statepool.learners import find
from statepool.live.catalogue import Catalogue
from statepool.live.comparison import Comparison
from statepool.live.events import (
    Added,
    AnyEvent,
    Changed,
    Corrected,
    Decided,
    Event,
    Expired,
    Lesson,
    Opened,
    Refreshed,
    Resolved,
    Retired,
    Reweighted,
    Seen,
    Upgraded,
)  # fmt: skip
from statepool.live.format import check_format
from statepool.live.ledger import Ledger, Record
from statepool.live.lift import Tally
from statepool.live.settings import check_settings
from statepool.live.snapshots import Refused
from statepool.live.versions import Part, Version, spread, within

CHEAP = 100_000
"""By default a version is made once in K |S| / CHEAP lessons: about a tenth of a millisecond each."""


class Records:
    """The records of the latest versions; older ones are found in the journal when a ticket of theirs comes back."""

    KEPT = 2048

    def __init__(self, find_event: Callable[[int], AnyEvent]) -> None:
        self._find_event = find_event
        self._kept: OrderedDict[int, Record] = OrderedDict()

    def keep(self, version: int, record: Record) -> None:
        self._kept[version] = record
        if len(self._kept) > self.KEPT:
            self._kept.popitem(last=False)

    def find(self, version: int) -> Record:
        if version not in self._kept:
            event = self._find_event(version)
            assert isinstance(event, Refreshed)
            self.keep(version, event.record)
        self._kept.move_to_end(version)
        return self._kept[version]


class Fold:
    """The state of a pool after its event `seq`."""

    def __init__(self, opened: Opened, records: "Records") -> None:
        self.catalogue = Catalogue(opened)
        self.settings = check_settings(opened.settings)
        self.seed, self.seeded = opened.seed, opened.seeded
        self.secret = opened.secret
        check_format(opened.format, opened.rule)
        self.format, self.rule, self.rule_since = opened.format, opened.rule, 1
        """By which rule the pool plays, and since which event."""
        self.learner = find(opened.learner)(**opened.options)
        self.ledger = Ledger(self.learner, len(self.catalogue.states), opened.seed)
        self.seq = self.plays = 0
        self.version = 0
        """The event that made the latest version; 0: none yet."""
        self.epoch = b""
        """Of the process that made it."""
        self.lessons = self.changes = 0
        """How much has been learnt, how often the catalogue or the settings were changed."""
        self.counts = dict.fromkeys(("state", "outcome", "expiry", "correction", "impossible"), 0)
        self.comparison = Comparison(self.settings, self.catalogue)
        self._records = records
        self._stale_actions = True

    @property
    def tallies(self) -> dict[str, Tally]:
        """Losses of learner and holdout, since the holdout last changed."""
        return self.comparison.tallies

    def apply(self, event: Event, seq: int) -> None:
        """The next event of the journal."""
        APPLY[type(event)](self, event, seq)
        self.seq = seq

    def _open(self, event: Opened, seq: int) -> None:
        pass

    def _upgrade(self, event: Upgraded, seq: int) -> None:
        check_format(event.format, event.rule)
        self.format, self.rule, self.rule_since, self.secret = event.format, event.rule, seq, event.secret
        self.changes += 1

    def _change_actions(self, event: Added | Retired | Reweighted, seq: int) -> None:
        self.catalogue.apply(event, seq)
        self.comparison.heed(self.settings, self.catalogue, seq)
        self.changes += 1
        self._stale_actions = True

    def _change_settings(self, event: Changed, seq: int) -> None:
        self.settings = check_settings(event.settings)
        self.comparison.heed(self.settings, self.catalogue, seq)
        self.changes += 1

    def _refresh(self, event: Refreshed, seq: int) -> None:
        self.ledger.resume(event.record, event.plays)
        self._records.keep(seq, event.record)
        self.version, self.epoch = seq, event.epoch

    def _decide(self, event: Decided, seq: int) -> None:
        self.plays = event.play + 1

    def _see(self, event: Seen, seq: int) -> None:
        assert event.state is not None
        self.counts["state"] += 1
        if self._is_impossible(event):
            self.counts["impossible"] += 1
            return
        self.ledger.see(event.play, event.action, event.state)
        self.lessons += self.ledger.heeds_states
        self._teach(event, event.loss)

    def _is_impossible(self, event: Lesson) -> bool:
        """Whether the map said, when the action was drawn, that it cannot lead to the state that was reported.

        Such a report is wrong, and teaches nothing: it would be charged by the probability of a state that the play
        hardly reached.
        """
        if event.state is None or self.ledger.learns_map:
            return False
        return bool(self.catalogue.row_at(event.action, event.version)[event.state] == 0)

    def _resolve(self, event: Resolved | Expired, seq: int) -> None:
        self.counts[event.kind] += 1
        self.comparison.add(event, event.loss)
        self._teach(event, event.loss)

    def _correct(self, event: Corrected, seq: int) -> None:
        self.counts["correction"] += 1
        self.comparison.add(event, event.replaced, -1)
        self.comparison.add(event, event.loss)
        if event.state is not None and not self._is_impossible(event):
            self._learn(event, event.replaced, -1)
            self._learn(event, event.loss, 1)
            self.lessons += 1

    def _teach(self, event: Lesson, loss: float | None) -> None:
        """A state and a loss are both there now."""
        if event.state is not None and loss is not None and not self._is_impossible(event):
            self._learn(event, loss, 1)
            self.ledger.arrive(event.plays - 1 - event.play)
            self.lessons += 1

    def _learn(self, event: Lesson, loss: float | None, sign: int) -> None:
        record = self._records.find(event.version)
        if loss is not None and np.frombuffer(record["q"])[event.state] > 0:  # it may have underflowed
            assert event.state is not None
            self.ledger.learn(record, event, loss, sign)

    @property
    def lessons_a_version(self) -> int:
        """How much is learnt before the play is made anew."""
        return self.settings.refresh or max(1, self.size // CHEAP)

    @property
    def size(self) -> int:
        return self.catalogue.n_active * len(self.catalogue.states)

    def make_version(self) -> tuple[Version, Record]:
        """The play from all that is known now, and what a refresh journals of it."""
        if self._stale_actions:
            self.ledger.set_actions(*self.catalogue.active())
            self._stale_actions = False
        version = self._within_settings(*self.ledger.play(self.plays))
        record = self.ledger.record(version.play, version.reach(self.ledger.columns()))
        carries = self.ledger.carries(version.play)
        return version if carries is None else version.carrying(carries), record

    def _within_settings(self, play: Floats, parts: tuple[Part, ...]) -> Version:
        settings = self.settings
        base = self._holdout_play() if settings.holdout else None
        if settings.shares:
            play = within(play, *self._bounds(base))
            parts = (spread(play),)
        return Version(self.ledger.ids, play, parts, settings.holdout, base)

    def _holdout_play(self) -> Floats:
        size, label = len(self.ledger.ids), self.settings.holdout_action
        if label is None or not self.catalogue.is_active(label):
            return np.full(size, 1 / size)
        base = np.zeros(size)
        base[self.ledger.place_of(self.catalogue.action(label))] = 1.0
        return base

    def _bounds(self, base: Floats | None) -> tuple[Floats, Floats]:
        """What is left of the shares for the learner's part of the play."""
        size = len(self.ledger.ids)
        low, high = np.zeros(size), np.ones(size)
        for label, smallest, largest in self.settings.shares:
            place = self.ledger.place_of(self.catalogue.action(label))
            if place is not None:
                low[place], high[place] = smallest, largest
        if base is not None:
            part = self.settings.holdout
            low, high = np.maximum(low - part * base, 0) / (1 - part), np.maximum(high - part * base, 0) / (1 - part)
        return low, high

    def dump(self) -> bytes:
        """A snapshot: equal folds give equal bytes. The catalogue is not in it: its events are few."""
        state = {
            "seq": self.seq,
            "plays": self.plays,
            "version": self.version,
            "epoch": self.epoch,
            "lessons": self.lessons,
            "changes": self.changes,
            "counts": self.counts,
            "tallies": self.comparison.dump(),
            "ledger": self.ledger.dump(),
        }
        return msgspec.msgpack.encode(state)

    def load(self, blob: bytes) -> None:
        """Go on from a snapshot; the catalogue's events up to there were applied before."""
        state = msgspec.msgpack.decode(blob)
        if state["changes"] != self.changes:
            raise Refused(f"the snapshot knows {state['changes']} changes of the catalogue, the journal {self.changes}")
        for name in ("seq", "plays", "version", "epoch", "lessons", "counts"):
            setattr(self, name, state[name])
        self.comparison.load(state["tallies"])
        self.ledger.load(state["ledger"])


APPLY: dict[type[Event], Callable[[Fold, Any, int], None]] = {
    Opened: Fold._open,
    Upgraded: Fold._upgrade,
    Added: Fold._change_actions,
    Retired: Fold._change_actions,
    Reweighted: Fold._change_actions,
    Changed: Fold._change_settings,
    Refreshed: Fold._refresh,
    Decided: Fold._decide,
    Seen: Fold._see,
    Resolved: Fold._resolve,
    Expired: Fold._resolve,
    Corrected: Fold._correct,
}
