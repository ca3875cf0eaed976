"""What only PostgreSQL does: its lock, its settings, and a server that goes away."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from journals import append, decide

from live.postgres import Server
from statepool.live.errors import StoreUnavailable
from statepool.live.stores import postgres
from statepool.live.stores.postgres import Connection, PostgresStore


def tickets(store: PostgresStore) -> list[str]:
    with store.view("home") as view:
        entries = list(view.entries())
        assert [entry.seq for entry in entries] == list(range(1, view.head().seq + 1))
        assert view.n_pending() == len(view.pending()) == len(entries)
    return [str(entry.ticket) for entry in entries]


@pytest.fixture
def store(server: Server) -> Iterator[PostgresStore]:
    store = PostgresStore(server.emptied())
    store.ensure("home")
    yield store
    store.close()
    server.emptied()  # other files share the database, and some tests here leave tables of a later version


@pytest.fixture(scope="module")
def fragile() -> Iterator[Server]:
    """A server that tests may kill, as long as they start it again."""
    server = Server()
    yield server
    server.stop()


class Lockless(PostgresStore):
    def _take(self, connection: Connection, name: str) -> None:
        pass


def write_at_once(kind: type[PostgresStore], url: str) -> list[Exception]:
    """One store starts a batch while the other is in the middle of one."""
    first, second, errors = kind(url), kind(url), []
    first.ensure("home")

    def follow() -> None:
        try:
            decide(second, "second")
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=follow)
    with first.batch("home") as batch:
        append(batch, [("decision", "first", None)])
        assert batch.n_pending() == 1
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    thread.join()
    if not errors:
        assert tickets(first) == ["first", "second"]
    first.close()
    second.close()
    return errors


def test_batches_follow_each_other(server: Server) -> None:
    assert write_at_once(PostgresStore, server.emptied()) == []


def test_dropping_the_lock_is_caught(server: Server) -> None:
    """Mutant "dropping the lock": the test above is able to fail."""
    (error,) = write_at_once(Lockless, server.emptied())
    assert isinstance(error, StoreUnavailable)


def test_pools_do_not_wait_for_each_other(store: PostgresStore, server: Server) -> None:
    store.ensure("other")
    second = PostgresStore(server.url())
    with store.batch("other"):
        decide(second, "a")
    second.close()


@pytest.mark.parametrize("within", [False, True], ids=["after a pipeline", "within a pipeline"])
def test_who_stands_still_with_the_lock_is_cut_off(
    store: PostgresStore, server: Server, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    """The server's own clock for idle transactions runs neither within a pipeline nor after its last request."""
    monkeypatch.setattr(postgres, "STILL", postgres.STILL.replace("30 seconds", "0.5 seconds"))
    monkeypatch.setattr(postgres, "FIRST_WAIT", 1.0)
    with psycopg.connect(server.url(), autocommit=True) as other, ExitStack() as stack:
        pipeline = stack.enter_context(other.pipeline())
        other.execute("BEGIN")
        other.execute("SELECT set_config('idle_in_transaction_session_timeout', '500ms', true)")
        store._take(other, "home")
        if within:
            other.execute("SELECT 1").fetchall()
        else:
            pipeline.sync()
            other.pgconn.send_flush_request()
            other.pgconn.flush()
        decide(store, "t")
        assert tickets(store) == ["t"]
        with pytest.raises(psycopg.Error):
            stack.close()
        stack.pop_all()


def test_who_works_with_the_lock_is_waited_for(
    store: PostgresStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "STILL", postgres.STILL.replace("30 seconds", "0.5 seconds"))
    monkeypatch.setattr(postgres, "FIRST_WAIT", 1.0)
    with psycopg.connect(server.url()) as other:
        store._take(other, "home")
        working = threading.Thread(target=other.execute, args=("SELECT pg_sleep(3)",))
        working.start()
        committing = threading.Timer(3.5, other.commit)
        committing.start()
        decide(store, "t")
        working.join()
        committing.join()
    assert tickets(store) == ["t"]


def test_a_server_that_loses_data_is_refused(fragile: Server) -> None:
    for setting in ("fsync=off", "full_page_writes=off"):
        fragile.restart(setting)
        with pytest.raises(ValueError, match=setting):
            PostgresStore(fragile.url())
    fragile.restart()


def lost_by_kills(fragile: Server, options: str = "") -> set[str]:
    """What was acknowledged and is not there after the server was killed, twice."""
    store = PostgresStore(fragile.emptied() + options)
    store.ensure("home")
    acknowledged: list[str] = []

    def work(fated: int) -> None:
        while True:
            ticket = f"ticket {fated} {len(acknowledged)}"
            decide(store, ticket)
            acknowledged.append(ticket)

    for fated in range(2):
        timer = threading.Timer(0.2, fragile.kill)
        timer.start()
        with pytest.raises(StoreUnavailable):
            work(fated)
        timer.join()
        with pytest.raises(StoreUnavailable):
            store.pools()
        fragile.start()
        there = tickets(store)
        assert len(there) == len(set(there))
        assert len(set(there) - set(acknowledged)) <= fated + 1
    store.close()
    return set(acknowledged) - set(there)


def test_a_killed_server_loses_nothing_acknowledged(fragile: Server) -> None:
    assert not lost_by_kills(fragile)


def test_commits_are_synced_whatever_the_database_says(fragile: Server) -> None:
    assert not lost_by_kills(fragile, "&options=-csynchronous_commit%3Doff")


def test_dropping_the_flush_is_caught(fragile: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "FLUSH", "SELECT 1")
    assert lost_by_kills(fragile)


def test_a_server_killed_in_a_batch_keeps_nothing_of_it(fragile: Server) -> None:
    store = PostgresStore(fragile.emptied())
    store.ensure("home")
    decide(store, "a")

    def write() -> None:
        with store.batch("home") as batch:
            append(batch, [("decision", "b", None)])
            assert batch.n_pending() == 2
            fragile.kill()

    with pytest.raises(StoreUnavailable, match="did not answer"):
        write()
    fragile.start()
    assert decide(store, "b")[0].seq == 2
    assert tickets(store) == ["a", "b"]
    store.close()


def test_a_lost_connection_is_replaced(store: PostgresStore, server: Server) -> None:
    decide(store, "a")
    with psycopg.connect(server.url(), autocommit=True) as other:
        others = "pid <> pg_backend_pid() AND datname = 'postgres'"
        other.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")
    with pytest.raises(StoreUnavailable):
        tickets(store)
    decide(store, "b")
    assert tickets(store) == ["a", "b"]


def test_a_server_that_is_not_there_is_unavailable_and_passwords_stay_secret() -> None:
    with pytest.raises(StoreUnavailable, match="did not answer") as caught:
        PostgresStore("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)
    for url in ("postgresql://me@127.0.0.1:1/db", "postgresql://me@/db?host=/no/socket"):
        with pytest.raises(StoreUnavailable, match="did not answer") as caught:
            PostgresStore(url)
        assert not any(where in str(caught.value) for where in ("127.0.0.1", "/no/socket")), "callers read this"


def test_what_text_cannot_hold_is_refused(store: PostgresStore) -> None:
    with pytest.raises(ValueError, match="refused an event"):
        decide(store, "zero \x00")
    assert tickets(store) == []


def test_tables_of_a_later_version_are_refused(store: PostgresStore, server: Server) -> None:
    with psycopg.connect(server.url(), autocommit=True) as other:
        other.execute("INSERT INTO statepool.migrations VALUES (999)")
    with pytest.raises(ValueError, match="version 999, made by a later statepool"):
        PostgresStore(server.url())


def test_migrations_go_on_from_where_the_database_is(
    store: PostgresStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(store, "a")
    known = postgres.steps("postgres")
    broken, mended = (999, "CREATE TABLE statepool.later (); nonsense"), (999, "CREATE TABLE statepool.later ()")
    monkeypatch.setattr(postgres, "steps", lambda kind: [*known, broken])
    with pytest.raises(StoreUnavailable, match="syntax error"):
        PostgresStore(server.url())
    monkeypatch.setattr(postgres, "steps", lambda kind: [*known, mended])
    for _ in range(2):
        later = PostgresStore(server.url())
        assert tickets(later) == ["a"]
        later.close()
