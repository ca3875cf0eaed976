"""The demo: a made-up shop that uses a pool in every way there is."""

from pathlib import Path

import numpy as np

from statepool.live.demo import EXPIRY, STATES, Demo, create, temporary_store
from statepool.live.stores import open_store


class Clock:
    now = 1_000_000.0


def run(folder, monkeypatch, seconds, rate=40.0):
    store = open_store(f"sqlite:///{folder}/pool.db")
    pool = create(store)
    monkeypatch.setattr(pool._journal, "_clock", lambda: Clock.now)
    demo = Demo(pool, rate)
    for tick in np.arange(0, seconds, 0.4):
        Clock.now = 2_000_000_000.0 + tick
        demo.tick(tick)
    return pool


def test_everything_that_can_happen_happens(tmp_path, monkeypatch):
    pool = run(tmp_path, monkeypatch, seconds=3 * EXPIRY)
    pool_state = pool._fold()
    assert pool_state.decisions > 2000
    assert min(pool_state.counts[name] for name in ("state", "outcome", "expiry", "correction")) > 0
    assert pool_state.counts["impossible"] == 0
    assert pool_state.catalogue.states == STATES
    assert 0 < pool.n_pending < 0.5 * pool_state.decisions
    saved = pool_state.tallies["holdout"].mean - pool_state.tallies["learner"].mean
    assert saved > 0.15, "the learner is worth something"


def test_started_and_stopped_twice_it_goes_on(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/pool.db")
    for _ in range(2):
        pool = create(store)
        before = pool._fold().decisions
        demo = Demo(pool, rate=200)
        demo.start()
        while pool._fold().decisions < before + 20:
            pass
        demo.stop()
        after = pool._fold().decisions
        assert pool._fold().decisions == after
    store.close()


def test_a_store_for_who_names_none_leaves_nothing():
    with temporary_store() as url:
        path = Path("/" + url.removeprefix("sqlite:///").lstrip("/"))
        store = open_store(url)
        assert create(store)._fold().decisions == 2
        assert path.exists()
        store.close()
    assert not path.parent.exists()
