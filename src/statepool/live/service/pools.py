"""The open pools of one store, each with a thread of its own while it is used, where concurrent requests share their
batches. A pool that nobody has asked for a while is closed, and costs nothing until somebody does.

Requests of a pool wait in one queue; when the last batch is on disk, all that wait become the next. Those who were
just answered are often about to ask again, so the next batch waits for them, a part of the time that the last one took
at most: at 32 connections that puts 32 requests into one fsync instead of 16 into each of two.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from statepool.live.errors import Busy, NoSuchPool, StoreUnavailable
from statepool.live.group_commit import size_of
from statepool.live.journal import Timed
from statepool.live.pool import Pool
from statepool.live.service.refusals import tell_operator
from statepool.live.stores.store import Store

LARGEST_BATCH = 1_000
LONGEST_QUEUE = 20_000
MOST_POOLS = 10_000
THREAD_SECONDS = 1.0
"""How long a pool's thread waits for something to do."""
PATIENCE = 1.0
"""How long a batch waits for others, as a part of the last batch's time."""

Told = Callable[[list[Any]], None]
"""Told the answers (or exceptions) to some requests, in the event loop."""
Ask = tuple[Sequence[Any], Told]
Note = Callable[[str, Exception | None], None]
"""Told how a pool fared: its trouble, or None."""
Job = tuple[Callable[[], Any], Callable[[Any], None]]


class PoolWorker:
    """A pool, its queue and its thread; everything here but `_work` runs in the event loop.

    Where decisions take no lock they have a queue and a thread of their own (`apart`), so that none waits for a lesson.
    """

    def __init__(self, pool: Pool, note: Note, apart: "PoolWorker | None" = None) -> None:
        self.pool = pool
        self._apart = apart
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._waiting: list[Ask] = []
        self._busy = False
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._expected, self._deadline = 0, 0.0
        self._used = perf_counter()
        self._gate = threading.Lock()
        self._at_work = False

    def ask(self, requests: Sequence[Any]) -> "asyncio.Future[list[Any]]":
        """Answers (or exceptions), once they are on disk."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        self.put(requests, partial(_settle, future))
        return future

    def put(self, requests: Sequence[Any], told: Told) -> None:
        """The same without a future, for those who are many: `told` is called once the answers are on disk."""
        self._used = perf_counter()
        if self._apart is not None and all(_waits_for_nobody(request) for request in requests):
            self._apart.put(requests, told)
            return
        if len(self._waiting) >= LONGEST_QUEUE:
            raise StoreUnavailable("too many requests are waiting for this pool, try again in a moment")
        self._waiting.append((requests, told))
        if not self._busy:
            self._consider()

    async def ask_one(self, request: Any) -> Any:
        """The answer to one request; raises why there is none."""
        [answer] = await self.ask([request])
        return _checked(answer)

    async def call(self, work: Callable[[], Any]) -> Any:
        """Something else to be done by the pool's thread, between batches."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._put((work, partial(_settle, future)))
        return _checked(await future)

    def seconds_busy(self) -> float:
        """How long the batch that is being written has taken so far."""
        others = 0.0 if self._apart is None else self._apart.seconds_busy()
        return max(others, perf_counter() - self._began if self._busy else 0.0)

    def _consider(self) -> None:
        if len(self._waiting) < self._expected:
            left = self._deadline - perf_counter()
            if left > 0:
                self._timer = self._timer or self._loop.call_later(left, self._start)
                return
        self._start()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, size = 0, 0
        while taken < len(self._waiting) and size < LARGEST_BATCH:
            size += size_of(self._waiting[taken][0])
            taken += 1
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        requests = [request for asked, _ in batch for request in asked]
        self._busy = True
        started = self._began = perf_counter()
        self._put((lambda: self.pool.run(requests), lambda answers: self._done(batch, answers, started)))

    def _done(self, batch: list[Ask], answers: Any, started: float) -> None:
        self._note(self.pool.name, _trouble(answers))
        if isinstance(answers, Exception):
            answers = [answers] * sum(len(asked) for asked, _ in batch)
        if answers and isinstance(answers[0], Busy):
            # Those who wait have waited as long for the same lock, and would wait as long again.
            answers = [*answers, *[answers[0]] * sum(len(asked) for asked, _ in self._waiting)]
            batch, self._waiting = batch + self._waiting, []
        _tell(batch, answers)
        now = perf_counter()
        self._busy = False
        self._expected, self._deadline = len(batch) + len(self._waiting), now + PATIENCE * (now - started)
        if self._waiting:
            self._consider()

    def _put(self, job: Job) -> None:
        with self._gate:
            self._jobs.put(job)
            if not self._at_work:
                self._at_work = True
                threading.Thread(target=self._work, name=f"pool {self.pool.name}", daemon=True).start()

    def _next(self) -> Job | None:
        """The next job; None if there was nothing to do for a while, and the thread may go."""
        with suppress(Empty):
            return self._jobs.get(timeout=THREAD_SECONDS)
        with self._gate:
            self._at_work = not self._jobs.empty()
            return self._jobs.get() if self._at_work else None

    def _work(self) -> None:
        while (job := self._next()) is not None:
            work, done = job
            try:
                answer = work()
            except Exception as error:
                answer = error
            with suppress(RuntimeError):  # the loop has ended meanwhile, and nobody waits
                self._loop.call_soon_threadsafe(done, answer)

    def seconds_idle(self) -> float:
        """How long ago it was last asked for something."""
        return 0.0 if self._busy or self._waiting else perf_counter() - self._used


def _waits_for_nobody(request: Any) -> bool:
    """Candidates whose rows have to be kept first wait for the pool's lock."""
    return getattr(request, "is_apart", False) and not request.may_wait


def _tell(batch: list[Ask], answers: list[Any]) -> None:
    """Each its own answers; one who cannot be told keeps nobody else from being told."""
    place = 0
    for asked, told in batch:
        try:
            told(answers[place : place + len(asked)])
        except Exception as error:
            tell_operator(error)
        place += len(asked)


def _settle(future: "asyncio.Future[Any]", answer: Any) -> None:
    if not future.done():
        future.set_result(answer)


def _checked(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _trouble(answers: Any) -> Exception | None:
    """Why nothing of a batch could be done; None if something was, or if only what was asked was wrong."""
    if isinstance(answers, Exception):
        return answers
    if all(isinstance(answer, Exception) and not isinstance(answer, ValueError) for answer in answers):
        return next(iter(answers), None)
    return None


class Pools:
    """Every pool of a store, opened when it is first asked for. `names` and `get` may be called from any thread."""

    def __init__(
        self, store: Store, note: Note, timed: Callable[[Timed], None] | None = None, most: int = MOST_POOLS
    ) -> None:
        self.store = store
        self.most = most
        self._note, self._timed = note, timed
        self._lock = threading.Lock()
        self._pools: dict[str, Pool] = {}
        self._workers: dict[str, PoolWorker] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something that takes more than the event loop may wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def names(self) -> list[str]:
        return self.store.pools()

    def get(self, name: str) -> Pool:
        """The one `Pool` of this name in this process."""
        found = self._pools.get(name)
        if found is not None:
            return found
        if not self.has(name):
            raise NoSuchPool(f"pool: {name[:64]!r} is not in this store")
        return self.adopt(Pool.open(self.store, name))

    def has(self, name: str) -> bool:
        """Whether there is such a pool; a name without events, left by a process that was killed, is none."""
        if not self.store.has(name):
            return False
        with self.store.view(name) as view:
            return view.head().seq > 0

    def adopt(self, pool: Pool) -> Pool:
        """Keep a pool that was opened elsewhere, unless there is one of its name already."""
        with self._lock:
            kept = self._pools.setdefault(pool.name, pool)
        kept.on_batch(self._timed)
        return kept

    def workers(self) -> list[PoolWorker]:
        return list(self._workers.values())

    def open_worker(self, name: str) -> PoolWorker | None:
        """The worker of a pool that was asked for before."""
        return self._workers.get(name)

    async def worker(self, name: str) -> PoolWorker:
        """The worker of a pool, opened if need be."""
        found = self._workers.get(name)
        if found is None:
            try:
                pool = await asyncio.to_thread(self.get, name)
            except NoSuchPool:
                raise
            except Exception as error:
                self._note(name, error)
                raise
            apart = PoolWorker(pool, self._note) if pool.decides_apart else None
            found = self._workers.get(name) or self._workers.setdefault(name, PoolWorker(pool, self._note, apart))
        return found

    async def close_idle(self, seconds: float) -> int:
        """Let go of what nobody has asked for so long, with a snapshot; the next one who asks reads it again."""
        idle = [name for name, worker in self._workers.items() if worker.seconds_idle() > seconds]
        for name in idle:
            worker = self._workers.pop(name)
            with suppress(StoreUnavailable):  # nothing is lost without the snapshot
                await worker.call(worker.pool.rest)
        return len(idle)

    async def close(self) -> None:
        """Save snapshots of all pools, then close the store; one that is away loses nothing but the snapshots."""
        closing = [worker.call(worker.pool.close) for worker in self._workers.values()]
        await asyncio.gather(*closing, return_exceptions=True)
        await asyncio.to_thread(self.store.close)
