"""A journal before and after compaction: bytes a decision, seconds to open, replay, back up and restore; the same bits.

    python benchmarks/compaction.py [DECISIONS] [STATES] [FOLDER]

Decisions are made in batches of a thousand, with a state and an outcome each; a FOLDER that holds some already is taken
as it is. A second process restores a backup and replays it, the whole journal in a database, while this one seals all
of the journal but the last hundredth, and replays segments and tail. Both must give the same bits.
Then a twentieth as much is played, sealed ten times on the way, to see that the file stops growing.
"""

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
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


def timed(name, work, *given):
    wall, cpu = time.perf_counter(), time.process_time()
    answer = work(*given)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:34s} {wall:9.2f} s, {cpu:9.2f} s of a core", flush=True)
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


def restored(file, path):
    timed("restore", restore, file, f"sqlite:///{path}")
    return timed("replay of what was restored", replayed, f"sqlite:///{path}")


def sealed(url, segments, share):
    """Seal a share of the events."""
    store = open_store(url)
    try:
        with store.view("home") as view:
            age = view.clock() - view.linked(int(view.head().seq * share))[1].at
        return compact(store, "home", age / 1e6, str(segments), least=1)
    finally:
        store.close()


def size(*paths):
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def main(decisions, n_states, given):
    draws = np.random.default_rng(0)
    P = draws.dirichlet(np.ones(n_states), 20)
    known = {"P": P, "actions": range(20), "states": range(n_states), "seed": 1}
    with (
        nullcontext(given) if given else tempfile.TemporaryDirectory(dir=os.environ.get("STATEPOOL_BENCH")) as name,
        ProcessPoolExecutor(1, get_context("spawn")) as beside,
    ):
        folder = Path(name)
        file, segments, url = folder / "pool.db", folder / "segments", f"sqlite:///{folder}/pool.db"
        pool = sp.Pool.open(url, "home", **({} if file.exists() else known))
        there = pool.status().decisions
        decisions = max(decisions, there)
        timed(f"{decisions} decisions", play, pool, draws, P, decisions - there)
        pool.close()
        print(f"bytes a decision in the database   {size(file, f'{file}-wal') / decisions:9.0f}")
        timed("open and decide", opened, url)
        timed("back up", backup, url, folder / "b.db")
        before = beside.submit(restored, folder / "b.db", folder / "r.db")
        done = timed("compact", sealed, url, segments, 0.99)
        print(f"bytes a decision in segments       {3 * done.size / done.events:9.1f}")
        after = timed("replay of segments and tail", replayed, url)
        assert before.result() == after, "the same events, the same hash, the same sums"
        print(f"the same bits: {after[1]} events, {after[1] - done.events} not sealed, {after[0]}", flush=True)
        timed("open and decide", opened, url)
        timed("back up", backup, url, folder / "c.db")
        store = open_store(url)
        pool = sp.Pool.open(store, "home")
        for number in range(10):
            play(pool, draws, P, decisions // 200)
            compact(store, "home", 0.0, str(segments), least=1)
            print(f"file after {(number + 1) * 0.5:3.1f} % more, in MB        {size(file) / 1e6:9.1f}", flush=True)
        began = time.perf_counter()
        for number in range(100):
            pool.decide(f"new-{number}")
        print(f"a ticket of the caller's own       {(time.perf_counter() - began) * 10:9.2f} ms")
        store.close()
        timed("replay of all", replayed, url)


if __name__ == "__main__":
    asked = [*sys.argv[1:], *["200000", "8", ""][len(sys.argv) - 1 :]]
    main(int(asked[0]), int(asked[1]), asked[2])
