"""Pools made for looking at, and the dashboard of their database."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import uvicorn

from statepool.live import Database, Pool
from statepool.live.service import Service


def open_pool(folder, name="home", n_actions=3, n_states=2, P=None, **settings):
    """Labels are a0, a1, … and s0, s1, …, unless they are given."""
    if P is None:
        P = np.random.default_rng(0).dirichlet(np.ones(n_states), n_actions)
    actions = settings.pop("actions", None) or [f"a{number}" for number in range(len(P))]
    states = settings.pop("states", None) or [f"s{number}" for number in range(len(P[0]))]
    return Pool.open(f"sqlite:///{folder}/pools.db", name, P, actions, states, **{"learner": "uniform"} | settings)


def play(pool, n, seen=None, outcome=None, seed=0):
    """n decisions with states and outcomes; `seen(action)` and `outcome(action, state)` choose."""
    rng = np.random.default_rng(seed)
    catalogue = pool.catalogue

    def by_map(action):
        row = catalogue.rows[catalogue.action(action)]
        return catalogue.states[rng.choice(row.size, p=row)]

    made = pool.decide_many(n)
    states = [(seen or by_map)(each.action) for each in made]
    pool.observe_many([(each.ticket, state) for each, state in zip(made, states, strict=True)])
    pairs = [
        (each.ticket, float(rng.random() < 0.5) if outcome is None else outcome(each.action, state))
        for each, state in zip(made, states, strict=True)
    ]
    if pool.settings.reward_bounds is None:
        pool.resolve_many(pairs)
    else:
        pool.resolve_many(rewards=pairs)
    return made


def service_of(folder):
    return Service(Database(f"sqlite:///{folder}/pools.db"))


@contextmanager
def served(app) -> Iterator[str]:
    """The app on a port of its own; its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
