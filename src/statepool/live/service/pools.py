"""The open pools of a service. Requests that arrive while a transaction runs share the next one."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from statepool.learners import DEFAULT, find, make_learner
from statepool.live.database import Database
from statepool.live.decisions import Decision
from statepool.live.errors import NoSuchPool
from statepool.live.pool import Pool
from statepool.live.service.messages import LearnerBody, PoolBody
from statepool.live.settings import check_settings


class Batcher:
    """Groups calls of one kind: those that arrive while a batch runs form the next one.

    `many` runs a batch at once. If it raises ValueError, every call is repeated alone, which is harmless because calls
    are idempotent, and each gets its own result.
    """

    def __init__(self, many: Callable[[Sequence[Any]], Sequence[Any] | None]) -> None:
        self._many = many
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._is_running = False

    def submit(self, call: Any) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append((call, future))
        if not self._is_running:
            self._is_running = True
            loop.call_soon(self._start, loop)  # calls of the same moment share a batch
        return future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting, []
        work = loop.run_in_executor(None, self._run, [call for call, _ in batch])
        work.add_done_callback(lambda done: self._finish(loop, batch, done.result()))

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: list[Any], results: Sequence[Any]) -> None:
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():  # the caller has gone
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._is_running = bool(self._waiting)
        if self._is_running:
            loop.call_soon(self._start, loop)

    def _run(self, calls: list[Any]) -> Sequence[Any]:
        """A result or an exception for each call."""
        try:
            return self._many(calls) or [None] * len(calls)
        except ValueError as error:
            return [error] if len(calls) == 1 else [self._run([call])[0] for call in calls]
        except Exception as error:
            return [error] * len(calls)


class OpenPool:
    """A pool with its batches; calls are tuples of the arguments of `Pool.decide`, `observe` and `resolve`."""

    def __init__(self, pool: Pool) -> None:
        self.pool, self.observe = pool, Batcher(pool.observe_many)
        self.decide, self.resolve = Batcher(self._decide_many), Batcher(self._resolve_many)

    def _decide_many(self, calls: Sequence[Any]) -> Sequence[Decision]:
        tickets, contexts, candidates = zip(*calls, strict=True)
        return self.pool.decide_many(tickets, contexts=contexts, candidates=candidates)

    def _resolve_many(self, calls: Sequence[Any]) -> None:
        if any((loss is None) == (reward is None) for _, loss, reward in calls):
            raise ValueError("outcome: expected a loss or a reward, exactly one of them")
        losses = [(ticket, loss) for ticket, loss, reward in calls if reward is None]
        self.pool.resolve_many(losses, [(ticket, reward) for ticket, _, reward in calls if reward is not None])


class Pools:
    """The pools of a store, each opened when it is first used."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._open: dict[str, OpenPool] = {}
        self._lock = threading.Lock()

    async def find(self, name: str) -> OpenPool:
        found = self._open.get(name)
        return found if found is not None else await asyncio.to_thread(self._find, name)

    def get(self, name: str) -> Pool:
        """A pool, for a thread."""
        return self._find(name).pool

    def _find(self, name: str) -> OpenPool:
        with self._lock:
            if name not in self._open:
                if name not in self.database.pool_names():
                    raise NoSuchPool(f"pool: {name[:64]!r} is not in this store")
                self._open[name] = OpenPool(Pool.open(self.database, name))
            return self._open[name]

    def put(self, name: str, body: PoolBody) -> bool:
        """Create a pool or compare it with the existing one; whether it was created."""
        created = name not in self.database.pool_names()
        make_pool(self.database, name, body).close()
        self.get(name).refresh()
        return created

    def open_all(self) -> None:
        """Open every pool, so that it learns and expires without requests, and compile their learners.

        In an empty store the default learner is compiled.
        """
        names = self.database.pool_names()
        for name in names:
            with suppress(ValueError):  # its callers get the sentence
                self.get(name).policy()
        if not names:
            make_learner(DEFAULT).player([[0.5, 0.5], [0.5, 0.5]]).act()

    def close(self) -> None:
        for each in self._open.values():
            each.pool.close()
        self.database.close()


def make_pool(database: Database, name: str, body: PoolBody) -> Pool:
    """Continue the pool of that name, or create it; see `Pool.open`."""
    settings = dict(body.settings) | ({} if body.prior is None else {"prior": body.prior})
    check_settings(settings)  # a name that is not known must not become another argument of Pool.open
    learner: Any = body.learner
    if isinstance(learner, LearnerBody):
        try:
            learner = find(learner.name)(**learner.options)
        except TypeError as error:
            raise ValueError(f"learner: {learner.name!r} does not take these options ({error})") from None
    return Pool.open(
        database, name, body.P, body.actions, body.states, learner, contexts=body.contexts, categories=body.categories,
        update=body.update, learn_map=body.learn_map, **settings,
    )  # fmt: skip
