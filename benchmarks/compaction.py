"""A journal before and after compaction: bytes a decision, seconds to open, replay, back up and restore; the same bits.

    python benchmarks/compaction.py [DECISIONS] [STATES]

Decisions are made in batches of a thousand, with a state and an outcome each. Then everything is sealed, and compared
with what was there before; then as much again is played, sealed every tenth, to see that the file stops growing.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import statepool as sp
from statepool.live.backup import backup, restore
from statepool.live.compaction import compact
from statepool.live.replay import replay
from statepool.live.stores import open_store

BATCH = 1_000


def play(pool, draws, P, decisions):
    for _ in range(decisions // BATCH):
        made = pool.decide_many(BATCH)
        actions = np.array([each.action for each in made])
        states = (draws.random(BATCH)[:, None] > P[actions].cumsum(axis=1)).sum(axis=1).clip(max=P.shape[1] - 1)
        pool.observe_many([(each.ticket, int(state)) for each, state in zip(made, states, strict=True)])
        losses = draws.integers(2, size=BATCH)
        pool.resolve_many([(each.ticket, float(loss)) for each, loss in zip(made, losses, strict=True)])


def timed(name, work):
    began = time.perf_counter()
    answer = work()
    print(f"{name:34s} {time.perf_counter() - began:9.2f} s", flush=True)
    return answer


def opened(url):
    store = open_store(url)
    try:
        return sp.Pool.open(store, "home").decide()
    finally:
        store.close()


def replayed(url):
    store = open_store(url)
    try:
        found, pool_state = replay(store, "home")
    finally:
        store.close()
    assert not found.faults, found.faults[:3]
    return found.last_hash, found.events, pool_state.dump()


def size(*paths):
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def main(decisions, n_states):
    draws = np.random.default_rng(0)
    P = draws.dirichlet(np.ones(n_states), 20)
    with tempfile.TemporaryDirectory(dir=os.environ.get("STATEPOOL_BENCH")) as name:
        folder = Path(name)
        file, segments, url = folder / "pool.db", folder / "segments", f"sqlite:///{folder}/pool.db"
        pool = sp.Pool.open(url, "home", P=P, actions=range(20), states=range(n_states), seed=1)
        timed(f"{decisions} decisions", lambda: play(pool, draws, P, decisions))
        pool.close()
        print(f"bytes a decision in the database   {size(file, f'{file}-wal') / decisions:9.0f}")
        timed("open and decide", lambda: opened(url))
        timed("back up", lambda: backup(url, folder / "b.db"))
        timed("restore", lambda: restore(folder / "b.db", f"sqlite:///{folder}/r.db"))
        before = timed("replay", lambda: replayed(url))
        store = open_store(url)
        done = timed("compact", lambda: compact(store, "home", 0.0, str(segments), least=1))
        store.close()
        print(f"bytes a decision in segments       {done.size / decisions:9.0f}")
        after = timed("replay of segments", lambda: replayed(url))
        assert before == after, "the same events, the same hash, the same sums"
        print(f"the same bits: {before[1]} events, {before[0]}")
        timed("open and decide", lambda: opened(url))
        timed("back up", lambda: backup(url, folder / "c.db"))
        store = open_store(url)
        pool = sp.Pool.open(store, "home")
        for number in range(10):
            play(pool, draws, P, decisions // 10)
            compact(store, "home", 0.0, str(segments), least=1)
            print(f"file after {number + 1:2d} tenths more, in MB    {size(file) / 1e6:9.1f}")
        began = time.perf_counter()
        for number in range(100):
            pool.decide(f"new-{number}")
        print(f"a ticket of the caller's own       {(time.perf_counter() - began) * 10:9.2f} ms")
        store.close()
        timed("replay of all", lambda: replayed(url))


if __name__ == "__main__":
    main(*(int(given) for given in (sys.argv[1:] + ["200000", "8"][len(sys.argv) - 1 :])))
