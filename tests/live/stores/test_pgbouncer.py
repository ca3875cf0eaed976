"""PostgreSQL behind a pooler that hands out sessions by the transaction: nothing may rest on a session."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from journals import decide

from live.outside import decided_there
from live.pgbouncer import PgBouncer, program
from live.postgres import Server
from statepool.live.errors import StoreUnavailable
from statepool.live.stores import postgres
from statepool.live.stores.postgres import PostgresStore

pytestmark = pytest.mark.skipif(program() is None, reason="PgBouncer is not installed (apt-get install pgbouncer)")


@contextmanager
def pooled(server: Server, mode: str) -> Iterator[PgBouncer]:
    bouncer = PgBouncer(server, mode)
    try:
        yield bouncer
    finally:
        bouncer.stop()


@pytest.fixture(scope="module")
def careless() -> Iterator[Server]:
    """A server that answers before its disk has, unless it is told otherwise, and may be killed."""
    server = Server("synchronous_commit=off", "wal_writer_delay=10s")
    yield server
    server.stop()


def decide_at_once(stores: list[PostgresStore], each: int) -> list[str]:
    """Stores with a pool each and all with "home", in threads of their own; what was acknowledged."""
    told: list[str] = []

    def work(who: int, store: PostgresStore) -> None:
        for n in range(each):
            decide(store, f"{who} {n}")
            told.append(f"{who} {n}")
            store.pools()

    threads = [threading.Thread(target=work, args=(who, store)) for who, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def test_every_call_succeeds_where_clients_share_sessions(server: Server) -> None:
    server.emptied()
    with pooled(server, "transaction") as bouncer:
        stores = [PostgresStore(bouncer.url()) for _ in range(6)]
        stores[0].ensure("home")
        told = decide_at_once(stores, each=15)  # more than the five after which psycopg prepares
        for store in stores:
            store.close()
    assert len(told) == 90
    assert sorted(decided_there(server.url(), "home")) == sorted(told)


def test_nothing_is_left_in_a_session(server: Server) -> None:
    server.emptied()
    names = ("synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout")
    ask = f"SELECT {', '.join(f'current_setting({name!r})' for name in names)}"
    with pooled(server, "transaction") as bouncer:
        with psycopg.connect(bouncer.url(), autocommit=True) as fresh:
            before = fresh.execute(ask).fetchall()
        store = PostgresStore(bouncer.url())
        store.ensure("home")
        decide_at_once([store], each=10)
        store.close()
        with psycopg.connect(bouncer.url(), autocommit=True) as used:
            assert used.execute(ask).fetchall() == before
            assert used.execute("SELECT count(*) FROM pg_prepared_statements").fetchall() == [(0,)]


def lost_on_kill(server: Server) -> set[str]:
    """What was acknowledged through the pooler and is not there after the server was killed."""
    server.emptied()
    with pooled(server, "transaction") as bouncer:
        store = PostgresStore(bouncer.url())
        store.ensure("home")
        with closing(psycopg.connect(bouncer.url())) as other:
            other.execute("SELECT 1")  # in a transaction it keeps the session that the store had
            acknowledged = [str(decide(store, f"{n}")[0].ticket) for n in range(20)]
            server.kill()
        with pytest.raises(StoreUnavailable):
            store.pools()
        store.close()
    server.start()
    return set(acknowledged) - set(decided_there(server.url(), "home"))


def test_a_careless_server_behind_a_pooler_loses_nothing_acknowledged(careless: Server) -> None:
    assert not lost_on_kill(careless)


def test_a_flush_that_trusts_the_session_is_caught(careless: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "FLUSH", "SELECT pg_logical_emit_message(true, 'statepool', '')")
    assert lost_on_kill(careless)


@pytest.mark.parametrize("table", ["pools", "keys"])
def test_pools_and_keys_are_on_disk_when_they_are_acknowledged(careless: Server, table: str) -> None:
    careless.emptied()
    store = PostgresStore(careless.url())
    if table == "pools":
        store.ensure("kept")
    else:
        store.add_key("kept", "hash", "admin")
    careless.kill()
    careless.start()
    store.close()
    with psycopg.connect(careless.url()) as raw:
        assert raw.execute(f"SELECT name FROM statepool.{table}").fetchall() == [("kept",)]


def test_a_pooler_that_has_no_transactions_is_refused_at_once(server: Server) -> None:
    with pooled(server, "statement") as bouncer, pytest.raises(ValueError, match="refuses transactions"):
        PostgresStore(bouncer.url())
