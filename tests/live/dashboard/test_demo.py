"""The demo: a simulated shop that uses a pool in every way there is."""

import numpy as np

from statepool.live import Database
from statepool.live.demo import STATES, WINDOW, Demo, create


def test_everything_that_can_happen_happens(tmp_path):
    now = 2e9
    with Database(f"sqlite:///{tmp_path}/pool.db") as database:
        create(database).close()
        pool = create(database)
        pool.close()  # it learns no more in the background: the clock below is the only one
        pool._clock = lambda: now
        demo = Demo(pool, rate=160)
        for tick in np.arange(0, 3 * WINDOW, 0.4):
            now = 2e9 + tick
            demo.tick(tick)
            pool.expire()
        status = pool.status()
        assert status.decisions > 2000
        assert min(status.counts[name] for name in ("states", "outcomes", "expiries")) > 0
        assert (status.counts["impossible"], status.counts["out_of_bounds"]) == (0, 0)
        assert status.catalogue.states == tuple(STATES)
        assert 0 < status.pending < 0.5 * status.decisions


def test_started_and_stopped_twice_it_goes_on(tmp_path):
    with Database(f"sqlite:///{tmp_path}/pool.db") as database:
        for _ in range(2):
            with create(database) as pool:
                before = pool.status().decisions
                demo = Demo(pool, rate=200)
                demo.start()
                while pool.status().decisions < before + 20:
                    pass
                demo.stop()
                after = pool.status().decisions
                assert pool.status().decisions == after
