"""Callers that wait for the same turn share it: what they ask is answered together, and costs one wait for the disk."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from statepool.live.errors import Busy

LARGEST_BATCH = 1_000


def size_of(requests: Sequence[Any]) -> int:
    """How many requests they are worth: one may be several in one."""
    return sum(getattr(request, "size", 1) for request in requests)


class _Waiting:
    """The requests of one caller, and their answers once they are committed."""

    def __init__(self, requests: Sequence[Any]) -> None:
        self.requests, self.size = requests, size_of(requests)
        self.answers: list[Any] | None = None


class GroupCommit:
    """One batch at a time; `work` answers the requests of a batch, in order, or raises for all of them."""

    def __init__(self, work: Callable[[list[Any]], list[Any]]) -> None:
        self._work = work
        self.lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()

    def run(self, requests: Sequence[Any]) -> list[Any]:
        """Answers, once they are kept; an answer may be the exception that its request earned."""
        mine = _Waiting(requests)
        self._queue.append(mine)
        with self.lock:
            while mine.answers is None:
                self._run_batch(self._next_group())
        return mine.answers

    def _next_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        size = 0
        while self._queue and (not group or size + self._queue[0].size <= LARGEST_BATCH):
            group.append(self._queue.popleft())
            size += group[-1].size
        return group

    def _run_batch(self, group: list[_Waiting]) -> None:
        try:
            answers = self._work([request for waiting in group for request in waiting.requests])
        except BaseException as error:
            while isinstance(error, Busy) and self._queue:  # they have waited as long, and would wait as long again
                group.append(self._queue.popleft())
            _give(group, [error] * sum(len(waiting.requests) for waiting in group))
            if not isinstance(error, Exception):  # Ctrl-C: who waits for this batch must not wait for ever
                raise
        else:
            _give(group, answers)

    def forget(self) -> None:
        """In a child of this process: whoever held the lock or waited for it is the parent's."""
        self.lock = threading.Lock()
        self._queue = deque()


def _give(group: list[_Waiting], answers: list[Any]) -> None:
    rest = iter(answers)
    for waiting in group:
        waiting.answers = [next(rest) for _ in waiting.requests]
