"""What a journal adds up to: the catalogue, the learner, the latest version, and counts for people to read.

`apply` takes the events one by one, in order; nothing else changes it, and it reads no clock. Decisions change nothing
but the number of decisions, so one who only follows may leave them out.
"""

from collections import OrderedDict
from collections.abc import Callable
from struct import unpack_from
from typing import Any

import msgspec
import numpy as np

from statepool.learners import find
from statepool.live.answers import Answers
from statepool.live.catalogue import Catalogue
from statepool.live.errors import Damaged
from statepool.live.events import (
    Added,
    AnyEvent,
    Brought,
    Changed,
    Corrected,
    Decided,
    Event,
    Expired,
    Forgotten,
    Lesson,
    Opened,
    Placed,
    Refreshed,
    Resolved,
    Retired,
    Reweighted,
    Seen,
    Upgraded,
)  # fmt: skip
from statepool.live.format import check_format
from statepool.live.holdout import HoldoutComparison
from statepool.live.lift import Tally
from statepool.live.live_learner import POSSIBLE, LiveLearner, Q, Record
from statepool.live.luck import uniform_of
from statepool.live.settings import check_settings
from statepool.live.snapshots import UnusableSnapshot
from statepool.live.versions import Version

CHEAP = 100_000
"""By default a version is made once in K |S| / CHEAP lessons: about a tenth of a millisecond each."""


MOST_LANES = 4_096
"""Lanes whose length is known; one that was silent while so many others came may go on anywhere."""


class Records:
    """The records of the latest versions; older ones are found in the journal when a ticket of theirs comes back."""

    KEPT = 2048
    BYTES = 16 << 20

    def __init__(self, find_event: Callable[[int], AnyEvent]) -> None:
        self._find_event = find_event
        self._kept: OrderedDict[int, Record] = OrderedDict()
        self._bytes = 0

    def keep(self, version: int, record: Record) -> None:
        self._bytes += _size(record) - _size(self._kept.get(version, {}))
        self._kept[version] = record
        while len(self._kept) > self.KEPT or (self._bytes > self.BYTES and len(self._kept) > 1):
            self._bytes -= _size(self._kept.popitem(last=False)[1])

    def find(self, version: int) -> Record:
        if version not in self._kept:
            event = self._find_event(version)
            assert isinstance(event, Refreshed)
            self.keep(version, event.record)
        self._kept.move_to_end(version)
        return self._kept[version]


def _size(record: Record) -> int:
    """Its tables; the rest is little."""
    return sum(len(value) for value in record.values() if isinstance(value, bytes))


class PoolState:
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
        self.live_learner = LiveLearner(self.learner, len(self.catalogue.states), opened.seed)
        self.seq = self.decisions = 0
        self.version = 0
        """The event that made the latest version; 0: none yet."""
        self.epoch = b""
        """Of the process that made it."""
        self.lessons = self.changes = 0
        """How much has been learnt, how often the catalogue or the settings were changed."""
        self.counts = dict.fromkeys(("state", "outcome", "expiry", "correction", "impossible"), 0)
        self.comparison = HoldoutComparison(self.settings, self.catalogue)
        self.lanes: OrderedDict[bytes, int] = OrderedDict()
        """How many decisions of each lane the journal has, the lane that was heard of last at the end."""
        self.brought = 0
        """Bytes of rows that requests brought and that were kept."""
        self._records = records
        self._stale_actions = True
        self._answers: Answers | None = None

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
        self._count_change()

    def _change_actions(self, event: Added | Retired | Reweighted, seq: int) -> None:
        self.catalogue.apply(event, seq)
        self.comparison.heed(self.settings, self.catalogue, seq)
        self._count_change()
        self._stale_actions = True

    def _count_change(self) -> None:
        self.changes += 1
        self._answers = None

    def _place(self, event: Placed, seq: int) -> None:
        self.catalogue.place(event)
        self._count_change()

    def _bring(self, event: Brought, seq: int) -> None:
        self.brought += len(event.rows)

    def _change_settings(self, event: Changed, seq: int) -> None:
        self.settings = check_settings(event.settings)
        self.comparison.heed(self.settings, self.catalogue, seq)
        self._count_change()

    def _refresh(self, event: Refreshed, seq: int) -> None:
        self.live_learner.resume(event.record, event.decisions)
        self._records.keep(seq, event.record)
        self.version, self.epoch = seq, event.epoch

    def _decide(self, event: Decided, seq: int) -> None:
        if event.lane:
            self._follow_lane(event)
        self.decisions = event.number + 1

    def _follow_lane(self, event: Decided) -> None:
        """Every decision of a lane comes into the journal, once and in order."""
        expected = self.lanes.pop(event.lane, None)
        if expected is None and len(self.lanes) < MOST_LANES:
            expected = 0
        if expected not in (None, event.place):
            raise Damaged(f"decision {event.place} of lane {event.lane.hex()} stands where {expected} is expected")
        self.lanes[event.lane] = event.place + 1
        if len(self.lanes) > MOST_LANES:
            self.lanes.popitem(last=False)

    def _see(self, event: Seen, seq: int) -> None:
        assert event.state is not None
        self.counts["state"] += 1
        if self._is_impossible(event):
            self.counts["impossible"] += 1
            return
        self.live_learner.see(event.round_played, event.action, event.state)
        if event.is_request:
            self.live_learner.see_request(event.round_played, event.reached)
        self.lessons += self.live_learner.heeds_states or (event.is_request and self.live_learner.heeds_requests)
        self._teach(event, event.loss)

    def _is_impossible(self, event: Lesson) -> bool:
        """Whether the map said, when the action was drawn, that it cannot lead to the state that was reported.

        Such a report is wrong, and teaches nothing: it would be charged by the probability of a state that the play
        hardly reached.
        """
        if event.state is None or self.live_learner.learns_map:
            return False
        if event.is_request:
            return bool(np.frombuffer(event.carried)[POSSIBLE] == 0)
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

    def _forget(self, event: Forgotten, seq: int) -> None:
        """What was learnt stays."""

    def _teach(self, event: Lesson, loss: float | None) -> None:
        """A state and a loss are both there now."""
        if event.state is not None and loss is not None and not self._is_impossible(event):
            self._learn(event, loss, 1)
            self.live_learner.arrive(event.decisions - 1 - event.round_played)
            self.lessons += 1

    def _learn(self, event: Lesson, loss: float | None, sign: int) -> None:
        record = self._records.find(event.version)
        assert event.state is not None
        q = np.frombuffer(event.carried)[Q] if event.is_request else unpack_from("d", record["q"], 8 * event.state)[0]
        if loss is not None and q > 0:  # it may have underflowed
            self.live_learner.learn(record, event, loss, sign)

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
            self.live_learner.set_actions(*self.catalogue.active())
            self._stale_actions = False
        version = self.answers.limits.keep(*self.live_learner.distribution(self.decisions), self.live_learner.ids)
        record = self.live_learner.record(version.distribution, version.reach(self.live_learner.columns()))
        carries, known = self.live_learner.carries(version.distribution), self.live_learner.known(self.decisions)
        return version.carrying(carries, known), record

    @property
    def answers(self) -> Answers:
        """How requests are answered, as of the latest change."""
        if self._answers is None:
            self._answers = Answers(self.catalogue, self.settings, self.live_learner)
        return self._answers

    def uniform_of(self, event: Decided) -> float:
        """The number that a decision was drawn from."""
        if event.uniform is not None:
            return event.uniform
        of_lane = event.lane, event.place, event.round_played
        return uniform_of(self.seed, self.seeded, event.ticket, event.minted, *of_lane)

    def dump(self) -> bytes:
        """A snapshot: equal folds give equal bytes. The catalogue is not in it: its events are few."""
        state = {
            "seq": self.seq,
            "plays": self.decisions,
            "version": self.version,
            "epoch": self.epoch,
            "lessons": self.lessons,
            "brought": self.brought,
            "changes": self.changes,
            "counts": self.counts,
            "tallies": self.comparison.dump(),
            "ledger": self.live_learner.dump(),
            "lanes": list(self.lanes.items()),
        }
        return msgspec.msgpack.encode(state)

    def load(self, blob: bytes) -> None:
        """Go on from a snapshot; the catalogue's events up to there were applied before."""
        state = msgspec.msgpack.decode(blob)
        if state["changes"] != self.changes:
            raise UnusableSnapshot(
                f"the snapshot knows {state['changes']} changes of the catalogue, the journal {self.changes}"
            )
        self.decisions = state["plays"]
        for name in ("seq", "version", "epoch", "lessons", "brought", "counts"):
            setattr(self, name, state[name])
        self.lanes = OrderedDict((lane, count) for lane, count in state["lanes"])
        self.comparison.load(state["tallies"])
        self.live_learner.load(state["ledger"])


APPLY: dict[type[Event], Callable[[PoolState, Any, int], None]] = {
    Opened: PoolState._open,
    Upgraded: PoolState._upgrade,
    Added: PoolState._change_actions,
    Retired: PoolState._change_actions,
    Reweighted: PoolState._change_actions,
    Placed: PoolState._place,
    Brought: PoolState._bring,
    Changed: PoolState._change_settings,
    Refreshed: PoolState._refresh,
    Decided: PoolState._decide,
    Seen: PoolState._see,
    Resolved: PoolState._resolve,
    Expired: PoolState._resolve,
    Corrected: PoolState._correct,
    Forgotten: PoolState._forget,
}
