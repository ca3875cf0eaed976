"""A live pool when it grows: tickets in flight, actions in the catalogue, and decisions beside bare inserts.

Filling takes minutes: `--folder` keeps the files, and the next run goes on where this one stopped.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time

import apsw
import numpy as np
from rich.console import Console

import statepool as sp
from rows import Row, skipped
from run import tabulate

FEW, MANY = 50_000, 5_000_000
AT_ONCE = 1_000
BATCH = 100
N_STATES = 5


def open_pool(path: Path, n_actions: int = 100, name: str = "tickets") -> sp.Pool:
    P = np.random.default_rng(0).dirichlet(np.ones(N_STATES), n_actions)
    labels, states = list(range(n_actions)), list(range(N_STATES))
    return sp.Pool.open(f"sqlite:///{path}", name, P, labels, states, sp.StateEXP3(rate=0.01), seed=1)


def fill(path: Path, count: int) -> None:
    """Decisions without outcome, up to a number; prints the process's largest size in kB on the way."""
    with open_pool(path) as pool:
        plays, start, begun = pool.fold().plays, perf_counter(), pool.fold().plays
        while plays < count:
            pool.decide_many(min(AT_ONCE, count - plays))
            plays = pool.fold().plays
            if plays % FEW == 0:
                rate = (plays - begun) / (perf_counter() - start)
                print(plays, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, round(rate), flush=True)


def restart(path: Path) -> None:
    """Prints the seconds from a closed file to an answered decision, in a process where all is compiled."""
    with tempfile.TemporaryDirectory() as folder, open_pool(Path(folder) / "warm.db") as pool:
        pool.decide()
    start = perf_counter()
    pool = open_pool(path)
    pool.decide()
    print(perf_counter() - start)


def in_process(what: str, path: Path, *arguments: object) -> list[str]:
    command = [sys.executable, __file__, what, str(path), *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def in_flight(folder: Path, many: int) -> list[Row]:
    for count in (FEW, many):
        lines = [tuple(map(int, line.split())) for line in in_process("fill", folder / f"{count}.db", count)]
    few, lots = (
        min(float(in_process("restart", folder / f"{count}.db")[0]) for _ in range(5)) for count in (FEW, many)
    )
    note = f"{few * 1e3:.1f} ms and {lots * 1e3:.1f} ms from a closed file to a decision"
    return [Row(f"restart: {many:,} tickets in flight ÷ {FEW:,}", lots / few, at_most=2, note=note), _memory(lines)]


def _memory(lines: list[tuple[int, ...]]) -> Row:
    """Of the process that filled: at its first line and at its last."""
    if len(lines) < 2:
        return skipped("memory as tickets come", "the file was full already")
    (few, first, _), (many, last, rate) = lines[0], lines[-1]
    note = f"{first / 1024:.0f} MB and {last / 1024:.0f} MB, the whole process; {rate:,} tickets a second"
    return Row(f"memory: {many:,} tickets in flight ÷ {few:,}", last / first, at_most=1.2, note=note)


def seconds_a_row(works: list[Callable[[], object]], clock: Callable[[], float], turns: int = 200) -> list[float]:
    """Of each, the median of turns taken one after the other: the disk is as quick for both."""
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(turns):
        for work, seconds in zip(works, spent, strict=True):
            start = clock()
            work()
            seconds.append(clock() - start)
    return [float(np.median(seconds)) / BATCH for seconds in spent]


def many_actions(folder: Path) -> Row:
    """Single decisions between outcomes, at the pool's own pace of refreshing: all costs are in."""
    seconds = {}
    for n_actions in (100, 1_000_000):
        with open_pool(folder / f"actions-{n_actions}.db", n_actions) as pool:
            seconds[n_actions] = _cost_of_round(pool, max(200, n_actions * N_STATES // 100_000 * 4))
    note = f"{seconds[100] * 1e3:.2f} ms and {seconds[1_000_000] * 1e3:.2f} ms, refreshes included"
    return Row("a decision: K=1 000 000 ÷ K=100", seconds[1_000_000] / seconds[100], at_most=3, note=note)


def _cost_of_round(pool: sp.Pool, rounds: int) -> float:
    made = pool.decide()
    spent = 0.0
    for t in range(rounds):
        pool.observe(made.ticket, t % N_STATES)
        pool.resolve(made.ticket, loss=(t % 3) / 2)
        start = perf_counter()
        made = pool.decide()
        spent += perf_counter() - start
    return spent / rounds


def against_inserts(folder: Path) -> list[Row]:
    """decide_many(100) beside inserts of the same size in durable batches of 100, by the wall and by the processor."""
    bare = apsw.Connection(str(folder / "bare.db"))
    bare.pragma("journal_mode", "wal")
    bare.pragma("synchronous", "FULL")
    bare.execute("CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, ticket TEXT, body BLOB)")
    rows = [("t" * 32, b"x" * 80)] * BATCH

    def insert() -> None:
        with bare:
            bare.executemany("INSERT INTO events (ticket, body) VALUES (?, ?)", rows)

    with open_pool(folder / "beside.db") as pool:
        works: list[Callable[[], object]] = [lambda: pool.decide_many(BATCH), insert]
        works[0]()
        wall, cpu = (seconds_a_row(works, clock) for clock in (perf_counter, thread_time))
    note = (
        f"{1 / wall[0]:,.0f} and {1 / wall[1]:,.0f} rows/s; {cpu[0] * 1e6:.1f} and {cpu[1] * 1e6:.1f} µs of processor"
    )
    return [Row("decide_many(100) ÷ bare durable inserts of 100, rows/s", wall[1] / wall[0], at_least=0.2, note=note)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=MANY)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        fresh = Path(temporary)
        rows = [*against_inserts(fresh), many_actions(fresh), *in_flight(folder, given.tickets)]
    Console(width=120).print(tabulate(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["restart"]:
        restart(Path(sys.argv[2]))
    else:
        main()
