"""Seeded mutants: each rule that keeps what was said is dropped in turn, and a check named for it must notice.

`synchronous=OFF` is caught by the power-loss test: test_power_loss_with_synchronous_off_is_caught in
stores/test_sqlite.py.
"""

import os
import threading
from collections import Counter
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import apsw
import pytest
from hypothesis import Phase
from psycopg.pq import TransactionStatus

from live import arrivals
from live.forked import Child
from live.outside import decided_there
from live.places import PostgresPlace, SQLitePlace, change
from live.service.test_exposure import check_nobody_is_answered
from live.test_machine import failing, run_on
from statepool import exact_sums as exact
from statepool.live.errors import StoreUnavailable
from statepool.live.journal import Journal
from statepool.live.lanes import LaneWriter
from statepool.live.lock_free import LockFree
from statepool.live.requests import Decide, Decision, Observe, Resolve
from statepool.live.service import admission
from statepool.live.stores.postgres import PostgresStore
from statepool.live.stores.postgres_connections import Connections
from statepool.live.stores.sqlite_file import Connection, SQLiteFile
from statepool.live.stores.sqlite_place import Files
from statepool.live.writer import Writer, answer


class CaughtError(AssertionError):
    """A check has noticed."""


def check(holds, what):
    if not holds:
        raise CaughtError(what)


def check_applied_once(place, clients=8):
    """Many handles say the same outcome at once, and again."""
    place.make().decide("x")
    pools = [place.open() for _ in range(3)]
    threads = [
        threading.Thread(target=lambda pool=pool: pool.run([Resolve("x", 0.5)]))
        for pool in pools
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = Counter(kind for _, kind, *_ in place.events())
    check(counts["outcome"] == 1, "an outcome was applied twice")


def check_repeats_are_harmless(place):
    pool = place.make()
    for _ in range(2):
        pool.decide("x")
        answers = pool.run([Observe("x", "buy"), Resolve("x", 0.5)])
        check(answers == [None, None], "a repeated call was refused")


@contextmanager
def forgetting_what_the_store_knows(monkeypatch):
    """A writer that finds decisions and nothing else: only the table can refuse the second outcome."""
    look_up = Writer.look_up

    def forget(self, tickets):
        look_up(self, tickets)
        self._events = {
            ticket: {kind: event for kind, event in events.items() if kind == "decision"}
            for ticket, events in self._events.items()
        }

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "look_up", forget)
        yield


def test_dropping_the_uniqueness_rule_is_caught(place, monkeypatch):
    check_repeats_are_harmless(place)
    place.name += "-again"
    check_applied_once(place)
    with forgetting_what_the_store_knows(monkeypatch):
        place.name += "-mutant"
        check_applied_once(place)  # the table's rule holds alone
        with pytest.raises(CaughtError, match="refused"):
            check_repeats_are_harmless(place)


def test_dropping_the_uniqueness_rule_of_the_table_is_caught(sqlite, monkeypatch):
    sqlite.make().close()
    change(sqlite.url, "DROP INDEX events_play; CREATE INDEX events_play ON events (pool, play, kind)")
    check_applied_once(sqlite)  # the writer's rule holds alone
    sqlite.name += "-mutant"
    with forgetting_what_the_store_knows(monkeypatch), pytest.raises(CaughtError, match="applied twice"):
        check_applied_once(sqlite)


def check_acknowledged_is_kept(place, failing_calls=("batch", "lane"), kept=18):
    """The client's record against the table, where every third commit fails."""
    pool = place.make()
    acknowledged = []
    store = pool._journal.store
    for n in range(9):
        if n % 3 == 2:
            vars(store).update({name: failing(getattr(store, name)) for name in failing_calls})
        for request in (Decide(f"{n}"), Observe(f"{n}", "buy"), Resolve(f"{n}", 1.0)):
            (answer,) = pool.run([request])
            if not isinstance(answer, Exception):
                acknowledged.append((f"{n}", {Decide: "decision", Observe: "state", Resolve: "outcome"}[type(request)]))
        for name in failing_calls:
            vars(store).pop(name, None)
    counts = Counter((ticket, kind) for _, kind, ticket, *_ in place.events())
    check(all(counts[each] == 1 for each in acknowledged), "what was acknowledged is not there")
    check(len(acknowledged) == kept, "what could be kept was not acknowledged")


def hasty_write(self, requests):
    """As Journal._write, with the answers given before the commit."""
    answers = []
    with suppress(StoreUnavailable), self.store.batch(self.name) as batch:
        head = self._catch_up(batch)
        writer = Writer(self.played, self.pool_state, batch, head, self.now())
        writer.take_over()
        writer.look_up([request.ticket for request in requests if request.ticket])
        answers += [answer(request, writer) for request in requests]
        writer.write()
    return answers


def test_acknowledging_before_the_commit_is_caught(place, monkeypatch):
    check_acknowledged_is_kept(place)
    place.name += "-mutant"
    monkeypatch.setattr(Journal, "_write", hasty_write)
    with pytest.raises(CaughtError, match="not there"):
        check_acknowledged_is_kept(place, failing_calls=("batch",))


def hasty_decide(self, requests):
    """As LockFree._try, with the answers given before the commit."""
    journal, answers = self._journal, []
    if journal.published is None:
        journal.publish(journal.now())
    with suppress(StoreUnavailable), journal.store.lane(journal.name) as batch:
        writer = LaneWriter(self.lane, journal.published, batch, journal.now())
        writer.look_up([request.ticket for request in requests])
        answers += [answer(request, writer) for request in requests]
        writer.write()
    if batch.kept:
        writer.move_on()
    return answers


def test_acknowledging_a_decision_before_the_commit_is_caught(database, monkeypatch):
    place = PostgresPlace(database)
    monkeypatch.setattr(LockFree, "_try", hasty_decide)
    with pytest.raises(CaughtError, match="not there"):
        check_acknowledged_is_kept(place)
    place.close()


@pytest.mark.parametrize("learner", ["exp3", "tuned"])
def test_a_float_accumulator_is_caught(tmp_path, monkeypatch, learner):
    def check_orders(folder):
        folder.mkdir()
        place = SQLitePlace(folder / "pool.db")
        coming = arrivals.make(place, arrivals.LEARNERS[learner])
        forwards, backwards = list(range(len(coming))), list(range(len(coming)))[::-1]
        arrivals.check_any_order(place, folder, coming, [(forwards, []), (backwards, [5])])

    check_orders(tmp_path / "exact")
    monkeypatch.setattr(exact, "fixed", lambda value: value)
    monkeypatch.setattr(exact, "ldexp", lambda value, bits: value)
    monkeypatch.setattr(exact, "_to_bytes", lambda value: float(value).hex().encode())
    monkeypatch.setattr(exact.ExactSums, "load", load_floats)
    with pytest.raises(AssertionError, match="other bits"):
        check_orders(tmp_path / "floats")


def load_floats(self, dumped):
    self._oldest, blocks = dumped
    self._blocks = {number: [float.fromhex(value.decode()) for value in row] for number, row in blocks}


def without_the_lock(self, sql, *values):
    return apsw.Connection.execute(self, "BEGIN" if sql == "BEGIN IMMEDIATE" else sql, *values)


def check_turns(place):
    """While one handle is in a batch, another has to wait; then it finds what the first one wrote."""
    place.make().decide("x")
    first, second = place.store(), place.store()
    entered, seen = threading.Event(), []

    def follow():
        with suppress(StoreUnavailable), second.batch(place.name) as batch:
            entered.set()
            seen.append(batch.head().decisions)

    with first.batch(place.name) as batch:
        thread = threading.Thread(target=follow)
        thread.start()
        in_between = entered.wait(0.3)
        first_saw = batch.head().decisions
    thread.join()
    check(not in_between, "two writers at once")
    check(seen == [first_saw], "the second writer did not get its turn")


def test_dropping_the_lock_is_caught(place, monkeypatch):
    check_turns(place)
    place.name += "-mutant"
    monkeypatch.setattr(Connection, "execute", without_the_lock)
    monkeypatch.setattr(PostgresStore, "_take", lambda self, connection, name: None)
    with pytest.raises(CaughtError, match="two writers"):
        check_turns(place)


def failures_after_cancelled_batches(url, place, age):
    """Of three batches, after two that were cancelled on a connection that had carried `age` of them before."""
    failures = 0
    with closing(PostgresStore(f"{url}&options=-cstatement_timeout%3D15ms")) as store, closing(place.store()) as other:
        for _ in range(age):
            with store.batch(place.name):
                pass
        with other.batch(place.name):
            for _ in range(2):
                with suppress(StoreUnavailable), store.batch(place.name):
                    raise AssertionError("two writers at once")
        for _ in range(3):
            try:
                with store.batch(place.name) as batch:
                    batch.n_pending()
            except StoreUnavailable:
                failures += 1
    return failures


def check_cancelled_batches_leave_no_trace(database):
    """At any age of the connection: psycopg prepares what it has sent five times."""
    place = PostgresPlace(database)
    place.make().close()
    for age in range(8):
        failures = failures_after_cancelled_batches(database, place, age)
        check(not failures, f"{failures} of 3 batches failed after two had been cancelled")


def keep_it(self, connection, sound):
    """As Connections._take_back, whatever the connection has been through."""
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.execute("ROLLBACK")
    self._idle.append(connection)


def test_keeping_a_connection_after_an_error_is_caught(database, monkeypatch):
    check_cancelled_batches_leave_no_trace(database)
    monkeypatch.setattr(Connections, "_take_back", keep_it)
    with pytest.raises(CaughtError, match="3 of 3 batches failed"):
        check_cancelled_batches_leave_no_trace(database)


def check_forks_keep_what_was_acknowledged(place):
    """Children of a process that has the pool open decide with it, after their parent has closed it."""
    pool, (reading, writing) = place.make(), os.pipe()
    pool.decide("before")
    child = Child(lambda: os.read(reading, 1) and [pool.decide(f"child {n}").ticket for n in range(5)])
    pool.close()
    os.write(writing, b".")
    told = child.answer()
    check(isinstance(told, list), "the child could not go on")
    check(set(told) <= set(decided_there(place.url, place.name)), "what the child was told is not there")


def test_forgetting_which_process_it_is_is_caught(place, monkeypatch):
    check_forks_keep_what_was_acknowledged(place)
    place.name += "-mutant"
    for follower in (SQLiteFile, Connections, Journal):
        for told in ("before_fork", "after_fork_in_parent", "after_fork_in_child"):
            monkeypatch.setattr(follower, told, lambda self: None)
    with pytest.raises(CaughtError, match="could not go on"):
        check_forks_keep_what_was_acknowledged(place)
    monkeypatch.setattr(Files, "check", lambda self: None)
    place.name += "-blind"
    with pytest.raises(CaughtError, match=r"could not go on|is not there"):
        check_forks_keep_what_was_acknowledged(place)


def test_drawing_again_is_caught(tmp_path, monkeypatch):
    """The dictionary model of the state machine is able to fail."""
    answer = Decide.answer

    def draw_again(self, writer):
        made = answer(self, writer)
        return Decision(made.ticket, made.action, made.probability / 2 if writer.pool_state.decisions % 2 else 1.0)

    monkeypatch.setattr(Decide, "answer", draw_again)
    with pytest.raises(AssertionError):
        run_on(lambda: SQLitePlace(Path(mkdtemp(dir=tmp_path)) / "pool.db"), max_examples=8, phases=[Phase.generate])


def test_serving_everybody_without_keys_is_caught(sqlite, monkeypatch):
    """As a worker did that began after the last key was dropped: only its parent had looked."""
    check_nobody_is_answered(sqlite.url, host="0.0.0.0")
    monkeypatch.setattr(admission, "refuse_strangers", lambda headers, door: None)
    with pytest.raises(AssertionError, match="was answered"):
        check_nobody_is_answered(sqlite.url, host="0.0.0.0")
