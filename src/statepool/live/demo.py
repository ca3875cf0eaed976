"""A pool against a simulated shop, so that a new user sees the dashboard move.

The shop is the `funnel` family. The state of a visit is seen within moments, and its sale some seconds later. A few
outcomes are never reported, a few come after their window, and the season changes slowly.
"""

import heapq
import logging
import threading
import time
from typing import Any

import numpy as np

from statepool.families import funnel
from statepool.live.database import Database
from statepool.live.errors import StoreUnavailable
from statepool.live.pool import Pool

NAME, STATES = "demo", ["bounce", "browse", "details", "wish list", "cart", "checkout"]
ITEMS = [f"item {number}" for number in range(1, 61)]
SEASON = 20_000
"""Decisions in one season: eight minutes at forty per second."""
SHOP = funnel(7, n_actions=len(ITEMS), n_states=len(STATES), horizon=SEASON)
PRICE, LOOK, SALE, WINDOW = 20.0, 0.8, 4.0, 25.0
"""Of a sale; seconds, on average, until the state and until the outcome; the pool's window."""
NEVER, LATE = 0.03, 0.01
"""Shares of outcomes that are never reported, and that come after the window."""
TICK, MAX_DECISIONS = 0.1, 500_000
"""Seconds between batches; after so many decisions the demo stops, so that it does not fill a disk."""
logger = logging.getLogger("statepool.demo")


def create(database: Database) -> Pool:
    return Pool.open(database, NAME, SHOP.P, ITEMS, STATES, reward_bounds=(0.0, PRICE), holdout=0.1, window=WINDOW)


class Demo:
    """Makes `rate` decisions per second from a thread; one batch of each kind per tick."""

    def __init__(self, pool: Pool, rate: float = 40.0) -> None:
        self._pool, self._rate, self._rng = pool, rate, np.random.default_rng(8)
        self._due: list[tuple[float, str, Any]] = []
        self._decisions = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statepool demo", daemon=True)
        self.start = self._thread.start

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

    def tick(self, now: float) -> None:
        """The decisions of one tick, and the reports that are due; `now` is in seconds, from any start."""
        rng = self._rng
        for made in self._pool.decide_many(int(rng.poisson(self._rate * TICK))):
            state = int(rng.choice(len(STATES), p=SHOP.P[ITEMS.index(made.action)]))
            reward = 0.0 if rng.random() < SHOP.theta[self._decisions % SEASON, state] else PRICE
            in_time = min(rng.exponential(SALE), 0.9 * WINDOW)
            wait = rng.choice([np.inf, 1.2 * WINDOW, in_time], p=[NEVER, LATE, 1 - NEVER - LATE])
            heapq.heappush(self._due, (now + rng.exponential(LOOK), made.ticket, STATES[state]))
            heapq.heappush(self._due, (now + LOOK + wait, made.ticket, reward))
            self._decisions += 1
        reports: dict[type, list[tuple[str, Any]]] = {str: [], float: []}
        while self._due and self._due[0][0] <= now:
            _, ticket, report = heapq.heappop(self._due)
            reports[type(report)].append((ticket, report))
        self._pool.observe_many(reports[str])
        self._pool.resolve_many(rewards=reports[float])
