"""Live pools: ratios that are measured in one run, on one disk. `python benchmarks/live_ratios.py [http] [embedded] …`

http       durable decisions at 32 connections against a Starlette route that echoes the same JSON, and against fsync
embedded   decide_many(100) against bare SQLite inserts in durable batches of 100, decide() against one insert
actions    a decision of a million actions against one of a hundred
postgres   `--workers 4` against one, over PostgreSQL

The load comes from a process of its own (load.py). That it is not what limits is checked in the same run: against a
server that answers a canned reply from C-backed streams it must reach well over the rate of any server measured here.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rows import Row

HERE = Path(__file__).parent
CONNECTIONS = 32
TURNS = 5
SECONDS = 2.0
DECISION = {"ticket": "0" * 32, "action": "a17", "probability": 0.01234567}


def post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


ECHO = post("/echo", json.dumps(DECISION).encode())
DECIDE = post("/v1/pools/home/decisions", b"{}")


def fsync_seconds(folder: str, times: int = 100) -> float:
    """The median time to bring 4 kB at the end of a file to the disk that holds the folder."""
    taken = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            since = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - since)
    return median(taken)


@contextmanager
def running(*command: str) -> Iterator[str]:
    """A server that says `http://HOST:PORT/` on its first line of standard error; what it logs goes to a file."""
    with tempfile.NamedTemporaryFile() as said:
        process = subprocess.Popen(command, stderr=said)
        try:
            while b"/\n" not in (line := Path(said.name).read_bytes()[:200]) and b"/," not in line:
                assert process.poll() is None, line
                time.sleep(0.05)
            yield line.decode().split("http://")[1].split("/")[0]
        finally:
            process.terminate()
            process.wait()


def warm_up(address: str) -> None:
    """The first answer may wait for a compiler."""
    url = f"http://{address}/v1/pools/home/decisions"
    urllib.request.urlopen(urllib.request.Request(url, b"{}"), timeout=300).close()


def load(address: str, request: bytes, seconds: float = SECONDS, connections: int = CONNECTIONS) -> dict[str, float]:
    host, port = address.split(":")
    with tempfile.NamedTemporaryFile() as file:
        file.write(request)
        file.flush()
        command = [sys.executable, str(HERE / "load.py"), host, port, str(connections), str(seconds), file.name]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert not found["bad"], found
    return dict(found)


def own(part: str) -> tuple[str, ...]:
    return (sys.executable, str(Path(__file__).resolve()), "--server", part)


def serve(store: str, folder: str, *more: str) -> tuple[str, ...]:
    file = Path(folder) / "map.json"
    file.write_text(json.dumps(catalogue(100)))
    main = ("-c", "from statepool.cli import main; main()")
    return (sys.executable, *main, "serve", "--store", store, "--port", "0", "--map", str(file), *more)


def catalogue(n_actions: int, n_states: int = 8) -> dict[str, Any]:
    P = np.random.default_rng(0).dirichlet(np.ones(n_states), n_actions)
    names = [f"a{i}" for i in range(n_actions)]
    return {"actions": names, "states": [f"s{i}" for i in range(n_states)], "P": P.tolist(), "seed": 1}


def http() -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(*own("canned")) as canned,
        running(*own("echo")) as echo,
        running(*serve(f"sqlite:///{folder}/pool.db", folder)) as service,
    ):
        warm_up(service)
        load(service, DECIDE, 1.0)
        found: dict[str, list[Any]] = {"canned": [], "echo": [], "service": [], "fsync": []}
        for _ in range(TURNS):
            found["canned"].append(load(canned, ECHO, SECONDS / 2))
            found["echo"].append(load(echo, ECHO))
            found["service"].append(load(service, DECIDE))
            found["fsync"].append(fsync_seconds(folder))
    return _http_rows(found)


def _http_rows(found: dict[str, list[Any]]) -> list[Row]:
    """Each turn's ratio is of its own numbers; the median turn counts."""
    turns = list(zip(found["echo"], found["service"], found["fsync"], strict=True))
    ratios = [service["rate"] / min(echo["rate"], CONNECTIONS / sync) for echo, service, sync in turns]
    waits = [service["p99"] / (4 * echo["p99"] + 2e3 * sync) for echo, service, sync in turns]
    rate = {name: median(each["rate"] for each in found[name]) for name in ("canned", "echo", "service")}
    p99 = {name: median(each["p99"] for each in found[name]) for name in ("echo", "service")}
    sync = median(found["fsync"])
    fastest = max(rate["echo"], rate["service"])
    told = f"{rate['service']:.0f} / min({rate['echo']:.0f}, {CONNECTIONS / sync:.0f}), fsync {1e3 * sync:.2f} ms"
    return [
        Row("decisions a second / min(echo, 32 / fsync)", median(ratios), at_least=0.7,
            note=told),
        Row("p99 / (4 × echo's + 2 fsyncs)", median(waits), at_most=1,
            note=f"{p99['service']:.1f} ms, echo {p99['echo']:.1f} ms"),
        Row("load generator / fastest server", rate["canned"] / fastest, at_least=1.5,
            note=f"{rate['canned']:.0f} requests a second against canned replies"),
    ]  # fmt: skip


def embedded() -> list[Row]:
    import apsw

    from statepool import Pool

    with tempfile.TemporaryDirectory() as folder:
        known = catalogue(100)
        pool = Pool.open(f"sqlite:///{folder}/pool.db", "home", **known)
        bare = apsw.Connection(f"{folder}/bare.db")
        bare.pragma("journal_mode", "wal")
        bare.pragma("synchronous", "FULL")
        bare.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, ticket TEXT, at INTEGER, body BLOB)")
        row = ("0" * 32, 1, bytes(100))

        def insert(count: int) -> None:
            with bare:
                bare.executemany("INSERT INTO events (ticket, at, body) VALUES (?, ?, ?)", [row] * count)

        many = in_turns({"pool": lambda: pool.decide_many(100), "bare": lambda: insert(100)}, turns=60)
        one, ratio = in_pairs(pool.decide, lambda: insert(1), turns=1000)
        pool.close()
        bare.close()
    note = f"{100 / many['pool']:.0f} against {100 / many['bare']:.0f} rows a second"
    note_of_one = f"{1e3 * one[0]:.2f} against {1e3 * one[1]:.2f} ms"
    return [
        Row("decide_many(100) / bare inserts", many["bare"] / many["pool"], at_least=0.2, note=note),
        Row("one durable decision / one bare durable insert", ratio, at_most=2, note=note_of_one),
    ]


def actions() -> list[Row]:
    from statepool import Pool

    few, many = 100, 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        pools = {k: Pool.open(f"sqlite:///{folder}/{k}.db", "home", **catalogue(k)) for k in (few, many)}
        one = in_turns({str(k): pool.decide for k, pool in pools.items()}, turns=60)
        batch = in_turns({str(k): lambda pool=pool: pool.decide_many(100) for k, pool in pools.items()}, turns=30)
        for pool in pools.values():
            pool.close()
    rows = []
    for name, seconds in (("one durable decision", one), ("decide_many(100)", batch)):
        note = f"{1e3 * seconds[str(many)]:.2f} against {1e3 * seconds[str(few)]:.2f} ms"
        rows.append(Row(f"{name}, K=1 000 000 / K=100", seconds[str(many)] / seconds[str(few)], at_most=3, note=note))
    return rows


def in_turns(runs: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Median seconds by the clock on the wall: what is compared waits for a disk."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(turns):
        for name, run in runs.items():
            since = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - since)
    return {name: median(each) for name, each in taken.items()}


def in_pairs(first: Callable[[], Any], second: Callable[[], Any], turns: int) -> tuple[tuple[float, float], float]:
    """Median seconds of each, and the median of the ratio of two that came one after the other: the disk's speed
    changes from second to second."""
    pairs = []
    for _ in range(turns):
        times = [time.perf_counter()]
        for run in (first, second):
            run()
            times.append(time.perf_counter())
        pairs.append((times[1] - times[0], times[2] - times[1]))
    taken = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    return taken, median(one / other for one, other in pairs)


def postgres() -> list[Row]:
    # By its path: this file has the name of its package.
    spec = spec_from_file_location("postgres", HERE.parent / "tests/live/postgres.py")
    assert spec is not None
    assert spec.loader is not None
    tests = module_from_spec(spec)
    spec.loader.exec_module(tests)
    server = tests.Server()
    found: dict[tuple[int, int], list[float]] = {(1, 32): [], (4, 32): [], (4, 128): []}
    try:
        url = server.emptied()
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                for workers, connections in found:
                    with running(*serve(url, folder, "--workers", str(workers), "--quiet")) as address:
                        warm_up(address)
                        load(address, DECIDE, 3.0, connections)  # every worker has opened its pool after that
                        found[workers, connections].append(load(address, DECIDE, SECONDS, connections)["rate"])
    finally:
        server.stop()
    rate = {case: median(each) for case, each in found.items()}
    rows = []
    for words, case in (("32 connections each", (4, 128)), ("32 connections in all", (4, 32))):
        note = f"{rate[case]:.0f} against {rate[1, 32]:.0f} decisions a second, {os.cpu_count()} cores"
        rows.append(Row(f"PostgreSQL, 4 workers / 1, {words}", rate[case] / rate[1, 32], at_least=1.5, note=note))
    return rows


class Canned(asyncio.Protocol):
    """The least a server can do."""

    ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 74\r\ncontent-type: application/json\r\n\r\n" + bytes(74)

    def connection_made(self, transport: Any) -> None:
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        self._write(self.ANSWER)


def run_canned() -> None:
    import uvloop

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", file=sys.stderr, flush=True)
        await server.serve_forever()

    uvloop.run(run())


def run_echo() -> None:
    """What the service is measured against: the same server, a route, JSON in and out, nothing else."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from statepool.commands.serve import UVICORN

    async def echo(request: Request) -> Response:
        body = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(body), media_type="application/json")

    import socket

    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/", file=sys.stderr, flush=True)
    app = Starlette(routes=[Route("/echo", echo, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, **UVICORN)).run([listening])


PARTS: dict[str, Callable[[], list[Row]]] = {
    "http": http, "embedded": embedded, "actions": actions, "postgres": postgres
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all when none is named")
    parser.add_argument("--server", choices=("canned", "echo"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.server:
        {"canned": run_canned, "echo": run_echo}[given.server]()
        return
    table = Table(title="Live: ratios measured in one run")
    for heading in ("what", "measured", "target", "met", "note"):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for name in given.parts or PARTS:
        for row in PARTS[name]():
            table.add_row(row.name, row.shown, row.target, {True: "yes", False: "NO", None: ""}[row.met], row.note)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
