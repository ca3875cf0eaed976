"""Calls that arrive while a transaction runs share the next one."""

import asyncio
import threading

import pytest

from statepool.live.errors import Conflict, StoreUnavailable
from statepool.live.service.pools import Batcher


class Slow:
    """Runs batches, the first of which waits until it is let go."""

    def __init__(self, refused=()):
        self.batches, self.goes_on, self._refused = [], threading.Event(), refused

    def one(self, call):
        if call in self._refused:
            raise Conflict(f"{call} was refused")
        return call

    def many(self, calls):
        if not self.batches:
            self.goes_on.wait(20)
        self.batches.append(list(calls))
        return [self.one(call) for call in calls]


async def run(slow, calls):
    batcher = Batcher(slow.many)
    futures = [batcher.submit(calls[0])]
    await asyncio.sleep(0.02)
    futures += [batcher.submit(call) for call in calls[1:]]
    slow.goes_on.set()
    return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), 20)


def test_calls_that_wait_are_run_together():
    slow = Slow()
    assert asyncio.run(run(slow, range(5))) == list(range(5))
    assert slow.batches == [[0], [1, 2, 3, 4]]


def test_a_refusal_is_its_own_callers_only():
    results = asyncio.run(run(Slow(refused=[3]), range(5)))
    assert isinstance(results.pop(3), Conflict)
    assert results == [0, 1, 2, 4]


def test_a_store_that_is_away_fails_the_whole_batch():
    slow = Slow()
    before = slow.many

    def fail(calls):
        if slow.batches:
            raise StoreUnavailable("store: away")
        return before(calls)

    slow.many = fail
    first, *others = asyncio.run(run(slow, range(4)))
    assert first == 0
    assert all(isinstance(each, StoreUnavailable) for each in others)


def test_a_caller_that_has_gone_is_no_obstacle():
    async def leave():
        slow = Slow()
        batcher = Batcher(slow.many)
        gone = batcher.submit(0)
        await asyncio.sleep(0.02)
        kept = batcher.submit(1)
        gone.cancel()
        slow.goes_on.set()
        assert await asyncio.wait_for(kept, 20) == 1
        with pytest.raises(asyncio.CancelledError):
            await gone

    asyncio.run(leave())
