"""Live pools against the database alone: decide() in bare durable inserts, bytes, HTTP, and what a large pool costs.

    python benchmarks/live_ratios.py [sqlite:///file.db | postgresql://… | postgres] [--large | --http]

Bare inserts are rows of the same size, one transaction each, by the database driver alone. `postgres` starts a server
of the tests in a temporary folder. `--large` makes a pool of a million decisions and measures opening, a learning step
(against one of ten thousand) and replay, in some minutes.
"""

import argparse
import json
import os
import secrets
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

import statepool as sp
from statepool.live import Database, Pool

N_STATES, N_ACTIONS, REPEATS = 8, 100, 300
ROW = (1, 0, 7, 3, 5, 0.25, 0.5, False, 1.8e9)
ANSWER = b'{"ticket":"abcdefghijklmnopqrstuv","action":42,"probability":0.010000000000000002}'
COLUMNS = "pool bigint, ticket text, round bigint, version bigint, action bigint, probability double precision, uniform double precision, is_holdout boolean, decided_at double precision"  # noqa: E501


class BareSQLite:
    """A table of the same width, written by the driver."""

    def __init__(self, folder: Path) -> None:
        self.connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute(f"CREATE TABLE bare ({COLUMNS}, UNIQUE (pool, ticket))")
        self.statement = "INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

    def insert(self, count: int = 1) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(self.statement, [_row() for _ in range(count)])
        self.connection.execute("COMMIT")


class BarePostgres:
    def __init__(self, url: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self.connection.execute("DROP TABLE IF EXISTS bare")
        self.connection.execute(f"CREATE TABLE bare ({COLUMNS}, UNIQUE (pool, ticket))")
        self.statement = "INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"

    def insert(self, count: int = 1) -> None:
        if count == 1:
            self.connection.execute(self.statement, _row())
            return
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(self.statement, [_row() for _ in range(count)])


def _row() -> tuple:
    return (ROW[0], secrets.token_urlsafe(16), *ROW[2:])


def median(function, repeats=REPEATS) -> float:
    """Of so many calls, in microseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def make_pool(database: Database, name: str, n_actions: int = N_ACTIONS, **settings) -> Pool:
    P = np.random.default_rng(0).dirichlet(np.ones(N_STATES), n_actions)
    return Pool.open(database, name, P, range(n_actions), range(N_STATES), sp.StateEXP3(rate=0.05), **settings)


def alternate(first, second, rounds=6) -> tuple[float, float]:
    """Medians of two functions in turns, so that both see the same load."""
    pairs = [(median(first, 60), median(second, 60)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def ratios(database: Database, bare) -> None:
    pool = make_pool(database, "ratios")
    pool.decide()
    one, decide = alternate(bare.insert, pool.decide)
    print(f"bare insert {one:.0f} µs, decide() {decide:.0f} µs: {decide / one:.2f}")
    hundred, many = alternate(lambda: bare.insert(100), lambda: pool.decide_many(100), 3)
    print(f"100 bare inserts {hundred:.0f} µs, decide_many(100) {many:.0f} µs: {many / hundred:.2f}")
    tickets = iter([each.ticket for each in pool.decide_many(1000)])
    print(f"observe() {median(lambda: pool.observe(next(tickets), 1), 200) / one:.2f} bare inserts")
    pool.close()


def size(database: Database) -> int:
    if database.path is not None:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return database.path.stat().st_size
    with database.read() as connection:
        query = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'statepool'::regnamespace AND relkind = 'r'"  # noqa: E501
        return int(connection.exec_driver_sql(query).scalar_one())


def fill(pool: Pool, count: int) -> None:
    """Decisions with state and outcome, a thousand per call."""
    for _ in range(count // 1000):
        made = [each.ticket for each in pool.decide_many(1000)]
        pool.observe_many([(ticket, n % N_STATES) for n, ticket in enumerate(made)])
        pool.resolve_many([(ticket, n % 2) for n, ticket in enumerate(made)])


def bytes_each(database: Database) -> None:
    pool, before = make_pool(database, "bytes"), size(database)
    for n in range(3_000):
        made = pool.decide()
        pool.observe(made.ticket, n % N_STATES)
        pool.resolve(made.ticket, n % 2)
    pool.learn()
    print(f"{(size(database) - before) / 3_000:.0f} bytes per decision, {pool.status().version} versions")
    pool.close()


def large(database: Database, count: int = 1_000_000) -> None:
    steps = {}
    for name, n in (("ten-thousand", 10_000), ("a-million", count)):
        pool = make_pool(database, name)
        fill(pool, n)
        pool.learn()

        def step(pool=pool) -> float:
            made = pool.decide_many(100)
            pool.observe_many([(each.ticket, 1) for each in made])
            start = time.perf_counter()
            pool.learn()
            return time.perf_counter() - start

        steps[name] = statistics.median(step() for _ in range(15))
        pool.close()
    print(f"learning step {steps['a-million'] * 1e3:.1f} ms: {steps['a-million'] / steps['ten-thousand']:.2f}")
    start = time.perf_counter()
    pool = Pool.open(database, "a-million")
    print(f"open {time.perf_counter() - start:.3f} s")
    start = time.perf_counter()
    found = pool.replay()
    print(f"replay {time.perf_counter() - start:.1f} s: {found}")
    start = time.perf_counter()
    pool.status()
    print(f"status {time.perf_counter() - start:.2f} s")


def http(database: Database, seconds: float = 4.0) -> None:
    """A decision over HTTP at 32 connections against a Starlette echo of the same bodies: CPU time and throughput."""
    make_pool(database, "http").close()
    folder = database.path.parent if database.path else Path(tempfile.mkdtemp())
    found = {}
    for name, path in (("echo", "/echo"), ("service", "/v1/pools/http/decisions")):
        url = str(database.url.set(drivername=database.url.get_backend_name()).render_as_string(hide_password=False))
        code = "import sys; sys.path.insert(0, sys.argv[1]); import live_ratios; live_ratios.serve(*sys.argv[2:])"
        here = str(Path(__file__).parent)
        server = subprocess.Popen([sys.executable, "-c", code, here, name, url], stdout=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline())
            head = f"POST {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
            (folder / "request").write_bytes(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
            arguments = ["127.0.0.1", str(port), "32", str(seconds), str(folder / "request")]
            load = [sys.executable, f"{here}/load.py"]
            subprocess.run([*load, *arguments[:3], "3", arguments[4]], capture_output=True, check=True)  # warm
            before = cpu_of(server.pid)
            done = subprocess.run([*load, *arguments], capture_output=True, text=True, check=True)
            answered = json.loads(done.stdout)
            used = cpu_of(server.pid) - before
            found[name] = answered["rate"], used / (answered["rate"] * seconds * 1.2) * 1e6
            print(f"{name}: {found[name][0]:.0f} a second, {found[name][1]:.0f} µs of CPU each, {answered}")
        finally:
            server.terminate()
            server.wait()
    rates, cpu = zip(*found.values(), strict=True)
    print(f"HTTP: {rates[1] / rates[0]:.2f} of an echo's throughput, {cpu[0] / cpu[1]:.2f} by CPU time")


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(what: str, url: str) -> None:
    """The service of a database, or an echo that answers with the same bytes as a decision; prints its port."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from statepool.commands.serve import UVICORN
    from statepool.live.service import Service

    async def echo(request):
        await request.body()
        return Response(ANSWER, media_type="application/json")

    routes = [Route("/echo", echo, methods=["POST"])]
    app = Starlette(routes=routes) if what == "echo" else Service(Database(url))
    sock = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(sock.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, **UVICORN)).run([sock])


def many_actions(database: Database, count: int = 1_000_000) -> None:
    few, many = make_pool(database, "few"), make_pool(database, "many", count)
    few.decide(), many.decide()
    one, other = alternate(few.decide, many.decide)
    print(f"decide() with {count} actions: {other / one:.2f} of that with {N_ACTIONS}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--http", action="store_true", help="only the part over HTTP")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = given.url or f"sqlite:///{folder}/pools.db"
        if url == "postgres":
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            from live.postgres import Server

            server = Server()
            stack.callback(server.stop)
            url = server.url()
        bare = BareSQLite(Path(folder)) if url.startswith("sqlite") else BarePostgres(url)
        with closing(bare.connection), Database(url) as database:
            if not given.http:
                ratios(database, bare)
                bytes_each(database)
            http(database)
            if given.large:
                many_actions(database)
                large(database)


if __name__ == "__main__":
    main()
