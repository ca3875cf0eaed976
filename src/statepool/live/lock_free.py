"""Decisions drawn and written without the pool's lock, to this process's lane."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from statepool.live.errors import InTurn, LaneTaken, StoreUnavailable, Taken
from statepool.live.group_commit import GroupCommit
from statepool.live.lanes import Lane, LaneWriter, Published
from statepool.live.stores.store import LaneBatch, LaneRow, Store, View
from statepool.live.writer import PlayedVersions, Request, answer, tickets_of

TRIES = 8
SETTLE_AT = 1_000
"""Decisions of this process's lane after which it sees to it that the journal takes them over."""


class JournalSide(Protocol):
    """What a lane needs of its journal."""

    name: str
    store: Store
    played: PlayedVersions
    published: Published | None

    def now(self, view: View | None = None) -> int: ...

    def take_up(self, lane: LaneBatch, before: Published) -> Published | None: ...

    def adopt(self, view: View, now: int) -> Published | None: ...

    def publish(self, now: int) -> None: ...

    def settle(self) -> None: ...

    def run_in_turn(self, requests: Sequence[Request]) -> list[Any]: ...

    @property
    def tell(self) -> Callable[[float, float, float, int], None]: ...


class LockFree:
    """The lane of one process; callers that decide at the same time share a transaction."""

    def __init__(self, journal: JournalSide) -> None:
        self._journal = journal
        self._turns = GroupCommit(self._decide)
        self.lane = Lane()
        self._unsettled, self.is_settling = 0, False
        self._head = 0
        """Of the journal, at the latest decision."""

    def run(self, requests: Sequence[Request]) -> list[Any]:
        """Answers, once they are on disk; an answer may be the exception that its request earned."""
        return self._turns.run(requests)

    def start_again(self) -> None:
        """What was written may not have been kept, or somebody else may go on with it: another lane."""
        self.lane = Lane()

    def forget(self) -> None:
        """In a child of this process: whoever is at work is the parent's."""
        self._turns.forget()
        self.is_settling = False

    def _decide(self, requests: list[Request]) -> list[Any]:
        for _ in range(TRIES):
            with suppress(Taken), self._or_another_lane():
                answers = self._try(requests)
                if answers is not None:
                    return answers
        return self._journal.run_in_turn(requests)  # others were faster every time: wait for the lock, as they do

    def _try(self, requests: list[Request]) -> list[Any] | None:
        """None: a version had to be made, or the journal has gone on too far, or this lane is not in the store."""
        journal, tickets = self._journal, [ticket for each in requests for ticket in tickets_of(each)]
        writer, began = None, time.perf_counter()
        with_rows = any(getattr(each, "brings_rows", False) for each in requests)
        before = journal.published
        with journal.store.lane(journal.name, b"" if before is None else before.hash) as batch:
            entered, now = time.perf_counter(), journal.now(batch)
            published = self._level_with(batch, before, now, with_rows)
            if published is not None:
                if self.lane.has_rested(batch.clock()):
                    self.start_again()
                writer = LaneWriter(self.lane, published, batch, now)
                writer.look_up(tickets)
                answers = _answers(requests, writer)
                writer.write()
                written = time.perf_counter()
        if writer is None or (writer.entries and not batch.kept):
            if writer is not None:
                self.start_again()
            journal.publish(now)
            return None
        writer.move_on()
        assert published is not None
        self._note(writer.entries, published.seq)
        if any(isinstance(each, InTurn) for each in answers):
            journal.played.rows_recur = False
        journal.tell(began, entered, written, len(writer.entries))
        return answers

    def _level_with(
        self, batch: LaneBatch, before: Published | None, now: int, with_rows: bool
    ) -> Published | None:  # fmt: skip
        """What to draw from as of this reading of the journal, or later; None: it must be read anew, or made."""
        journal, head = self._journal, batch.head()

        def will_do(published: Published) -> bool:
            return published.can_answer(with_rows) and published.is_level(head, now, journal.played.budget)

        if before is not None:
            if will_do(before):
                return before
            newer = journal.take_up(batch, before)
            if newer is not None and will_do(newer):
                return newer
        return journal.adopt(batch, now)

    @contextmanager
    def _or_another_lane(self) -> Iterator[None]:
        """After an error it is not known whether rows were kept: what comes next goes elsewhere."""
        try:
            yield
        except Exception as error:
            if isinstance(error, LaneTaken) or not isinstance(error, Taken | ValueError):
                self.start_again()
            raise
        except BaseException:
            self.start_again()
            raise

    def _note(self, rows: Sequence[LaneRow], head: int) -> None:
        if head != self._head:  # a batch has taken over what there was
            self._head, self._unsettled = head, 0
        for row in rows:
            self._journal.played.earn(len(row.body))
        self._unsettled += len(rows)
        if self._unsettled >= SETTLE_AT and not self.is_settling:
            self.is_settling, self._unsettled = True, 0
            threading.Thread(target=self._settle, name=f"lanes of {self._journal.name}", daemon=True).start()

    def _settle(self) -> None:
        """Nobody waits for this; where it fails, the next batch of the journal does the same."""
        try:
            with suppress(StoreUnavailable):
                self._journal.settle()
        finally:
            self.is_settling = False


def _answers(requests: Sequence[Request], writer: LaneWriter) -> list[Any]:
    """What each earns; what is about the ticket of one that waits for its turn keeps its order, and waits, too."""
    answers: list[Any] = []
    waiting: dict[str, InTurn] = {}
    for request in requests:
        before = next((waiting[each] for each in tickets_of(request) if each in waiting), None) if waiting else None
        answers.append(before or answer(request, writer))
        if isinstance(answers[-1], InTurn):
            waiting |= dict.fromkeys(tickets_of(request), answers[-1])
    return answers
