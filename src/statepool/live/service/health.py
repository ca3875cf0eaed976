"""Which pools are in trouble, and why: what the last attempt of something said, until another one of the same kind
succeeds."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, time

from statepool.live.errors import StoreUnavailable
from statepool.live.service.refusals import refusal, tell_operator
from statepool.live.stores.store import Store

SECONDS = 5.0
FRESH = 1.0
REQUESTS = "requests"
"""The work that every caller asks for; a chore's name is that of another kind."""


class Health:
    """`say(pool, trouble)` is called when a pool gets into trouble, and with None when it is out."""

    def __init__(self, store: Store, say: Callable[[str, str | None], None]) -> None:
        self._store, self._say = store, say
        self._troubles: dict[str, dict[str, str]] = {}
        """Of each pool: the sentence of each kind of work that failed."""
        self.well: set[str] = set()
        """The pools that answered what was asked of them."""
        self.anchor_trouble: str | None = None
        self.anchored_at: float | None = None
        """When the pools' heads were last noted outside, or when that was begun; None: nobody asked for it."""
        self._probe: asyncio.Future[str | None] | None = None
        self._probed_at = 0.0
        self._thread = ThreadPoolExecutor(1, "probe")

    @property
    def troubles(self) -> dict[str, str]:
        """Why each pool that is in trouble is so."""
        return {pool: "; ".join(dict.fromkeys(kinds.values())) for pool, kinds in self._troubles.items()}

    def in_trouble(self, work: str = REQUESTS) -> list[str]:
        """The pools for which this kind of work failed."""
        return [pool for pool, kinds in self._troubles.items() if work in kinds]

    def note(self, pool: str, error: Exception | None, work: str = REQUESTS) -> None:
        """How some work of a pool went: what a caller asked for, or a chore. A chore that fails for a reason of its
        own leaves the pool as well as it was: it answers."""
        if error is None:
            self._end(pool, work)
            return
        refused, known = refusal(error), pool in self._troubles
        if work == REQUESTS:
            self.well.discard(pool)
        self._troubles.setdefault(pool, {})[work] = refused.sentence
        if not known:
            self._say(pool, refused.sentence)
            if refused.status == 500:
                tell_operator(error)

    def _end(self, pool: str, work: str) -> None:
        if work == REQUESTS:
            self.well.add(pool)
        kinds = self._troubles.get(pool)
        if kinds is not None and kinds.pop(work, None) is not None and not kinds:
            del self._troubles[pool]
            self._say(pool, None)

    def note_anchors(self, error: Exception | None) -> None:
        """How it went to note the pools' heads outside."""
        sentence = None if error is None else _reason(error)
        if error is None:
            self.anchored_at = time()
        if (sentence is None) != (self.anchor_trouble is None):
            self._say("(anchors)", sentence)
        self.anchor_trouble = sentence

    def begin_anchors(self) -> None:
        """A place that never works is as old as the service: its age must be there for the alert to compare."""
        self.anchored_at = time()

    def forget(self, pool: str) -> None:
        """There is no such pool any more."""
        self._troubles.pop(pool, None)
        self.well.discard(pool)

    async def store_trouble(self) -> str | None:
        """Why the store cannot be written to; None if it can. Asked once a second at most, and once at a time."""
        if self._probe is None or (self._probe.done() and monotonic() - self._probed_at > FRESH):
            self._probed_at = monotonic()
            self._probe = asyncio.get_running_loop().run_in_executor(self._thread, self._try)
        try:
            # Not `wait_for`: on Python 3.11 that swallows a cancellation which comes as the answer does.
            async with asyncio.timeout(SECONDS):
                return await asyncio.shield(self._probe)
        except TimeoutError:
            return f"the store did not take a write within {SECONDS:g} seconds"

    def _try(self) -> str | None:
        try:
            self._store.probe()
        except StoreUnavailable as error:
            return " ".join(str(error).split())
        return None

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _reason(error: Exception) -> str:
    """Only the operator reads it, in the log: also what nobody foresaw is said as it is."""
    refused = refusal(error)
    return refused.sentence if refused.status != 500 else " ".join(f"{type(error).__name__}: {error}".split())
