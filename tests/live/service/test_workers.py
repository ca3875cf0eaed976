"""The queue of one pool inside the service."""

import asyncio
import threading

from statepool.live.errors import Busy
from statepool.live.service.pools import PoolWorker


class HungPool:
    """As a pool whose lock somebody else keeps, until it gives up."""

    name = "hung"

    def __init__(self):
        self.runs, self.gives_up = 0, threading.Event()

    def run(self, requests):
        self.runs += 1
        self.gives_up.wait(20)
        return [Busy("another writer kept the lock")] * len(requests)


def test_whoever_waits_behind_a_hung_writer_is_refused_with_the_first():
    """And does not wait as long again, in a batch of its own."""
    pool = HungPool()

    async def ask_three():
        worker = PoolWorker(pool, lambda name, trouble: None)
        asked = [worker.ask([n]) for n in range(3)]
        while not pool.runs:
            await asyncio.sleep(0.01)
        pool.gives_up.set()
        return await asyncio.wait_for(asyncio.gather(*asked), 20)

    answers = asyncio.run(ask_three())
    assert [type(answer) for [answer] in answers] == [Busy] * 3
    assert pool.runs == 1
