"""What a service does by itself. Each chore is one pool's own: where it fails or hangs, the others go on."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from time import monotonic

from statepool.live.anchors import Anchoring
from statepool.live.errors import NoSuchPool, StoreUnavailable
from statepool.live.service.health import REQUESTS, Health
from statepool.live.service.keys import Keys
from statepool.live.service.pools import Pools
from statepool.live.service.routes import expire

KEYS_EVERY = 1.0
RECOVER_EVERY = 2.0
LONGEST_BATCH = 5.0
IDLE_EVERY = 30.0
IDLE_SECONDS = 600.0
"""After so long without a request a pool is let go of."""
SETTINGS_SECONDS = 300.0
"""How old what is known of `expire_after` may be."""
WARMED = 16
AT_ONCE = 64
"""How many chores may be under way at once."""
THREADS = 64
"""Threads that wait for the store: a few pools that hang must not take them all."""

Chore = Callable[[str], Awaitable[None]]


class Chores:
    """Warming up, expiry, keys read again, and another look at pools that are in trouble."""

    def __init__(
        self, pools: Pools, keys: Keys, health: Health, expire_every: float | None, anchoring: Anchoring | None = None,
        anchor_every: float = 60.0,
    ) -> None:  # fmt: skip
        self._pools, self._keys, self._health, self._expire_every = pools, keys, health, expire_every
        self._anchoring, self._anchor_every = anchoring, anchor_every
        self._due: dict[str, float] = {}
        """Of pools whose settings were read: the age in seconds at which a decision is overdue."""
        self._asked_at = monotonic()
        self._running: dict[tuple[Chore, str], asyncio.Task[None]] = {}
        self._repeated: list[asyncio.Task[None]] = []
        self._key_thread = ThreadPoolExecutor(1, "keys")

    def start(self) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "service"))
        self._repeated = [
            asyncio.create_task(self._warm_all()),
            asyncio.create_task(_repeat(KEYS_EVERY, self._reload_keys)),
            asyncio.create_task(_repeat(RECOVER_EVERY, self._recover_all)),
            asyncio.create_task(_repeat(IDLE_EVERY, self._close_idle)),
        ]
        if self._expire_every is not None:  # else this process only follows
            self._repeated.append(asyncio.create_task(_repeat(self._expire_every, self._expire_all)))
        if self._anchoring is not None:
            self._health.begin_anchors()
            self._repeated.append(asyncio.create_task(_repeat(self._anchor_every, self._anchor)))

    async def stop(self) -> None:
        chores = [*self._repeated, *self._running.values()]
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        self._key_thread.shutdown(wait=False, cancel_futures=True)

    async def _reload_keys(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._key_thread, self._keys.reload)

    async def _anchor(self) -> None:
        """A place of the anchors that does not answer is told once, and tried again."""
        assert self._anchoring is not None
        try:
            await asyncio.to_thread(self._anchoring.note)
        except Exception as error:
            self._health.note_anchors(error)
        else:
            self._health.note_anchors(None)

    async def _warm_all(self) -> None:
        """Warm up a few pools: what was compiled for one serves the others."""
        with suppress(Exception):  # without a store there is nothing to warm
            self._begin(self._warm_up, (await asyncio.to_thread(self._pools.names))[:WARMED])

    async def _expire_all(self) -> None:
        """Expire what is overdue; of pools that have nothing so old, only the time of their oldest decision is read."""
        clock, standings = await asyncio.to_thread(self._pools.store.standings)
        self._begin(self._settle, [name for name, standing in standings.items() if standing.in_lanes])
        for name, standing in standings.items():
            if standing.oldest is not None and self._due.get(name, 0.0) <= (clock - standing.oldest) / 1e6:
                self._begin(self._expire, [name])
        self._due = {name: due for name, due in self._due.items() if name in standings}
        if monotonic() - self._asked_at > SETTINGS_SECONDS:
            self._asked_at, self._due = monotonic(), {}  # settings may have changed elsewhere

    def read_settings_again(self, name: str) -> None:
        """They have just been changed here."""
        self._due.pop(name, None)

    async def _close_idle(self) -> None:
        await self._pools.close_idle(IDLE_SECONDS)

    async def _recover_all(self) -> None:
        for worker in self._pools.workers():
            if worker.seconds_busy() > LONGEST_BATCH:
                error = StoreUnavailable(f"a batch has not been written for more than {LONGEST_BATCH:g} seconds")
                self._health.note(worker.pool.name, error)
        if self._health.troubles and await self._health.store_trouble() is None:
            self._begin(self._recover, self._health.in_trouble())
            for chore in (self._expire, self._settle):  # a snapshot that works says nothing of these
                self._begin(chore, self._health.in_trouble(chore.__name__))

    def _begin(self, chore: Chore, names: list[str]) -> None:
        """Start a chore for each pool, except where the one before has not ended."""
        self._running = {key: task for key, task in self._running.items() if not task.done()}
        for name in names:
            if (chore, name) not in self._running and len(self._running) < AT_ONCE:  # else the next time
                self._running[chore, name] = asyncio.create_task(self._do(chore, name))

    async def _do(self, chore: Chore, name: str) -> None:
        try:
            await chore(name)
        except NoSuchPool:  # its first event is still to come
            self._health.forget(name)
        except Exception as error:
            self._health.note(name, error, self._kind(chore))
        else:
            self._health.note(name, None, self._kind(chore))

    def _kind(self, chore: Chore) -> str:
        """Warming up and recovering do what requests need; the other chores are something of their own."""
        return REQUESTS if chore in (self._warm_up, self._recover) else chore.__name__

    async def _warm_up(self, name: str) -> None:
        worker = await self._pools.worker(name)
        await worker.call(worker.pool.warm_up)

    async def _expire(self, name: str) -> None:
        worker = await self._pools.worker(name)
        after = (await worker.call(worker.pool.vitals)).settings.expire_after
        self._due[name] = inf if after is None else after
        if after is not None:
            await expire(worker)

    async def _settle(self, name: str) -> None:
        worker = await self._pools.worker(name)
        await worker.call(worker.pool.settle)

    async def _recover(self, name: str) -> None:
        """A snapshot takes the pool's lock, reads what is new and writes: what works for it works for requests. Who
        only follows writes none, and makes a play that nobody is told of."""
        worker = await self._pools.worker(name)
        await worker.call(worker.pool.warm_up if self._expire_every is None else worker.pool.snapshot)


async def _repeat(seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
    while True:
        with suppress(Exception):  # the store may be away for a while: the chore is done when it is back
            await chore()
        await asyncio.sleep(seconds)
