"""One bit of a PostgreSQL file flipped while the server is down: whatever changes for a reader is refused or named."""

import signal

import numpy as np
import psycopg
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P
from live.postgres import Server
from statepool.live.errors import StoreUnavailable
from statepool.live.replay import replay
from statepool.live.stores import open_store

RELATIONS = [
    "events", "events_pkey", "events_ticket", "events_catalogue", "pending", "pending_pkey", "pending_at", "snapshots",
    "snapshots_pkey", "pools",
]  # fmt: skip
TABLES = ["events", "pending", "snapshots", "pools"]
ORDERED = [
    "SELECT * FROM statepool.events WHERE pool = 1 AND seq > 0 ORDER BY seq",
    "SELECT seq FROM statepool.events WHERE pool = 1 AND kind = 7 ORDER BY seq",
    "SELECT * FROM statepool.pending WHERE pool = 1 ORDER BY play",
    "SELECT play FROM statepool.pending WHERE pool = 1 AND at < 9000000000000000000 ORDER BY at",
    "SELECT * FROM statepool.snapshots WHERE pool = 1",
]
LOOK_UP = """
    SELECT kind, body FROM statepool.events WHERE pool = 1
    AND play = (SELECT play FROM statepool.events WHERE pool = 1 AND ticket = %s AND kind = 0) ORDER BY kind
"""


def fill(url):
    draws, tickets = np.random.default_rng(3), []
    with sp.Pool.open(url, "home", P, ACTIONS, STATES, sp.StateEXP3(rate=0.1), seed=5, refresh=4) as pool:
        for t in range(150):
            tickets.append(pool.decide().ticket)
            pool.observe(tickets[-1], STATES[draws.integers(3)])
            if t % 4:
                pool.resolve(tickets[draws.integers(max(t - 5, 0), t + 1)], loss=0.5)
            if t == 20:
                pool.add_action("d", [0.2, 0.2, 0.6])
    return tickets


def read_raw(url, tickets):
    """Whole tables, and through their indexes; None if the server cannot."""
    try:
        with psycopg.connect(url, autocommit=True) as database:
            found = [sorted(database.execute(f"SELECT * FROM statepool.{table}").fetchall()) for table in TABLES]
            database.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
            found += [database.execute(sql).fetchall() for sql in ORDERED]
            return found + [database.execute(LOOK_UP, (ticket,)).fetchall() for ticket in tickets]
    except (psycopg.Error, UnicodeDecodeError, TypeError):  # rows of nonsense may not even sort
        return None


def is_noticed(url):
    try:
        store = open_store(url)
        try:
            return bool(replay(store, "home")[0].faults)
        finally:
            store.close()
    except (ValueError, StoreUnavailable):
        return True


def path_of(database, name):
    return database.execute(f"SELECT pg_relation_filepath('statepool.{name}')").fetchone()[0]


@pytest.mark.soak
@pytest.mark.parametrize("checksums", ["enable", "disable"])
def test_flipped_bits_of_postgresql_are_refused_or_named(checksums):
    draws, server = np.random.default_rng(4), Server("autovacuum=off")
    server._end(signal.SIGINT)
    server._run("pg_checksums", f"--{checksums}", "-D", str(server.folder / "data"))
    server.start()
    try:
        tickets = fill(server.url())
        with psycopg.connect(server.url(), autocommit=True) as database:
            database.execute("VACUUM")
            paths = {name: server.folder / "data" / path_of(database, name) for name in RELATIONS}
            database.execute("CHECKPOINT")
        wanted = read_raw(server.url(), tickets)
        assert wanted is not None
        assert not is_noticed(server.url())
        changed, missed = 0, []
        server._end(signal.SIGINT)
        whole = {name: path.read_bytes() for name, path in paths.items()}
        for n in range(200):
            name = RELATIONS[n % len(RELATIONS)]
            place, bit = int(draws.integers(len(whole[name]))), int(draws.integers(8))
            damaged = bytearray(whole[name])
            damaged[place] ^= 1 << bit
            paths[name].write_bytes(damaged)
            server.start()
            if read_raw(server.url(), tickets) != wanted:
                changed += 1
                if not is_noticed(server.url()):
                    missed.append((name, place, bit))
            server._end(signal.SIGINT)
            for each, path in paths.items():
                path.write_bytes(whole[each])
        print(f"checksums {checksums}d: {changed} of 200 flips changed what is read, unnoticed: {missed}")
        assert changed > 30
        assert not missed
        server.start()
    finally:
        server.stop()
