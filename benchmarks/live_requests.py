"""Live requests: ratios that are measured in one run. `python benchmarks/live_requests.py [candidates] [contexts]`

candidates   a durable decision with 1 000 candidates' rows in the body against an echo of the same body, over HTTP at
             32 connections; and in a script, rows never seen before against rows that are known
contexts     a decision in a pool of 100 000 contexts (40 actions, 6 states) against one of one context; how long such
             a pool takes to make and to open, and its memory beside the table of rows itself
"""

import argparse
import gc
import json
import tempfile
import time
import urllib.request
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from live_ratios import CONNECTIONS, in_turns, load, own, post, running, serve
from rows import Row

TURNS = 5
N_CANDIDATES, N_SERVED_STATES = 1_000, 8
N_CONTEXTS, N_ACTIONS, N_STATES = 100_000, 40, 6


def brought(rng: np.random.Generator) -> dict[str, list[float]]:
    rows = rng.dirichlet(np.ones(N_SERVED_STATES), N_CANDIDATES)
    return {f"item-{i}": row for i, row in enumerate(rows.tolist())}


def candidates() -> list[Row]:
    body = json.dumps({"candidates": brought(np.random.default_rng(0))}).encode()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(*own("echo")) as echo,
        running(*serve(f"sqlite:///{folder}/pool.db", folder)) as service,
    ):
        path = "/v1/pools/home/decisions"
        urllib.request.urlopen(urllib.request.Request(f"http://{service}{path}", body), timeout=300).close()
        turns = [(load(echo, post("/echo", body)), load(service, post(path, body))) for _ in range(TURNS)]
    ratio = median(first["rate"] / second["rate"] for first, second in turns)
    rates = [median(turn[which]["rate"] for turn in turns) for which in (0, 1)]
    note = f"{len(body):,} bytes, {CONNECTIONS} connections: {rates[1]:.0f} against {rates[0]:.0f} a second"
    return [Row("an echo's rate / that of decisions with 1 000 candidates", ratio, at_most=4, note=note), *_new_rows()]


def _new_rows() -> list[Row]:
    from statepool import Pool

    rng = np.random.default_rng(1)
    known, turns = brought(rng), 60
    new = iter([brought(rng) for _ in range(turns + 1)])
    states = [f"s{i}" for i in range(N_SERVED_STATES)]
    P = np.full((1, N_SERVED_STATES), 1 / N_SERVED_STATES)
    with (
        tempfile.TemporaryDirectory() as folder,
        Pool.open(f"sqlite:///{folder}/pool.db", "home", P, ["item-0"], states) as pool,
    ):
        runs: dict[str, Callable[[], Any]] = {
            "known": lambda: pool.decide(candidates=known),
            "new": lambda: pool.decide(candidates=next(new)),
        }
        seconds = in_turns(runs, turns)
    note = f"{1e3 * seconds['new']:.2f} against {1e3 * seconds['known']:.2f} ms"
    return [Row("1 000 candidates in a script, new rows / known rows", seconds["new"] / seconds["known"], note=note)]


def contexts() -> list[Row]:
    from statepool import Pool

    rng = np.random.default_rng(0)
    tables = rng.dirichlet(np.ones(N_STATES), (N_CONTEXTS, N_ACTIONS))
    labels = {"actions": [f"a{i}" for i in range(N_ACTIONS)], "states": [f"s{i}" for i in range(N_STATES)]}
    with tempfile.TemporaryDirectory() as folder:
        stores = {size: f"sqlite:///{folder}/{size}.db" for size in (1, N_CONTEXTS)}
        made = {}
        for size, store in stores.items():
            since = time.perf_counter()
            Pool.open(store, "home", dict(enumerate(tables[:size])), **labels).close()
            made[size] = time.perf_counter() - since
        table_bytes = tables.nbytes
        del tables
        one = Pool.open(stores[1], "home")
        one.decide(context=0)
        before, since = _memory(), time.perf_counter()
        many = Pool.open(stores[N_CONTEXTS], "home")
        opened = time.perf_counter() - since
        held = _memory() - before
        asked = iter(rng.integers(N_CONTEXTS, size=10_000).tolist())
        runs: dict[str, Callable[[], Any]] = {
            "one": lambda: one.decide(context=0),
            "many": lambda: many.decide(context=next(asked)),
        }
        seconds = in_turns(runs, 200)
        settled = _memory()
        for _ in range(3_000):
            many.decide(context=next(asked))
        grown = _memory() - settled
        one.close()
        many.close()
    sizes = f"{table_bytes / 2**20:.0f} MiB of rows"
    return [
        Row("a decision, 100 000 contexts / one", seconds["many"] / seconds["one"], at_most=2,
            note=f"{1e3 * seconds['many']:.2f} against {1e3 * seconds['one']:.2f} ms"),
        Row("opening a pool of 100 000 contexts", opened, " s", at_most=2, note=sizes),
        Row("making it", made[N_CONTEXTS], " s", note=f"one context: {made[1]:.2f} s"),
        Row("memory it holds / its rows", held / table_bytes, note=f"{held / 2**20:.0f} MiB"),
        Row("growth over 3 000 decisions", grown / 2**20, " MiB"),
    ]  # fmt: skip


def _memory() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


PARTS: dict[str, Callable[[], list[Row]]] = {"candidates": candidates, "contexts": contexts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all when none is named")
    table = Table(title="Live requests: ratios measured in one run")
    for heading in ("what", "measured", "target", "met", "note"):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for name in parser.parse_args().parts or PARTS:
        for row in PARTS[name]():
            table.add_row(row.name, row.shown, row.target, {True: "yes", False: "NO", None: ""}[row.met], row.note)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
