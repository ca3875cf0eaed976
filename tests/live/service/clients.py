"""A client of a service in this process: an event loop in a thread, the service's life around it."""

import asyncio
import threading
import time

import httpx

POOL = {
    "actions": ["tea", "coffee", 3, ["a", "pair"]],
    "states": ["left", "click"],
    "P": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4]],
}
DECISIONS = "/v1/pools/home/decisions"


PATIENCE = 240.0
"""Seconds: a pool may wait for a compiler, and that for another process which compiles the same."""


class Client:
    """`client.get("/…")`, `client.put("/…", json=…)`, as httpx has it; `client.many` sends several at once."""

    def __init__(self, app, **headers):
        self.app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        transport = httpx.ASGITransport(app)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        self._words = asyncio.Queue()
        self._said = asyncio.Queue()
        self._run(self._begin())

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _begin(self):
        self._life = asyncio.create_task(self.app({"type": "lifespan"}, self._words.get, self._said.put))
        await self._words.put({"type": "lifespan.startup"})
        assert (await self._said.get())["type"] == "lifespan.startup.complete"

    async def _end(self):
        await self._http.aclose()
        await self._words.put({"type": "lifespan.shutdown"})
        assert (await self._said.get())["type"] == "lifespan.shutdown.complete"
        await self._life

    def stop(self):
        if self._thread.is_alive():
            self._run(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def many(self, requests):
        """[(method, address, options), …] → answers."""

        async def gather():
            return await asyncio.gather(*(self._http.request(how, where, **more) for how, where, more in requests))

        return self._run(gather())

    def wait_until_ready(self):
        """Until the learners are compiled."""
        deadline = time.monotonic() + PATIENCE
        while self.get("/readyz").status_code == 503 and time.monotonic() < deadline:
            time.sleep(0.05)

    def request(self, method, address, **options):
        return self._run(self._http.request(method, address, **options))

    def get(self, address, **options):
        return self.request("GET", address, **options)

    def post(self, address, **options):
        return self.request("POST", address, **options)

    def put(self, address, **options):
        return self.request("PUT", address, **options)

    def patch(self, address, **options):
        return self.request("PATCH", address, **options)

    def delete(self, address, **options):
        return self.request("DELETE", address, **options)


def until(holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
