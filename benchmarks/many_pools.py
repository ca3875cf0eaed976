"""Ten thousand pools in one SQLite file: making and listing them, what idle ones cost a service, one slow among them.

python benchmarks/many_pools.py [POOLS]
"""

import asyncio
import os
import resource
import sys
import tempfile
import threading
import time

import httpx

import statepool as sp
from statepool.live.service import create_app
from statepool.live.service import pools as workers
from statepool.live.stores import open_store

CATALOGUE = {"P": [[0.7, 0.3], [0.4, 0.6]], "actions": ["a", "b"], "states": ["left", "bought"]}


def timed(name, work):
    began = time.perf_counter()
    answer = work()
    print(f"{name:44s} {time.perf_counter() - began:8.2f} s", flush=True)
    return answer


def make(store, count):
    for number in range(count):
        sp.Pool.open(store, f"p{number}", **CATALOGUE, expire_after=86_400, default_loss=1.0)


async def serve(url):
    app = create_app(open_store(url))
    words, said = asyncio.Queue(), asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan"}, words.get, said.put))
    await words.put({"type": "lifespan.startup"})
    await said.get()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        await asyncio.sleep(5)
        await tell(client, "/v1/pools")
        await tell(client, "/metrics")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"threads of pools, memory                     {of_pools():8d}, {memory:.0f} MB")
        for number in range(200):
            await client.post(f"/v1/pools/p{number}/decisions")
        print(f"threads of pools after 200 were used         {of_pools():8d}")
        await asyncio.sleep(workers.THREAD_SECONDS + 1)
        print(f"and a little later                           {of_pools():8d}")
        slow = app.pools.get("p0")
        with slow._journal._lock:
            waiting = asyncio.create_task(client.post("/v1/pools/p0/decisions"))
            began = time.perf_counter()
            for number in range(1, 101):
                await client.post(f"/v1/pools/p{number}/decisions")
            print(f"a decision elsewhere while one pool hangs    {(time.perf_counter() - began) * 10:8.2f} ms")
        await waiting
    await words.put({"type": "lifespan.shutdown"})
    await said.get()
    await life


async def tell(client, address):
    began = time.perf_counter()
    answer = await client.get(address)
    print(f"GET {address:40s} {time.perf_counter() - began:8.2f} s, {len(answer.content)} bytes")


def of_pools():
    return sum(thread.name.startswith("pool ") for thread in threading.enumerate())


def main(count):
    with tempfile.TemporaryDirectory(dir=os.environ.get("STATEPOOL_BENCH")) as folder:
        url = f"sqlite:///{folder}/pools.db"
        store = open_store(url)
        timed(f"{count} pools made", lambda: make(store, count))
        timed("listed", store.pools)
        timed("where all of them stand", store.standings)
        store.close()
        asyncio.run(serve(url))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
