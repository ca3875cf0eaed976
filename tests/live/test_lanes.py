"""Decisions without the pool's lock: who waits for whom, what is counted once, what the bits depend on."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
from live.places import PostgresPlace, ask, change, fold_of, of_pool
from live.test_hung import stopped
from statepool.live import journal, lanes, lock_free
from statepool.live.errors import Damaged, StoreUnavailable
from statepool.live.events import Decided, Lesson, Refreshed, decode, encode
from statepool.live.lanes import decisions_in
from statepool.live.replay import replay
from statepool.live.stores.store import LaneRow

NEXT = count()


@pytest.fixture
def place(database):
    place = PostgresPlace(database)
    yield place
    place.close()


def teach(pool, ticket, loss=0.5, state="browse"):
    pool.observe(ticket, state)
    pool.resolve(ticket, loss=loss)


def faults(place):
    return replay(place.store(), place.name, redraw=True)[0].faults


def in_lanes(place):
    return [
        row[0]
        for row in ask(
            place.url, f"SELECT ticket FROM %slanes WHERE ticket IS NOT NULL AND {of_pool(place.name, 'lanes')}"
        )
    ]


def test_a_decision_waits_for_nobody_who_holds_the_lock(place):
    pool = place.make()
    pool.decide("first")
    with stopped(place.url, place.name):
        began = time.monotonic()
        assert [pool.decide(f"call {n}").ticket for n in range(3)] == ["call 0", "call 1", "call 2"]
        assert pool.decide("call 1").ticket == "call 1"
        assert time.monotonic() - began < 5
        assert [row["ticket"] for row in pool.rows()] == ["first", "call 0", "call 1", "call 2"]
        assert pool.n_pending == len(pool.pending()) == pool.status().plays == 4
        assert pool.find("call 2")["loss"] is None
    teach(pool, "call 2")
    assert pool.n_pending == 3
    assert in_lanes(place) == []
    assert faults(place) == []


def test_a_lesson_of_the_same_process_that_waits_holds_up_no_decision(place):
    pool = place.make()
    pool.decide("first")
    with stopped(place.url, place.name):
        waiting = threading.Thread(target=lambda: pool.observe("first", "browse"))
        waiting.start()
        time.sleep(0.2)
        began = time.monotonic()
        pool.decide("second")
        assert time.monotonic() - began < 5
        assert waiting.is_alive()
    waiting.join()
    assert pool.find("first")["state"] == "browse"


def test_a_process_plays_from_the_version_that_another_has_made(place):
    teacher, decider = place.make(refresh=1), place.open()
    for n in range(5):
        decider.decide(f"{n}")
        teach(teacher, f"{n}", loss=float(n % 2))
    decider.decide("last")
    made = {seq: decode(body) for seq, kind, *_, body, _ in place.events() if kind in ("refresh", "decision")}
    versions = {seq: each.epoch for seq, each in made.items() if isinstance(each, Refreshed)}
    last = [each for each in made.values() if isinstance(each, Decided)][-1]
    assert last.version == max(versions)
    assert Counter(versions.values()) == {decider._journal.plays.epoch: 1, teacher._journal.plays.epoch: 5}
    assert faults(place) == []


def test_another_processor_plays_from_a_version_of_its_own(place, monkeypatch):
    """A version that comes out otherwise by a bit is not played from: it would play with other probabilities."""
    teacher, decider = place.make(refresh=1), place.open()
    decider.decide("x")
    make = journal.Fold.make_version

    def other(fold):
        version, record = make(fold)
        return version, record | {"q": b"other" + record["q"][5:]}

    teach(teacher, "x")
    with monkeypatch.context() as patch:
        patch.setattr(journal.Fold, "make_version", other)
        decider._journal.look(lambda fold: None)
    assert decider._journal.playing is None or decider._journal.playing.seq < decider._journal.fold.version
    decider.decide("y")
    assert [decode(body).epoch for _, kind, *_, body, _ in place.events() if kind == "refresh"][
        -1
    ] == decider._journal.plays.epoch


def test_the_same_seed_draws_the_same_actions_with_and_without_lanes(place, tmp_path):
    def played(url):
        with sp.Pool.open(url, place.name, P=np.eye(3) * 0.4 + 0.2, actions=[*"abc"], states=[*"xyz"],
                          learner=sp.StateEXP3(rate=0.3), seed=9, refresh=1) as pool:  # fmt: skip
            made = []
            for n in range(40):
                made.append(pool.decide())
                if n % 3:
                    teach(pool, made[-1].ticket, loss=(n % 5) / 4, state="xyz"[n % 3])
            return [(each.action, each.probability) for each in made]

    assert played(place.url) == played(f"sqlite:///{tmp_path}/pool.db")


def test_without_a_seed_lanes_that_count_the_same_round_draw_apart(place):
    catalogue = {"P": np.eye(2), "actions": ["a", "b"], "states": ["x", "y"], "learner": sp.Uniform()}
    pools = [place.open(**catalogue) for _ in range(2)]
    drawn = [[pool.decide().action for _ in range(60)] for pool in pools]
    assert drawn[0] != drawn[1]
    rounds = [event.round for event in decisions_of(place)]
    assert max(Counter(rounds).values()) == 2, "they do count the same rounds"


def decisions_of(place):
    return [decode(body) for _, kind, *_, body, _ in place.events() if kind == "decision"]


def test_racing_for_one_ticket_decides_it_once_whatever_the_journal_takes_over_meanwhile(place):
    pools = [place.make(), *(place.open() for _ in range(3))]
    for pool in pools:
        pool.decide()
    for n in range(25):
        with ThreadPoolExecutor(5) as threads:
            told = [threads.submit(pool.decide, f"t{n}") for pool in pools]
            threads.submit(pools[n % 4]._journal.settle)
            assert len({each.result() for each in told}) == 1
    tickets = [event.ticket for event in decisions_of(place)]
    assert len(tickets) == len(set(tickets)) == 29
    assert faults(place) == []


def test_a_ticket_that_the_journal_took_over_between_look_and_write_is_not_decided_again(place, monkeypatch):
    """Only the rule of the table can know: the look was before, and the row of the other lane is gone."""
    first, second = place.make(), place.open()
    first.decide()
    second.decide()
    looked = lanes.LaneWriter.look_up

    def look_then_lose_the_race(writer, tickets):
        looked(writer, tickets)
        monkeypatch.setattr(lanes.LaneWriter, "look_up", looked)
        first.decide("x")
        first._journal.settle()

    monkeypatch.setattr(lanes.LaneWriter, "look_up", look_then_lose_the_race)
    answer = second.decide("x")
    assert answer == first.decide("x")
    assert [event.ticket for event in decisions_of(place)].count("x") == 1


def test_without_the_rule_of_the_table_that_is_noticed(place, monkeypatch):
    change(place.url, "ALTER TABLE lanes DISABLE TRIGGER lanes_known")
    try:
        with pytest.raises((AssertionError, StoreUnavailable, ValueError)):
            test_a_ticket_that_the_journal_took_over_between_look_and_write_is_not_decided_again(place, monkeypatch)
    finally:
        change(place.url, "ALTER TABLE lanes ENABLE TRIGGER lanes_known")


def test_a_lane_that_is_gone_is_begun_anew(place):
    pool = place.make()
    pool.decide("kept")
    place.events()
    earlier = place.keep()
    pool.decide("lost")
    place.restore(earlier)  # the journal has not moved, and still a decision is gone
    assert pool.decide("after").ticket == "after"
    assert [row["ticket"] for row in pool.rows()] == ["kept", "after"]
    teach(pool, "after")
    assert faults(place) == []


@pytest.mark.parametrize("lessons", [1, 5])
def test_a_store_that_was_set_back_is_read_anew(place, lessons):
    pool, other = place.make(refresh=1), place.open()
    pool.decide_many(["a", "b", "c", "d", "e"])
    other.decide("f")
    place.events()
    earlier = place.keep()
    for ticket in "abcde"[:lessons]:
        teach(pool, ticket)
    pool.decide("lost")
    place.restore(earlier)
    for n, each in enumerate((pool, other)):
        assert each.decide(f"after {n}").ticket == f"after {n}"
    teach(other, "after 0")
    assert sorted(row["ticket"] for row in pool.rows()) == ["a", "after 0", "after 1", "b", "c", "d", "e", "f"]
    assert faults(place) == []


def test_two_who_write_to_one_lane_are_told_apart(place):
    first, second = place.make(), place.open()
    for pool in (first, second):
        pool.decide()
    theirs, mine = first._journal._lock_free.lane, second._journal._lock_free.lane
    mine.name, mine.place, mine.hash = theirs.name, theirs.place, theirs.hash
    first.decide("a")
    second.decide("b")  # the place is taken: it goes to a lane of its own
    assert second._journal._lock_free.lane.name != first._journal._lock_free.lane.name
    assert sorted(row["ticket"] for row in first.rows())[-2:] == ["a", "b"]
    assert faults(place) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE %slanes SET body = substring(body FROM 2)",
        "UPDATE %slanes SET hash = 'x'",
        "UPDATE %slanes SET at = at + 1",
        "UPDATE %slanes SET ticket = ticket || 'x'",
        "UPDATE %slanes SET place = place + 5",
        "UPDATE %slanes SET lane = 'other'",
    ],
)
def test_damage_in_lanes_is_found_and_nothing_is_written_on_top_of_it(place, damage):
    pool = place.make()
    pool.decide("first")
    place.events()
    pool.decide("second")
    place.damage(damage)
    with pytest.raises(StoreUnavailable):
        pool.observe("first", "browse")
    assert any("lanes" in fault for fault in faults(place))


def test_a_row_of_a_lane_that_is_missing_in_the_middle_is_found(place):
    pool = place.make()
    pool.decide_many(["a", "b", "c"])
    change(place.url, "DELETE FROM lanes WHERE ticket = 'b'")
    with pytest.raises(Damaged, match="does not follow"):
        pool.observe("a", "browse")
    assert any("does not follow" in fault for fault in faults(place))


def test_a_backup_holds_what_is_in_lanes_and_a_file_takes_it_over(place, tmp_path):
    pool = place.make()
    pool.decide_many(["a", "b"])
    place.store().copy_to(str(tmp_path / "copy.db"))
    with sp.Pool.open(f"sqlite:///{tmp_path}/copy.db", place.name) as copy:
        assert copy.n_pending == 2
        teach(copy, "b")
        assert [row["loss"] for row in copy.rows()] == [None, 0.5]
    assert in_lanes(place) == ["a", "b"]


def test_many_decisions_are_taken_over_though_nobody_reports_anything(place):
    pool = place.make()
    for _ in range(5):
        pool.decide_many(lock_free.SETTLE_AT)
    deadline = time.monotonic() + 30
    while pool._journal._lock_free.is_settling and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(in_lanes(place)) < 4 * lock_free.SETTLE_AT
    assert len({row["ticket"] for row in pool.rows()}) == 5 * lock_free.SETTLE_AT


def test_a_version_that_is_too_far_behind_is_not_written(place):
    slow, busy = place.make(), place.open()
    slow.decide()
    store = slow._journal.store
    with store.lane(place.name) as batch:
        busy.change(refresh=7)
        row = LaneRow(b"lane", 0, "x", 0, b"", b"")
        batch.add([row], b"", batch.head().seq)
    assert not batch.kept
    assert "x" not in in_lanes(place)


def merged(events, random):
    """The same events in another order that keeps each lane's and the chain's, numbered anew."""
    lanes_of, chain = {}, []
    for event in events[1:]:
        (lanes_of.setdefault(event.lane, []) if isinstance(event, Decided) else chain).append(event)
    queues, done, decided = [chain, *lanes_of.values()], [events[0]], set()
    while any(queues):
        ready = [
            queue for queue in queues if queue and not (
                (isinstance(queue[0], Lesson) and queue[0].ticket not in decided)
                or (isinstance(queue[0], Decided) and queue[0].version > len(done))
            )
        ]  # fmt: skip
        event = random.choice(ready).pop(0)
        if isinstance(event, Decided):
            decided.add(event.ticket)
        done.append(event)
    return done


@pytest.fixture(scope="module")
def played(database):
    """A pool that three processes have played, with lessons out of order."""
    place = PostgresPlace(database)
    pools = [place.make(sp.PooledGreedy(forgetting=0.9, exploration=0.2), refresh=10**6),
             *(place.open() for _ in range(2))]  # fmt: skip
    rng = np.random.default_rng(5)
    tickets = [pools[rng.integers(3)].decide().ticket for _ in range(30)]
    for ticket in rng.permutation(tickets):
        teach(pools[rng.integers(3)], str(ticket), loss=float(rng.random()), state="browse")
        tickets.append(pools[rng.integers(3)].decide().ticket)
    events = [decode(body) for *_, body, _ in place.events()]
    place.close()
    return events


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_what_is_learnt_does_not_depend_on_how_lanes_interleave(played, random):
    def sums(events):
        rows = [(seq, None, None, None, None, encode(event), None) for seq, event in enumerate(events, start=1)]
        fold = fold_of(rows)
        return fold.ledger.dump(), fold.comparison.dump(), fold.counts, fold.plays, sorted(fold.lanes.items())

    # Events that name a version by its place keep it: only decisions move.
    order = merged(played, random)
    assert Counter(map(type, order)) == Counter(map(type, played))
    assert sums(_renumbered(order, played)) == sums(played)


def _renumbered(order, original):
    """Versions have moved to other places: whoever names one names its new place."""
    import msgspec

    places = {id(event): seq for seq, event in enumerate(order, start=1)}
    moved = {seq: places[id(event)] for seq, event in enumerate(original, start=1) if isinstance(event, Refreshed)}
    plays, done = {}, []
    for event in order:
        if isinstance(event, Decided):
            plays[event.ticket] = len(plays)
        if isinstance(event, Decided | Lesson):
            event = msgspec.structs.replace(event, version=moved[event.version], play=plays[event.ticket])
        done.append(event)
    return done


def test_rows_are_checked_link_by_link():
    with pytest.raises(Damaged, match="in the journal already"):
        decisions_in([LaneRow(b"a", 3, "t", 0, b"", b"")], {b"a": 5})


def test_no_lane_of_a_read_only_server_is_needed(place):
    """Whoever only reads sees what is in lanes, too."""
    from statepool.live.stores.following import Following

    pool = place.make()
    pool.decide("x")
    with psycopg.connect(place.url):
        follower = sp.Pool.open(Following(place.store()), place.name)
        assert follower.n_pending == 1
        assert [row["ticket"] for row in follower.rows()] == ["x"]
