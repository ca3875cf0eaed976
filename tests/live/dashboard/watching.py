"""Pools made for looking at: filled in a few batches, and asked for through the dashboard's routes."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import numpy as np
import uvicorn
from starlette.applications import Starlette

from statepool.live import Pool
from statepool.live.dashboard import routes
from statepool.live.requests import Decide, Observe, Resolve


class Shelf:
    """Pools by name, as a service has them."""

    def __init__(self, *pools):
        self._pools = {pool.name: pool for pool in pools}

    def names(self):
        return sorted(self._pools)

    def get(self, name):
        return self._pools[name]


def app_of(*pools):
    return Starlette(routes=routes(Shelf(*pools)))


def get(app, address):
    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(address)

    return asyncio.run(ask())


def open_pool(folder, name="home", n_actions=3, n_states=2, P=None, **settings):
    """Labels are a0, a1, … and s0, s1, …, unless they are given."""
    if P is None:
        P = np.random.default_rng(0).dirichlet(np.ones(n_states), n_actions)
    actions = settings.pop("actions", None) or [f"a{number}" for number in range(len(P))]
    states = settings.pop("states", None) or [f"s{number}" for number in range(len(P[0]))]
    return Pool.open(f"sqlite:///{folder}/{name}.db", name, P, actions, states, seed=1, **settings)


def play(pool, n, seen=None, lost=None, seed=0):
    """n decisions in one batch, then their states and outcomes; `seen(action)` and `lost(action, state)` choose."""
    rng = np.random.default_rng(seed)
    catalogue = pool._fold().catalogue

    def by_map(action):
        row = catalogue.row(catalogue.action(action))
        return catalogue.states[rng.choice(row.size, p=row)]

    made = pool.run([Decide()] * n)
    states = [(seen or by_map)(each.action) for each in made]
    pool.run([Observe(each.ticket, state) for each, state in zip(made, states, strict=True)])
    losses = [
        float(rng.random() < 0.5) if lost is None else lost(each.action, state)
        for each, state in zip(made, states, strict=True)
    ]
    pool.run([Resolve(each.ticket, loss) for each, loss in zip(made, losses, strict=True)])
    return made


@contextmanager
def served(app) -> Iterator[str]:
    """The app on a port of its own; its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
