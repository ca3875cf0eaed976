"""Several processes that decide on one PostgreSQL pool: what they wait for, what a decision costs, how many there are.

    python benchmarks/writers.py [--contexts] [--busy] [--pgbouncer] [SECONDS [HOW MANY ...]]

Each writer decides one by one, with --contexts for two contexts in turn; one more process reports states and outcomes,
in batches. The server is sampled every few milliseconds: what share of the time of active sessions is spent waiting for
a lock that another session holds, or for the disk. CPU is of writers and server: also of the writers alone, of the
server's processes that work for them, and of the rest of it, which works for the reporter. With --busy every core has
something else to do as well, of lowest priority, so that one writer finds caches as cold as many do. With --pgbouncer
all go through PgBouncer in transaction mode.
"""

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import statepool as sp
from live.pgbouncer import PgBouncer
from live.postgres import Server

CATALOGUE = {
    "P": [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3]],
    "actions": ["a", "b", "c"],
    "states": ["x", "y", "z"],
}  # fmt: skip
WITH_CONTEXTS = CATALOGUE | {"P": {"new": CATALOGUE["P"], "known": CATALOGUE["P"][::-1]}}
STEP = os.sysconf("SC_CLK_TCK")


def decide(url, catalogue, seconds, ready, start, stop, results, tickets):
    pool = sp.Pool.open(f"{url}&application_name=writer", "home", **catalogue)
    has_contexts = isinstance(catalogue["P"], dict)
    asked = cycle([{"context": context} for context in catalogue["P"]] if has_contexts else [{}])
    pool.decide(**next(asked))
    ready.release()
    start.wait()
    began, cpu, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        made = pool.decide(**next(asked))
        if count % 4 == 0:
            tickets.put(made.ticket)
        count += 1
    results.put({"decisions": count, "cpu": time.process_time() - cpu})
    stop.wait()  # until the time of its server's process has been read
    pool.close()


def report(url, catalogue, stop, ready, start, tickets):
    pool = sp.Pool.open(url, "home", **catalogue)
    pool.policy()
    ready.release()
    start.wait()
    while not stop.is_set():
        batch = []
        while not tickets.empty() and len(batch) < 200:
            batch.append(tickets.get())
        if batch:
            pool.observe_many([(ticket, "y") for ticket in batch])
            pool.resolve_many([(ticket, 0.5) for ticket in batch])
        time.sleep(0.02)
    pool.close()


def server_cpu(url, pid):
    """Seconds of the server and all that it has started: for writers, and else."""
    with psycopg.connect(url, autocommit=True) as connection:
        sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'"
        of_writers = {pid for (pid,) in connection.execute(sql)}
    total = Counter()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry) == pid or int(fields[1]) == pid:
            of = "backends" if int(entry) in of_writers else "others"
            total[of] += (int(fields[11]) + int(fields[12])) / STEP
    return total


def look(url, until):
    """What backends that are at work on a decision wait for, sample by sample."""
    seen = Counter()
    sql = """SELECT coalesce(wait_event_type, 'CPU') || ' ' || coalesce(wait_event, '') FROM pg_stat_activity
             WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
    with psycopg.connect(url, autocommit=True) as connection:
        while time.perf_counter() < until:
            seen.update(event for (event,) in connection.execute(sql))
            time.sleep(0.004)
    return seen


def spin():
    os.nice(19)
    while True:
        sum(range(1_000))


def measure(n_writers, seconds, catalogue, pooled):
    server = Server()
    bouncer = PgBouncer(server, "transaction") if pooled else None
    processes = multiprocessing.get_context("spawn")
    try:
        direct, url = server.url(), bouncer.url() if bouncer else server.url()
        sp.Pool.open(url, "home", **catalogue).close()
        ready, start, stop = processes.Semaphore(0), processes.Event(), processes.Event()
        results, tickets = processes.Queue(), processes.Queue()
        writers = [
            processes.Process(target=decide, args=(url, catalogue, seconds, ready, start, stop, results, tickets))
            for _ in range(n_writers)
        ]
        reporter = processes.Process(target=report, args=(url, catalogue, stop, ready, start, tickets))
        for each in [*writers, reporter]:
            each.start()
        for _ in range(n_writers + 1):  # until all have compiled, opened and decided once
            ready.acquire()
        before = server_cpu(direct, server._process.pid)
        start.set()
        seen = look(direct, time.perf_counter() + seconds)
        found = server_cpu(direct, server._process.pid)
        found.subtract(before)
        for _ in writers:
            found.update(results.get(timeout=60))
        stop.set()
        for each in writers:
            each.join()
        while not tickets.empty():
            tickets.get()
        reporter.join(10)
        reporter.kill()
        return found, seen
    finally:
        if bouncer:
            bouncer.stop()
        server.stop()


def main(seconds, counts, catalogue, pooled):
    rows, first = [], None
    print(
        f"{'writers':>8} {'a second':>9} {'CPU µs':>7} {'of one':>7} {'writers':>8} {'server':>7} {'rest':>7} "
        f"{'lock':>7} {'disk':>7} {'of best':>8}"
    )
    for n_writers in counts:
        found, seen = measure(n_writers, seconds, catalogue, pooled)
        samples = max(sum(seen.values()), 1)
        lock = sum(n for event, n in seen.items() if event.startswith("Lock ")) / samples
        disk = sum(n for event, n in seen.items() if event.startswith(("IO ", "LWLock WALWrite"))) / samples
        parts = [1e6 * found[of] / found["decisions"] for of in ("cpu", "backends", "others")]
        cpu = sum(parts)
        first = first or cpu
        rate = found["decisions"] / seconds
        best = max([rate, *(each["row"][1] for each in rows)])
        row = [n_writers, rate, cpu, cpu / first, *parts, lock, disk, rate / best]
        rows.append({"row": row, "seen": dict(seen)})
        print(
            f"{n_writers:8} {row[1]:9.0f} {cpu:7.0f} {cpu / first:7.2f} "
            f"{parts[0]:8.0f} {parts[1]:7.0f} {parts[2]:7.0f} {lock:7.1%} {disk:7.1%} {rate / best:8.2f}",
            flush=True,
        )
    Path(tempfile.gettempdir(), "writers.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if each[0] != "-"]
    counts = tuple(map(int, given[1:])) or (1, 2, 4, 8)
    catalogue = WITH_CONTEXTS if "--contexts" in sys.argv else CATALOGUE
    for _ in range(os.cpu_count() or 1) if "--busy" in sys.argv else ():
        multiprocessing.get_context("spawn").Process(target=spin, daemon=True).start()
    main(float(given[0]) if given else 10.0, counts, catalogue, "--pgbouncer" in sys.argv)
