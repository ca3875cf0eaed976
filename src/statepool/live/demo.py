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
from statepool.live.decisions import Decision
from statepool.live.errors import StoreUnavailable
from statepool.live.pool import Pool

NAME = "demo"
STATES = ["bounce", "browse", "details", "wish list", "cart", "checkout"]
N_ITEMS = 60
PRICE = 20.0
SEASON = 20_000
"""Decisions in one season: eight minutes at forty per second."""
LOOK, SALE, WINDOW = 0.8, 4.0, 25.0
"""Seconds: mean until the state and until the outcome, and the pool's window."""
NEVER, LATE = 0.03, 0.01
"""Shares of outcomes that are never reported, and that come after the window."""
TICK, LONGEST = 0.1, 0.5
"""Seconds between batches, and the most that one batch catches up."""
MAX_DECISIONS = 500_000
"""Then the demo stops, so that it does not fill a disk."""
SEED = 80_000
"""The shop's random numbers differ from those that made it."""

logger = logging.getLogger("statepool.demo")


@contextmanager
def temporary_store() -> Iterator[str]:
    """The URL of a database that is deleted afterwards."""
    with TemporaryDirectory(prefix="statepool-", ignore_cleanup_errors=True) as folder:
        yield f"sqlite:///{folder}/demo.db"


def create(database: Database, name: str = NAME, seed: int = 7) -> Pool:
    """The demo's pool, created or continued."""
    shop = funnel(seed, n_actions=N_ITEMS, n_states=len(STATES), horizon=SEASON)
    items = [f"item {number}" for number in range(1, N_ITEMS + 1)]
    return Pool.open(database, name, shop.P, items, STATES, reward_bounds=(0.0, PRICE), holdout=0.1, window=WINDOW)


class Demo:
    """Makes `rate` decisions per second from a thread; one batch of each kind per tick."""

    def __init__(self, pool: Pool, rate: float = 40.0, seed: int = 7) -> None:
        self._pool, self._rate = pool, rate
        self._shop = funnel(seed, n_actions=N_ITEMS, n_states=len(STATES), horizon=SEASON)
        self._rng = np.random.default_rng(seed + SEED)
        self._rows = {f"item {number + 1}": row for number, row in enumerate(self._shop.P)}
        self._due: list[tuple[float, str, Any]] = []
        self._decisions = 0
        self._last: float | None = None
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
        """Simulate what happened since the last tick; `now` is in seconds, from any start."""
        since = TICK if self._last is None else min(now - self._last, LONGEST)
        self._last = now
        for decision in self._pool.decide_many(int(self._rng.poisson(self._rate * since))):
            self._visit(decision, now)
        states, rewards = [], []
        while self._due and self._due[0][0] <= now:
            _, ticket, report = heapq.heappop(self._due)
            if isinstance(report, str):
                states.append((ticket, report))
            else:
                rewards.append((ticket, report))
        if states:
            self._pool.observe_many(states)
        if rewards:
            self._pool.resolve_many(rewards=rewards)

    def _visit(self, decision: Decision, now: float) -> None:
        rng, theta = self._rng, self._shop.theta[self._decisions % SEASON]
        self._decisions += 1
        row = self._rows[str(decision.action)]
        state = int(rng.choice(row.size, p=row))
        heapq.heappush(self._due, (now + rng.exponential(LOOK), decision.ticket, STATES[state]))
        uniform = rng.random()
        if uniform >= NEVER:
            is_late = uniform < NEVER + LATE
            wait = WINDOW * rng.uniform(1.1, 1.5) if is_late else min(rng.exponential(SALE), 0.9 * WINDOW)
            reward = 0.0 if rng.random() < theta[state] else PRICE
            heapq.heappush(self._due, (now + LOOK + wait, decision.ticket, reward))
