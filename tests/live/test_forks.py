"""A pool that was opened before a fork: parent and child both go on, or are told in one sentence that they cannot."""

import os
import threading

import pytest

from live.forked import Child, acknowledged_by_all
from live.outside import decided_there
from live.places import PostgresPlace, check_chain
from statepool.live.errors import StoreUnavailable
from statepool.live.forks import forks
from statepool.live.stores.sqlite_file import SQLiteFile


def sentence_of(call):
    try:
        call()
    except StoreUnavailable as error:
        return str(error)
    return "acknowledged"


def test_parent_and_children_go_on_and_lose_nothing(place):
    pool = place.make()
    pool.decide("before")
    answers = acknowledged_by_all(pool)
    assert [len(tickets) for tickets in answers] == [25] * 5
    there = decided_there(place.url, place.name)
    assert sorted(there) == sorted(["before", *(ticket for tickets in answers for ticket in tickets)])
    check_chain(place.events())


def test_a_child_goes_on_when_its_parent_has_closed(place):
    """The parent takes itself for the last one, and tidies up."""
    pool, (reading, writing) = place.make(), os.pipe()
    pool.decide("before")
    child = Child(lambda: os.read(reading, 1) and [pool.decide(f"child {n}").ticket for n in range(5)])
    pool.close()
    os.write(writing, b".")
    assert child.answer() == [f"child {n}" for n in range(5)]
    assert decided_there(place.url, place.name) == ["before", *(f"child {n}" for n in range(5))]


def test_a_child_that_ends_takes_nothing_from_its_parent(place):
    """Neither the parent's locks nor its connection."""
    pool = place.make()
    pool.decide("before")
    for n in range(3):
        assert Child(lambda n=n: pool.decide(f"child {n}").ticket and pool.close()).answer() is None
        pool.decide(f"parent {n}")
    assert len(decided_there(place.url, place.name)) == 7


def test_children_of_a_process_whose_threads_are_at_work(place):
    pool, ended, told = place.make(), threading.Event(), []

    def work(who):
        while not ended.is_set():
            told.append(pool.decide(f"thread {who} {len(told)}").ticket)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    answers = [Child(lambda n=n: sentence_of(lambda: pool.decide(f"child {n}"))).answer() for n in range(8)]
    ended.set()
    for thread in threads:
        thread.join()
    there = decided_there(place.url, place.name)
    assert len(there) == len(set(there))
    kept = [f"child {n}" for n, answer in enumerate(answers) if answer == "acknowledged"]
    assert set(told + kept) <= set(there)
    assert all(answer == "acknowledged" or "forked while" in answer for answer in answers)


def test_a_child_of_a_process_that_is_reading_a_file_is_told_so(sqlite):
    pool = sqlite.make()
    with pool._journal.store.view(sqlite.name) as view:
        refused, reopened, reading = Child(
            lambda: [sentence_of(lambda: pool.decide("x")), sentence_of(sqlite.open), ended_reading(view)]
        ).answer()
        assert view.n_pending() == 0
    assert "forked while its parent was reading or writing a SQLite file" in refused
    assert refused == reopened
    assert reading == "this reading of the store has ended"
    assert pool.decide("x").ticket == "x"
    assert not SQLiteFile.was_forked_at_work


def test_a_reading_of_the_server_stays_with_the_parent(database):
    place = PostgresPlace(database)
    pool = place.make()
    with pool._journal.store.view(place.name) as view:
        assert Child(lambda: [pool.decide("x").ticket, ended_reading(view)]).answer() == [
            "x", "this reading of the store has ended",
        ]  # fmt: skip
        assert view.n_pending() == 0
    assert pool.n_pending == 1
    place.close()


def ended_reading(view):
    try:
        view.n_pending()
    except ValueError as error:
        return str(error)
    return "read on"


def test_a_fork_that_python_does_not_see_is_refused(place, monkeypatch):
    pool = place.make()
    pool.decide("a")
    monkeypatch.setattr(forks, "process", forks.process + 1)  # as if this were another process
    with pytest.raises(StoreUnavailable, match="behind Python's back"):
        pool.decide("b")
    monkeypatch.undo()
    assert pool.decide("b").ticket == "b"
