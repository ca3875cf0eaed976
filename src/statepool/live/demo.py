"""A pool that plays against a made-up shop, so that a newcomer sees the dashboard move.

The shop is the `funnel` family: items in categories, a visit that goes some way down the funnel within moments, and
a sale, or none, some seconds later. A few sales are never reported, a few come after their expiry, and the shop's
season turns slowly.

    demo = Demo(create(store)); demo.start(); …; demo.stop()
"""

import heapq
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from statepool.families import funnel
from statepool.live.errors import StoreUnavailable
from statepool.live.pool import Pool
from statepool.live.requests import Decide, Decision, Expire, Observe, Resolve
from statepool.live.stores.store import Store
from statepool.stream import APART

NAME = "demo"
STATES = ["bounce", "browse", "details", "wish list", "cart", "checkout"]
N_ITEMS = 60
SEASON = 20_000
"""Decisions in one turn of the season: eight minutes at forty a second."""

LOOK, SALE, EXPIRY = 0.8, 4.0, 25.0
"""Seconds: mean until the state and until the outcome, and when no outcome counts as no sale."""

NEVER, LATE = 0.03, 0.01
TICK, LONGEST = 0.1, 0.5
"""Seconds between batches, and what a batch makes up for at the most."""

MOST = 500_000
"""After so many decisions the demo rests, for the sake of the disk of whoever forgets it."""

logger = logging.getLogger(__name__)


@contextmanager
def temporary_store() -> Iterator[str]:
    """The URL of a store that is gone afterwards, for whoever names none."""
    with TemporaryDirectory(prefix="statepool-", ignore_cleanup_errors=True) as folder:
        yield f"sqlite:///{folder}/demo.db"


def create(store: Store, name: str = NAME, seed: int = 7) -> Pool:
    """The pool of the demo, in a store that is open; the one that is there, if it is."""
    shop = funnel(seed, n_actions=N_ITEMS, n_states=len(STATES), horizon=SEASON)
    items = [f"item {number}" for number in range(1, N_ITEMS + 1)]
    pool = Pool.open(store, name, shop.P, items, STATES, seed=seed, holdout=0.1, expire_after=EXPIRY, default_loss=1.0)
    _compile(pool)
    return pool


def _compile(pool: Pool) -> None:
    """Two visits, so that a first start compiles here and not before the eyes of whoever opens the page."""
    for _ in range(2):
        pool.observe(pool.decide().ticket, STATES[0])


class Demo:
    """`rate` decisions a second from a thread of its own; one durable batch a tick."""

    def __init__(self, pool: Pool, rate: float = 40.0, seed: int = 7) -> None:
        self._pool, self._rate = pool, rate
        self._shop = funnel(seed, n_actions=N_ITEMS, n_states=len(STATES), horizon=SEASON)
        self._rng = np.random.default_rng(seed + APART)
        self._rows = {f"item {number + 1}": row for number, row in enumerate(self._shop.P)}
        self._due: list[tuple[float, int, Any]] = []
        self._order = count()
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
        while not self._stopped.wait(TICK) and self._decisions < MOST:
            try:
                self.tick(time.monotonic())
            except StoreUnavailable:
                logger.warning("demo: the store does not answer, trying again")
                self._stopped.wait(1.0)

    def tick(self, now: float) -> None:
        """Play what happened since the last tick, in one batch; `now` is in seconds, from any beginning."""
        since = TICK if self._last is None else min(now - self._last, LONGEST)
        self._last = now
        requests: list[Any] = [Decide() for _ in range(self._rng.poisson(self._rate * since))]
        while self._due and self._due[0][0] <= now:
            requests.append(heapq.heappop(self._due)[2])
        requests.append(Expire(self._pool.now()))
        for answer in self._pool.run(requests):
            if isinstance(answer, Decision):
                self._visit(answer, now)
            elif isinstance(answer, StoreUnavailable):
                raise answer

    def _visit(self, decision: Decision, now: float) -> None:
        rng, theta = self._rng, self._shop.theta[self._decisions % SEASON]
        self._decisions += 1
        row = self._rows[str(decision.action)]
        state = int(rng.choice(row.size, p=row))
        self._later(now + rng.exponential(LOOK), Observe(decision.ticket, STATES[state]))
        luck = rng.random()
        if luck >= NEVER:
            wait = EXPIRY * rng.uniform(1.1, 1.5) if luck < NEVER + LATE else min(rng.exponential(SALE), 0.9 * EXPIRY)
            loss = float(rng.random() < theta[state])
            self._later(now + LOOK + wait, Resolve(decision.ticket, loss=loss))

    def _later(self, when: float, request: Any) -> None:
        heapq.heappush(self._due, (when, next(self._order), request))
