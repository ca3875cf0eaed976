"""Turns between processes: what one of them is making, the others wait for, and then find.

A turn is a locked byte of one file. The lock ends with the process that holds it, however that ends, and a fork does
not have it. Where there are no such locks, everybody makes what they need, as without turns.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PATIENCE = 20.0
"""Seconds after which somebody who is still at it is not waited for any longer: they may have been stopped, and to make
the same thing twice does no harm."""

_PAUSE = 0.02
_PLACES = 2**60


class Turns:
    """The turns that this process has, of those that all processes with the same file take."""

    def __init__(self, file: Path, patience: float = PATIENCE) -> None:
        self._patience = patience
        try:
            # Open for good: closing any handle on the file would end all turns of the process.
            self._handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            self._handle = -1

    def take(self, name: str) -> bool:
        """Wait until nobody else has the turn of this name, and have it; False where waiting is of no use."""
        given_up = time.monotonic() + self._patience
        while self._handle >= 0 and sys.platform != "win32":
            try:
                fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place_of(name))
                return True
            except (BlockingIOError, PermissionError):  # which of the two a held lock is depends on the system
                if time.monotonic() > given_up:
                    self._patience /= 2  # all that is waited in vain stays below twice the patience
                    return False
                time.sleep(_PAUSE)
            except OSError:  # no locks on this file system
                return False
        return False

    def end(self, name: str) -> None:
        """Let the next one have it."""
        if self._handle >= 0 and sys.platform != "win32":
            try:
                fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, _place_of(name))
            except OSError:  # as above: nothing was locked
                return


def _place_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % _PLACES
