"""Places to keep pools in, and their tables read without the package: what is on disk, whoever wrote it."""

from contextlib import closing
from hashlib import sha256
from itertools import count

import apsw
import numpy as np
import psycopg

import statepool as sp
from statepool.live.events import decode
from statepool.live.journal import Journal
from statepool.live.pool_state import PoolState, Records
from statepool.live.stores import open_store
from statepool.live.stores.sqlite import SQLiteStore

P = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
ACTIONS, STATES = ["a", "b", "c"], ["bounce", "browse", "buy"]
NAMES = count()

TABLES = ["pools", "events", "pending", "snapshots", "lanes"]
COLUMNS = "seq, kind, ticket, play, body, hash"
KINDS = ["decision", "state", "outcome", "expiry", "correction", "refresh", "rows", "catalogue", "erasure"]


class Place:
    """A store, opened as often as a test likes."""

    def __init__(self, url):
        self.url = url
        self.name = f"pool-{next(NAMES)}"
        self._opened = []

    def store(self):
        self._opened.append(self._open())
        return self._opened[-1]

    def _open(self):
        return open_store(self.url)

    def open(self, name=None, **given):
        """The pool of this test, made or continued, in a store of its own."""
        store = self.store()
        try:
            pool = sp.Pool.open(store, name or self.name, **given)
        except BaseException:
            store.close()
            raise
        pool._owns_store = True
        return pool

    def make(self, learner=None, **given):
        """The usual small one."""
        catalogue = {"P": P, "actions": ACTIONS, "states": STATES, "seed": 5}
        return self.open(learner=learner or sp.StateEXP3(rate=0.3), **catalogue | given)

    def events(self, name=None):
        """The table's rows of a pool, as they are."""
        return raw_events(self.url, name or self.name)

    def delete_snapshot(self):
        self.change("DELETE FROM snapshots")

    def change(self, sql):
        change(self.url, sql)

    def damage(self, sql):
        """Change rows of this pool behind everybody's back."""
        table = sql.partition("%s")[2].split()[0]
        prefix = "" if self.url.startswith("sqlite") else "statepool."
        self.change(f"{sql} WHERE {of_pool(self.name, table)}".replace("%s", prefix))

    def tables(self):
        """All that is stored of the pool, as it is."""
        return [ask(self.url, f"SELECT * FROM %s{table} WHERE {of_pool(self.name, table)}") for table in TABLES]

    def keep(self):
        """A copy of the pool, as a backup makes it."""
        return self.tables()

    def restore(self, kept):
        """Put a copy back, under whoever has the store open."""
        put_back(self.url, self.name, kept)

    def close(self):
        for store in self._opened:
            store.close()


class SQLitePlace(Place):
    """Without syncing: what a power cut loses is tested elsewhere, and the disk is slow."""

    def __init__(self, path):
        super().__init__(f"sqlite:///{path}")
        self.path = path

    def _open(self):
        return SQLiteStore(self.path, synchronous="OFF")


class PostgresPlace(Place):
    def events(self, name=None):
        """The same, once the journal has taken over what is in lanes."""
        name = name or self.name
        if ask(self.url, f"SELECT 1 FROM %slanes WHERE ticket IS NOT NULL AND {of_pool(name, 'lanes')}"):
            with closing(self._open()) as store:
                Journal(store, name, None).settle()
        return super().events(name)


def raw_events(url, name):
    """Each event with its number, kind, ticket, decision, time, bytes and hash: what has no column is in the bytes."""
    return told(ask(url, f"SELECT {COLUMNS} FROM %sevents WHERE {of_pool(name, 'events')} ORDER BY seq"))


def told(rows):
    """The kinds of rows by name, with the times, and the tickets of the decisions that they are of."""
    decided = {number: decode(body).ticket for _, kind, _, number, body, _ in rows if KINDS[kind] == "decision"}
    return [
        (seq, KINDS[kind], ticket or decided.get(number), number, decode(body).at, body, digest)
        for seq, kind, ticket, number, body, digest in rows
    ]


def raw_moment(url, name):
    """The events of a pool, and the tickets and bodies of what is in its lanes, both of one moment."""
    events = f"SELECT {COLUMNS} FROM %sevents WHERE {of_pool(name, 'events')} ORDER BY seq"
    lanes = f"SELECT ticket, body FROM %slanes WHERE ticket IS NOT NULL AND lane <> %e AND {of_pool(name, 'lanes')}"
    if url.startswith("sqlite"):
        with closing(raw_sqlite(url)) as database, database:
            rows = [list(database.execute(sql.replace("%s", "").replace("%e", "x''"))) for sql in (events, lanes)]
    else:
        with psycopg.connect(url) as database:
            database.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            spelt = [sql.replace("%s", "statepool.").replace("%e", "''") for sql in (events, lanes)]
            rows = [database.execute(sql).fetchall() for sql in spelt]
    return [told(rows[0]), rows[1]]


def ask(url, sql):
    if url.startswith("sqlite"):
        with closing(raw_sqlite(url)) as database:
            return list(database.execute(sql.replace("%s", "")))
    with psycopg.connect(url) as database:
        return database.execute(sql.replace("%s", "statepool.")).fetchall()


def of_pool(name, table):
    return f"name = '{name}'" if table == "pools" else f"pool = (SELECT id FROM %spools WHERE name = '{name}')"


def put_back(url, name, kept):
    """Every row of the pool as it was, in one transaction."""
    deletes = [f"DELETE FROM %s{table} WHERE {of_pool(name, table)}" for table in reversed(TABLES)]
    if url.startswith("sqlite"):
        with closing(raw_sqlite(url)) as database, database:
            for sql in deletes:
                database.execute(sql.replace("%s", ""))
            for table, rows in zip(TABLES, kept, strict=True):
                for row in rows:
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        return
    with psycopg.connect(url) as database:
        for sql in deletes:
            database.execute(sql.replace("%s", "statepool."))
        for table, rows in zip(TABLES, kept, strict=True):
            for row in rows:
                places = ", ".join(["%s"] * len(row))
                database.execute(f"INSERT INTO statepool.{table} OVERRIDING SYSTEM VALUE VALUES ({places})", row)


def raw_sqlite(url):
    """A connection of the same SQLite library: one of another would, when closed, drop the locks of this process."""
    return apsw.Connection(url.removeprefix("sqlite:///"))


def change(url, sql):
    if url.startswith("sqlite"):
        with closing(raw_sqlite(url)) as database:
            database.execute(sql)
        return
    with psycopg.connect(url, options="-c search_path=statepool") as database:
        database.execute(sql)


def check_chain(events):
    """Numbers without a gap, each hash that of the one before and of its own bytes: nothing of the package."""
    before = b""
    for place, (seq, *_, body, digest) in enumerate(events, start=1):
        before = sha256(before + body).digest()
        assert (seq, digest) == (place, before)


def fold_of(events):
    """The journal from nothing, every event, no snapshot."""
    bodies = {seq: body for seq, *_, body, _ in events}
    pool_state = PoolState(decode(bodies[1]), Records(lambda seq: decode(bodies[seq])))
    for seq, body in bodies.items():
        pool_state.apply(decode(body), seq)
    return pool_state
