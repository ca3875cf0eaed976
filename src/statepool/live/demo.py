"""A pool against a simulated shop, so that a new user sees the dashboard move.

The shop is the `funnel` family: items in categories, a visit that goes some way down the funnel within moments, and a
sale, or none, some seconds later. A few outcomes are never reported, a few come after their window, and the season
changes slowly.

    demo = Demo(create(database)); demo.start(); …; demo.stop()
"""

import heapq
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from statepool.families import funnel
from statepool.live.database import Database
from statepool.live.errors import StoreUnavailable
from statepool.live.pool import Pool

STATES = ["bounce", "browse", "details", "wish list", "cart", "checkout"]
ITEMS = [f"item {number}" for number in range(1, 61)]
PRICE = 20.0
SEASON = 20_000
"""Decisions in one season: eight minutes at forty per second."""
LOOK, SALE, WINDOW = 0.8, 4.0, 25.0
"""Seconds: mean until the state and until the outcome, and the pool's window."""
NEVER, LATE = 0.03, 0.01
"""Shares of outcomes that are never reported, and that come after the window."""
TICK = 0.1
"""Seconds between batches."""
MAX_DECISIONS = 500_000
"""Then the demo stops, so that it does not fill a disk."""
SHOP = 7
"""The seed of the shop. Its visitors have another."""

logger = logging.getLogger("statepool.demo")


@contextmanager
def temporary_store() -> Iterator[str]:
    """The URL of a database that is deleted afterwards."""
    with TemporaryDirectory(prefix="statepool-", ignore_cleanup_errors=True) as folder:
        yield f"sqlite:///{folder}/demo.db"


def create(database: Database) -> Pool:
    """The demo's pool, created or continued."""
    P = funnel(SHOP, n_actions=len(ITEMS), n_states=len(STATES), horizon=SEASON).P
    return Pool.open(database, "demo", P, ITEMS, STATES, reward_bounds=(0.0, PRICE), holdout=0.1, window=WINDOW)


class Demo:
    """Makes `rate` decisions per second from a thread; one batch of each kind per tick."""

    def __init__(self, pool: Pool, rate: float = 40.0) -> None:
        self._pool, self._rate = pool, rate
        self._shop = funnel(SHOP, n_actions=len(ITEMS), n_states=len(STATES), horizon=SEASON)
        self._rng = np.random.default_rng(SHOP + 1)
        self._due: list[tuple[float, str, Any]] = []
        self._decisions = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statepool demo", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop; returns when the last batch is written."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(TICK) and self._decisions < MAX_DECISIONS:
            try:
                self.tick(time.monotonic())
            except StoreUnavailable:
                logger.warning("the store does not answer, the demo tries again")
                self._stopped.wait(1.0)

    def tick(self, now: float) -> None:
        """The decisions of one tick, and the reports that are due; `now` is in seconds, from any start."""
        for decision in self._pool.decide_many(int(self._rng.poisson(self._rate * TICK))):
            state, reward, wait = self._visit(ITEMS.index(decision.action))
            heapq.heappush(self._due, (now + self._rng.exponential(LOOK), decision.ticket, STATES[state]))
            heapq.heappush(self._due, (now + LOOK + wait, decision.ticket, reward))
        reports: dict[type, list[tuple[str, Any]]] = {str: [], float: []}
        while self._due and self._due[0][0] <= now:
            _, ticket, report = heapq.heappop(self._due)
            reports[type(report)].append((ticket, report))
        self._pool.observe_many(reports[str])
        self._pool.resolve_many(rewards=reports[float])

    def _visit(self, item: int) -> tuple[int, float, float]:
        """The state, the reward, and how long it takes to come."""
        rng, theta = self._rng, self._shop.theta[self._decisions % SEASON]
        self._decisions += 1
        state = int(rng.choice(len(STATES), p=self._shop.P[item]))
        reward = 0.0 if rng.random() < theta[state] else PRICE
        kind = rng.random()
        if kind < NEVER:
            return state, reward, np.inf
        return state, reward, WINDOW * 1.2 if kind < NEVER + LATE else min(rng.exponential(SALE), 0.9 * WINDOW)
