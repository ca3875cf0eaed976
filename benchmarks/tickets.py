"""A live pool when it grows: tickets in flight, and actions in the catalogue.

Filling takes minutes: `--folder` keeps the files, and the next run goes on where this one stopped.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console

import statepool as sp
from rows import Row, skipped
from run import tabulate

FEW, MANY = 50_000, 5_000_000
AT_ONCE = 1_000
N_STATES = 5


def open_pool(path: Path, n_actions: int = 100, name: str = "tickets") -> sp.Pool:
    P = np.random.default_rng(0).dirichlet(np.ones(N_STATES), n_actions)
    labels, states = list(range(n_actions)), list(range(N_STATES))
    return sp.Pool.open(f"sqlite:///{path}", name, P, labels, states, sp.StateEXP3(rate=0.01), seed=1)


def fill(path: Path, count: int) -> None:
    """Decisions without outcome, up to a number; prints the process's largest size in kB on the way."""
    with open_pool(path) as pool:
        begun = made = pool.status().decisions
        start = perf_counter()
        while made < count:
            made += len(pool.decide_many(min(AT_ONCE, count - made)))
            if made % FEW == 0:
                rate = (made - begun) / (perf_counter() - start)
                print(made, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, round(rate), flush=True)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=MANY)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        fresh = Path(temporary)
        rows = [many_actions(fresh), *in_flight(folder, given.tickets)]
    Console(width=120).print(tabulate(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["restart"]:
        restart(Path(sys.argv[2]))
    else:
        main()
