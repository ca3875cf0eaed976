"""What a decision with its state and outcome costs a store, all in: tables, indexes, versions, free pages.

    python benchmarks/bytes_a_decision.py [DECISIONS] [STORE]

Of a pool with 3, 8, 100 and 1 000 states (20 actions, `SelfTuned`, no settings), asked and told one by one and in
batches of 100: bytes a decision over all of them, over their second half (what it costs for ever), and how many lessons
a version is made for. With an empty PostgreSQL database as STORE, there, and by table and index.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable

import numpy as np

import statepool as sp
from statepool.live.stores import open_store

STATES = (3, 8, 100, 1_000)
SIZES = """SELECT relname, pg_table_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE nspname = 'statepool' AND relkind IN ('r', 'i')"""


def sizes_of(url: str) -> Counter[str]:
    """Of the whole store, or of each table and index, once what is written has come to where it stays."""
    if url.startswith("sqlite"):
        import apsw

        path = url.removeprefix("sqlite:///")
        connection = apsw.Connection(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()
        return Counter({"all": os.path.getsize(path)})
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM statepool.lanes, statepool.pending, statepool.pools")
        return Counter(dict(connection.execute(SIZES).fetchall()))


def play(pool: sp.Pool, rows: np.ndarray, rng: np.random.Generator, rounds: int, at_once: int) -> None:
    for _ in range(rounds // at_once):
        made = [pool.decide()] if at_once == 1 else pool.decide_many(at_once)
        states = [f"s{rng.choice(rows.shape[1], p=rows[int(each.action[1:])])}" for each in made]
        losses = [float(rng.random() < 0.3) for _ in made]
        if at_once == 1:
            pool.observe(made[0].ticket, states[0])
            pool.resolve(made[0].ticket, loss=losses[0])
        else:
            pool.observe_many(zip([each.ticket for each in made], states, strict=True))
            pool.resolve_many(zip([each.ticket for each in made], losses, strict=True))


def measure(url: str, n_states: int, rounds: int, at_once: int) -> str:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(n_states), size=20)
    store = open_store(url)
    named = {"actions": [f"a{n}" for n in range(20)], "states": [f"s{n}" for n in range(n_states)]}
    pool = sp.Pool.open(store, f"{n_states}-{at_once}", P=rows, learner=sp.SelfTuned(), **named)
    sizes = [sizes_of(url)]
    for _ in range(2):
        play(pool, rows, rng, rounds // 2, at_once)
        pool.settle()
        pool.snapshot()
        sizes.append(sizes_of(url))
    versions = pool._journal.played.versions_made
    pool.close()
    store.close()
    grown = {of: round(size / rounds) for of, size in (sizes[2] - sizes[0]).most_common()}
    whole, half = sum(grown.values()), (sizes[2] - sizes[1]).total() / (rounds // 2)
    how = "one by one" if at_once == 1 else f"{at_once} at once"
    said = f"{n_states:>5} states, {how:>11}: {whole:6.0f} bytes, {half:6.0f} in the second half"
    by_part = "" if "all" in grown else "\n" + ", ".join(f"{of} {size}" for of, size in grown.items() if size)
    return f"{said}, a version in {rounds / versions:.0f} lessons{by_part}"


def main(rounds: int, place: Callable[[], str]) -> None:
    for n_states in STATES:
        for at_once in (1, 100):
            print(measure(place(), n_states, rounds, at_once), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        given = sys.argv[2] if len(sys.argv) > 2 else None
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 4_000,
            lambda: given or f"sqlite:///{tempfile.mkdtemp(dir=folder)}/pool.db",
        )
