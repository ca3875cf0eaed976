"""How calls reach the database: few frames, one transaction for those that wait, no lock to decide."""

import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

import statepool as sp
from live.places import ACTIONS, STATES, P, play
from statepool.live.errors import Conflict, StoreUnavailable

OURS = str(Path(sp.__file__).parent)


@pytest.mark.parametrize("call", ["decide", "observe", "resolve"])
def test_few_frames_of_ours_lie_between_a_call_and_the_database(place, call):
    pool = place.make()
    pool.decide("1")
    calls = {
        "decide": lambda: pool.decide("2"),
        "observe": lambda: pool.observe("1", "buy"),
        "resolve": lambda: pool.resolve("1", 0.5),
    }
    depths = []

    def count(*arguments):
        frame, files = sys._getframe(), []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        depths.append(sum(name.startswith(OURS) for name in files))

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    try:
        calls[call]()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", count)
    assert 0 < max(depths) <= 15


@pytest.mark.parametrize("n_refused", [0, 1])
def test_calls_that_wait_share_a_transaction_and_a_refusal_undoes_one_alone(sqlite, n_refused):
    pool = sqlite.make()
    pool.decide("1", uniform=0.25)
    begun, started, go = [], threading.Event(), threading.Event()

    @sa.event.listens_for(pool.database.engine, "commit")
    def committed(connection):
        begun.append(connection)

    def first(connection):
        started.set()
        go.wait()

    refusals = []

    def wrong(connection):
        connection.execute(sa.delete(pool.database.tables.decisions))
        raise Conflict("no")

    def refused():
        try:
            pool.database.write(wrong)
        except Conflict as error:
            refusals.append(error)

    threads = [threading.Thread(target=pool.database.write, args=(first,))]
    threads[0].start()
    started.wait()
    threads += [threading.Thread(target=pool.decide) for _ in range(10)] + [
        threading.Thread(target=refused)
    ] * n_refused
    for thread in threads[1:]:
        thread.start()
    while len(pool.database._waiting) < 10 + n_refused:
        pass
    go.set()
    for thread in threads:
        thread.join()
    assert len(begun) == (11 if n_refused else 2), "after a refusal each is run by itself"
    assert len(refusals) == n_refused
    assert pool.status().decisions == 11


def race(pools, work, threads=4):
    """Run `work(pool, n)` in threads of all pools at once; what they raised."""
    errors = []

    def run(pool, n):
        try:
            work(pool, n)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(pool, n)) for n in range(threads) for pool in pools]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return errors


def test_all_who_race_for_a_ticket_get_one_answer(place):
    pools = [place.make(update_every=5) for _ in range(2)]
    answers = []

    def work(pool, n):
        for ticket in range(15):
            answers.append(pool.decide(f"{ticket}"))
            pool.observe(f"{ticket}", STATES[ticket % 3])
            pool.resolve(f"{ticket}", ticket % 2)

    assert race(pools, work) == []
    assert len({(each.ticket, each.action, each.probability) for each in answers}) == 15
    assert pools[0].status().counts["states"] == 15
    pools[0].learn()
    assert pools[1].status().counts["unlearned"] == 0
    assert pools[1].replay().ok


def test_changes_race_with_decisions(place):
    pools = [place.make(update_every=3) for _ in range(2)]

    def work(pool, n):
        if n == 0:
            for number in range(6):
                label = f"{id(pool)} {number}"
                pool.add_action(label, [0, 0.5, 0.5])
                pool.retire_action(label)
        else:
            play(pool, 12)

    assert race(pools, work, threads=3) == []
    assert pools[0].status().revision == 25
    assert pools[0].replay().ok


def test_a_pool_made_by_two_at_once_is_one(place):
    pools = []

    def work(_, n):
        pools.append(place.make())

    assert race([None], work) == []
    assert len({pool.definition.id for pool in pools}) == 1


def test_a_database_that_is_away_is_told_in_one_sentence():
    with pytest.raises(StoreUnavailable, match="did not answer") as away:
        sp.Pool.open("postgresql://nobody:secret@127.0.0.1:1/x", "home", P, ACTIONS, STATES, sp.StateEXP3(rate=0.1))
    assert "secret" not in str(away.value)
    assert "\n" not in str(away.value)


def test_a_pool_made_twice_in_one_transaction_is_one(sqlite):
    database, started, go = sp.live.Database(sqlite.url), threading.Event(), threading.Event()

    def hold(connection):
        started.set()
        go.wait(10)

    holder = threading.Thread(target=database.write, args=(hold,))
    holder.start()
    started.wait()
    pools = []
    makers = [
        threading.Thread(target=lambda: pools.append(sp.Pool.open(database, "home", P, ACTIONS, STATES, "uniform")))
        for _ in range(2)
    ]
    for thread in makers:
        thread.start()
    deadline = time.monotonic() + 10
    while len(database._waiting) < 2:
        assert time.monotonic() < deadline
    go.set()
    for thread in (holder, *makers):
        thread.join()
    assert len({pool.definition.id for pool in pools}) == 1
    assert len(pools) == 2
    database.close()
