"""The open pools of a service. Requests that arrive while a transaction runs share the next one."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import sqlalchemy as sa

from statepool.learners import find, make_learner
from statepool.learners.contract import Problem, Rows
from statepool.learners.stepper import Stepper
from statepool.live.database import Database
from statepool.live.decisions import Decision
from statepool.live.errors import NoSuchPool
from statepool.live.pool import Pool
from statepool.live.service.messages import LearnerBody, PoolBody
from statepool.live.settings import check_settings
from statepool.stream import Stream

T = TypeVar("T")
MAX_BATCH = 256


async def in_thread(work: Callable[[], T]) -> T:
    """Run a function that waits for the store in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


class Batcher:
    """Groups calls of one kind: those that arrive while a batch runs form the next one.

    `many` runs a batch at once. If it raises ValueError, every call is repeated alone with `one`, which is harmless
    because calls are idempotent, and each gets its own result.
    """

    def __init__(self, one: Callable[[Any], Any], many: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._one, self._many = one, many
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._is_running = False

    def submit(self, call: Any) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append((call, future))
        if not self._is_running:
            self._is_running = True
            loop.call_soon(self._start, loop)  # after the requests that have arrived together
        return future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        self._is_running = bool(batch)
        if batch:
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
        self._start(loop)

    def _run(self, calls: list[Any]) -> Sequence[Any]:
        """A result or an exception for each call."""
        if len(calls) > 1:
            try:
                return self._many(calls)
            except ValueError:
                pass
            except Exception as error:
                return [error] * len(calls)
        return [self._attempt(call) for call in calls]

    def _attempt(self, call: Any) -> Any:
        try:
            return self._one(call)
        except Exception as error:
            return error


class OpenPool(NamedTuple):
    """A pool with its batches; calls are tuples of the arguments of `Pool.decide`, `observe` and `resolve`."""

    pool: Pool
    decide: Batcher
    observe: Batcher
    resolve: Batcher

    @classmethod
    def of(cls, pool: Pool) -> "OpenPool":
        def decide_many(calls: Sequence[Any]) -> Sequence[Decision]:
            tickets, contexts, candidates = zip(*calls, strict=True)
            return pool.decide_many(tickets, contexts=contexts, candidates=candidates)

        def observe_many(calls: Sequence[Any]) -> Sequence[None]:
            pool.observe_many(calls)
            return [None] * len(calls)

        def resolve_many(calls: Sequence[Any]) -> Sequence[None]:
            if any((loss is None) == (reward is None) for _, loss, reward in calls):
                raise ValueError("outcome: expected a loss or a reward")  # each is run alone, and says so itself
            losses = [(ticket, loss) for ticket, loss, reward in calls if reward is None]
            pool.resolve_many(losses, [(ticket, reward) for ticket, _, reward in calls if reward is not None])
            return [None] * len(calls)

        return cls(
            pool,
            Batcher(lambda call: pool.decide(call[0], context=call[1], candidates=call[2]), decide_many),
            Batcher(lambda call: pool.observe(*call), observe_many),
            Batcher(lambda call: pool.resolve(*call), resolve_many),
        )


class Pools:
    """Opens pools when they are first used. `follow`: pools are only read."""

    def __init__(self, database: Database, follow: bool = False) -> None:
        self.database, self._follow = database, follow
        self._open: dict[str, OpenPool] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        return self.database.pool_names()

    async def find(self, name: str) -> OpenPool:
        found = self._open.get(name)
        return found if found is not None else await in_thread(partial(self._find, name))

    def get(self, name: str) -> Pool:
        """A pool, for a thread."""
        return self._find(name).pool

    def _find(self, name: str) -> OpenPool:
        with self._lock:
            if name not in self._open:
                if name not in self.names():
                    raise NoSuchPool(f"pool: {name[:64]!r} is not in this store")
                self._open[name] = OpenPool.of(Pool.open(self.database, name))
            return self._open[name]

    def adopt(self, pool: Pool) -> Pool:
        """Serve a pool that is open already; a second one of that name is closed."""
        with self._lock:
            if self._open.setdefault(pool.name, OpenPool.of(pool)).pool is not pool:
                pool.close()
            return self._open[pool.name].pool

    def put(self, name: str, body: PoolBody) -> bool:
        """Create a pool or compare it with the existing one; whether it was created."""
        created = name not in self.names()
        self.adopt(make_pool(self.database, name, body)).refresh()
        return created

    def compile(self) -> None:
        """Compile the learners of the store's pools, or the default learner in an empty store."""
        pools = self.database.tables.pools
        with self.database.read() as connection:
            names = list(connection.execute(sa.select(sa.func.min(pools.c.name)).group_by(pools.c.learner)).scalars())
        for name in names:
            self.get(name).policy()
        if not names and not self._follow:
            problem = Problem(np.full((2, 2), 0.5), None, 1, Stream.from_seed(0))
            Stepper(make_learner("self-tuned"), problem).policy(Rows(problem.columns, np.arange(2), 0, False), 0)

    def open_all(self) -> None:
        """Open every pool, so that it expires decisions and learns without requests."""
        for name in [] if self._follow else self.names():
            with suppress(ValueError):  # its callers get the sentence
                self._find(name)

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
