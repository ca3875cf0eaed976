"""What a fork does to whatever is open: it copies memory, but neither threads nor file locks, and shares connections.

Whoever holds such things follows the forks of its process here: it is told before one, so that it can let go, and
after it, in the parent and in the child.
"""

import ctypes
import os
import threading
from typing import Any, Protocol
from weakref import WeakSet

from statepool.live.errors import StoreUnavailable


class Follower(Protocol):
    """Something that a fork concerns."""

    def before_fork(self) -> None:
        """Let go of what must not be in two processes, and stand still."""

    def after_fork_in_parent(self) -> None:
        """Go on."""

    def after_fork_in_child(self) -> None:
        """Go on with nothing of the parent's: the threads that held its locks are not here."""


class Forks:
    """All that follow the forks of this process, and which process that is."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._followers: WeakSet[Follower] = WeakSet()
        self._told: list[Follower] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child)

    def follow(self, follower: Follower) -> None:
        with self._lock:
            self._followers.add(follower)

    def check(self) -> None:
        """Refuse a process that was forked without a word to Python."""
        if os.getpid() != self.process:
            raise StoreUnavailable(
                "this process was forked behind Python's back after it had used pools: open them after the fork"
            )

    def forget(self, inherited: Any) -> None:
        """Leave something of the parent's alone for good: it is not even closed when nobody knows it any more."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))

    def _before(self) -> None:
        self._lock.acquire()
        self._told = list(self._followers)
        for follower in self._told:
            follower.before_fork()

    def _in_parent(self) -> None:
        told, self._told = self._told, []
        for follower in told:
            follower.after_fork_in_parent()
        self._lock.release()

    def _in_child(self) -> None:
        self.process, self._lock = os.getpid(), threading.Lock()
        told, self._told = self._told, []
        for follower in told:
            follower.after_fork_in_child()


forks = Forks()
