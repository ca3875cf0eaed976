"""Requests that bring a context or candidates, without the pool's lock: who waits, and what they are drawn from."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import statepool as sp
from live.places import PostgresPlace
from live.test_hung import stopped
from live.test_lanes import decisions_of, faults, in_lanes, teach, versions
from statepool.live import handed_on, replay
from statepool.live.answers import Answers
from statepool.live.errors import Conflict
from statepool.live.events import Brought, decode
from statepool.live.pool_state import PoolState
from statepool.live.requests import Decide, DecideAll, Observe
from statepool.live.writer import Writer

ACTIONS, STATES = ["a", "b", "c"], ["x", "y", "z"]
TABLES = {
    "new": [[0.7, 0.2, 0.1], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8]],
    "known": {"a": [0.1, 0.2, 0.7], "b": [0.6, 0.3, 0.1]},
}
OFFER = {"poster": [0.7, 0.2, 0.1], "a": [0.1, 0.4, 0.5]}
LEARNERS = [sp.SelfTuned(), sp.StateEXP3(rate=0.3), sp.CorrectedPool(), sp.PooledThompson()]


@pytest.fixture
def place(database):
    place = PostgresPlace(database)
    yield place
    place.close()


def open_pool(place, learner=None, tables=TABLES, **given):
    catalogue = {"P": tables, "actions": ACTIONS, "states": STATES, "seed": 3}
    return place.open(**catalogue, learner=learner or sp.StateEXP3(rate=0.3), **given)


def bring_often(pool):
    """Until the process knows that such rows come again."""
    for _ in range(2):
        pool.decide(candidates=OFFER)


def test_a_context_waits_for_nobody_who_holds_the_lock(place):
    pool = open_pool(place)
    pool.decide("first", context="new")
    with stopped(place.url, place.name):
        made = [pool.decide(f"{n}", context=("new", "known")[n % 2]) for n in range(6)]
        assert pool.decide("1", context="known") == made[1]
        with pytest.raises(Conflict, match="context"):
            pool.decide("1", context="new")
        with pytest.raises(ValueError, match="context: is missing"):
            pool.decide("7")
        with pytest.raises(ValueError, match="'nobody' is not known, expected one of 'new', 'known'"):
            pool.decide("7", context="nobody")
    assert sorted(in_lanes(place)) == ["0", "1", "2", "3", "4", "5", "first"]
    teach(pool, "3", state="y")
    assert [event.context for event in decisions_of(place)] == ["new", *["new", "known"] * 3]
    assert all(event.lane and event.round is not None for event in decisions_of(place))
    assert faults(place) == []


def test_candidates_whose_rows_the_journal_has_wait_for_nobody(place):
    pool = open_pool(place)
    bring_often(pool)
    with stopped(place.url, place.name):
        made = [pool.decide(f"{n}", candidates=OFFER) for n in range(4)]
        assert pool.decide("2", candidates=dict(OFFER)) == made[2]
        with pytest.raises(Conflict, match="candidates"):
            pool.decide("2", candidates={"poster": [1, 0, 0]})
        with pytest.raises(Conflict, match="context"):
            pool.decide("2", context="new")
    assert sorted(in_lanes(place)) == ["0", "1", "2", "3"]
    assert Counter(bool(event.lane) for event in decisions_of(place)) == {True: 4, False: 2}
    assert sum(isinstance(decode(body), Brought) for *_, body, _ in place.events()) == 1
    assert faults(place) == []


def test_rows_that_are_new_are_kept_before_their_decision(place):
    """It takes the lock, this once, whatever was brought before."""
    pool, offers = open_pool(place), [{"poster": [1 - n / 8, n / 8, 0]} for n in range(6)]
    bring_often(pool)
    for offer in offers:
        pool.decide(candidates=offer)
        bring_often(pool)
    kept = [event.digest for *_, body, _ in place.events() if isinstance(event := decode(body), Brought)]
    assert len(kept) == len(set(kept)) == 7
    found, _ = replay.replay(place.store(), place.name, redraw=True)
    assert (found.faults, found.without_rows, found.redrawn) == ([], 0, 20)


def test_where_there_is_no_room_for_rows_they_wait_for_nobody(place):
    pool = open_pool(place, request_bytes=0)
    pool.decide(candidates=OFFER)
    with stopped(place.url, place.name):
        for n in range(3):
            pool.decide(f"{n}", candidates={"poster": [1 - n / 8, n / 8, 0]})
    found, _ = replay.replay(place.store(), place.name, redraw=True)
    assert (found.faults, found.without_rows, found.in_lanes) == ([], 4, 3)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("more", [{}, {"holdout": 0.3, "holdout_action": "b", "shares": {"a": (0.1, 0.6)}}])
def test_whoever_only_decides_answers_from_what_was_handed_on(place, learner, more):
    teacher, decider = open_pool(place, learner, refresh=1, **more), place.open()
    decider.decide("0", context="new")
    bring_often(decider)
    decider.decide(context="known")
    folded = decider._journal.pool_state.seq
    for n in range(10):
        teach(teacher, f"{n}", loss=float(n % 2), state="xyz"[n % 3])
        asked = {"candidates": OFFER} if n % 3 == 0 else {"context": ("new", "known")[n % 2]}
        decider.decide(f"{n + 1}", **asked)
        assert decisions_of(place)[-1].version == versions(place)[-1]
    assert decider._journal.pool_state.seq == folded
    assert faults(place) == []


def test_what_is_too_large_to_be_handed_on_is_followed_without_the_lock(place, monkeypatch):
    teacher, decider = open_pool(place, refresh=1), place.open()
    monkeypatch.setattr(handed_on, "LARGEST", teacher._fold().make_version()[0].nbytes)
    decider.decide("0", context="new")
    for n in range(4):
        teach(teacher, f"{n}", loss=float(n % 2), state="xyz"[n % 3])
        with stopped(place.url, place.name):
            decider.decide(f"{n + 1}", context="known")
        assert decider._journal.pool_state.seq == place.store().standings().pools[place.name].head.seq
    assert faults(place) == []


CHANGES = {
    "tables": lambda place: open_pool(
        place, tables={"new": TABLES["new"][::-1], "known": {"b": [0.1, 0.1, 0.8]}}, update=True
    ),
    "holdout": lambda place: place.open().change(holdout=0.4, holdout_action="c"),
    "shares": lambda place: place.open().change(shares={"a": (0.6, 0.9)}),
    "retired": lambda place: place.open().retire_action("a"),
    "added": lambda place: place.open().add_action("poster", row=[0.3, 0.3, 0.4]),
}


@pytest.mark.parametrize("changed", CHANGES)
@pytest.mark.parametrize("mutant", [False, True])
def test_a_change_that_comes_before_the_decision_is_taken_over_changes_no_draw(place, monkeypatch, changed, mutant):
    """It was answered from the catalogue of its version, and is drawn again from that one."""
    pool = open_pool(place, refresh=1)
    bring_often(pool)
    for n in range(8):
        pool.decide(f"before {n}", context="new")
        teach(pool, f"before {n}", loss=float(n % 2), state="xyz"[n % 3])
    pool.decide("first", context="new")

    def decide():
        for n in range(12):
            pool.decide(f"{n}", **({"candidates": OFFER} if n % 2 else {"context": "new"}))

    add = Writer.add

    def decide_before(writer, event):
        if event.kind == "catalogue":
            monkeypatch.setattr(Writer, "add", add)
            decide()
        return add(writer, event)

    monkeypatch.setattr(Writer, "add", decide_before)
    CHANGES[changed](place)
    waiting = {seq: decode(body) for seq, kind, ticket, *_, body, _ in place.events() if ticket in map(str, range(12))}
    assert len(waiting) == 12
    last_change = max(seq for seq, kind, *_ in place.events() if kind == "catalogue")
    assert all(each.version < last_change < seq for seq, each in waiting.items())
    later = place.open().decide("later", context="new")
    assert later.action in ("b", "c", *(["a"] if changed != "retired" else []), *["poster"] * (changed == "added"))
    if mutant:  # answered as of the present, as of any later change
        original = PoolState.answers.fget
        kept = {}
        monkeypatch.setattr(
            PoolState,
            "answers",
            property(lambda pool_state: kept.setdefault(id(pool_state), Moving(pool_state, original))),
        )
        assert faults(place) != []
    else:
        assert faults(place) == []


class Moving:
    """The answers of a pool that goes on."""

    def __init__(self, pool_state, original):
        self._fold, self._original = pool_state, original

    def __getattr__(self, name):
        return getattr(self._original(self._fold), name)


def test_a_row_that_was_handed_on_with_other_tables_does_not_fit(place):
    """As many changes as this process knows, and others: a store that was set back and went on otherwise."""
    pools = [
        open_pool(place, name=f"{place.name}-{n}", tables=tables)
        for n, tables in enumerate([TABLES, TABLES | {"new": TABLES["new"][::-1]}])
    ]
    digests = [pool._fold().answers.digest() for pool in pools]
    assert digests[0] != digests[1]
    pools[1].change(holdout=0.5)
    assert pools[1]._fold().answers.digest() not in digests
    again = Answers(pools[0]._fold().catalogue, pools[0]._fold().settings, pools[0]._fold().live_learner)
    assert again.digest() == digests[0]


def test_what_is_about_one_ticket_in_one_call_keeps_its_order(place):
    pool = open_pool(place)
    bring_often(pool)
    new = {"poster": [0.2, 0.2, 0.6]}
    first, second, third = pool.run([Decide("t", candidates=new), Decide("t", context="new"), Observe("t", "x")])
    assert first.action == "poster"
    assert isinstance(second, Conflict)
    assert third is None
    other, same = pool.run([Decide("u", context="new"), Decide("u", candidates=OFFER)])
    assert other.ticket == "u"
    assert isinstance(same, Conflict)
    assert faults(place) == []


def test_several_decisions_of_one_call_wait_for_the_lock_together_or_not_at_all(place):
    """Rows that are new wait; what was asked for with them is not decided before, and what follows of it keeps its
    order."""
    pool = open_pool(place)
    bring_often(pool)
    new, bad = {"poster": [0.2, 0.2, 0.6]}, {"poster": [2.0]}
    with pytest.raises(ValueError, match="number 3 of 3"):
        pool.decide_many(["t", "u", "v"], candidates=[OFFER, new, bad])
    bring_often(pool)
    assert pool.status().decisions == 4
    asked = DecideAll([Decide("t", candidates=OFFER), Decide("u", candidates=new)])
    made, other, seen = pool.run([asked, Decide("t", context="new"), Observe("u", "x")])
    assert [each.ticket for each in made] == ["t", "u"]
    assert (type(other), seen) == (Conflict, None)
    bring_often(pool)
    asked = DecideAll([Decide("v", candidates=OFFER), Decide("w", candidates={"poster": [0.5, 0.5, 0.0]})])
    made, other = pool.run([asked, Decide("v", context="new")])
    assert ([each.ticket for each in made], type(other)) == (["v", "w"], Conflict)
    assert faults(place) == []


def test_racing_for_one_ticket_with_different_requests_decides_it_once(place):
    pools = [open_pool(place), place.open(), place.open()]
    for pool in pools:
        bring_often(pool)
        pool.decide(context="new")
    asked = [{"context": "new"}, {"context": "known"}, {"candidates": OFFER}]
    for n in range(20):
        with ThreadPoolExecutor(4) as threads:
            told = [threads.submit(pool.decide, f"t{n}", **each) for pool, each in zip(pools, asked, strict=True)]
            threads.submit(pools[n % 3].settle)
        assert [isinstance(each.exception(), Conflict) for each in told].count(False) == 1
    tickets = [event.ticket for event in decisions_of(place)]
    assert len(tickets) == len(set(tickets)) == 29
    assert faults(place) == []


def test_lanes_and_batches_of_one_process_answer_side_by_side(place):
    """They share the learner's memories for requests."""
    pool = open_pool(place, sp.CorrectedPool(), refresh=1)
    pool.decide(context="new")
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(3), size=(60, 3))

    def bring():
        for table in rows:
            made = pool.decide(candidates=dict(zip("abc", table, strict=True)))
            teach(pool, made.ticket, state="y")

    thread = threading.Thread(target=bring)
    thread.start()
    while thread.is_alive():
        pool.decide(context="new")
    thread.join()
    assert Counter(bool(event.lane) for event in decisions_of(place))[True] > 1
    assert faults(place) == []


def test_the_same_seed_answers_alike_with_and_without_lanes(place, tmp_path):
    def played(url):
        catalogue = {"P": TABLES, "actions": ACTIONS, "states": STATES, "learner": sp.StateEXP3(rate=0.3)}
        with sp.Pool.open(url, place.name, **catalogue, seed=9, refresh=1) as pool:
            made = []
            for n in range(30):
                made.append(pool.decide(context=("new", "known")[n % 2]))
                if n % 3:
                    teach(pool, made[-1].ticket, loss=(n % 5) / 4, state="xyz"[n % 3])
            return [(each.action, each.probability) for each in made]

    assert played(place.url) == played(f"sqlite:///{tmp_path}/pool.db")


def test_a_process_that_knows_another_catalogue_follows_before_it_answers(place):
    teacher, decider = open_pool(place, refresh=1), place.open()
    decider.decide("0", context="known")
    open_pool(place, tables=TABLES | {"late": {"c": [0.2, 0.2, 0.6]}}, refresh=1, update=True)
    assert decider.decide("1", context="late").action == "c"
    teacher.retire_action("a")
    assert {decider.decide(context="known").action for _ in range(20)} == {"b"}
    assert faults(place) == []
