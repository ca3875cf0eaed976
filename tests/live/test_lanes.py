"""Decisions without the pool's lock: who waits for whom, what is counted once, what the bits depend on."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import count
from types import SimpleNamespace

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
from live.places import P, PostgresPlace, ask, change, fold_of, of_pool
from live.test_hung import stopped
from statepool.live import handed_on, journal, lanes, lock_free
from statepool.live.compaction import compact
from statepool.live.errors import Conflict, Damaged, StoreUnavailable, UnknownTicket
from statepool.live.events import Decided, Lesson, Refreshed, decode, encode
from statepool.live.forgetting import forget
from statepool.live.lanes import decisions_in
from statepool.live.replay import replay
from statepool.live.stores.postgres import PostgresBatch
from statepool.live.stores.store import SILENT, LaneBatch, LaneRow
from statepool.live.versions import Version, spread
from statepool.live.writer import Writer

NEXT = count()
CANDIDATES = {"a": [0.8, 0.2, 0.0], "other": [0.1, 0.6, 0.3]}


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
        assert pool.n_pending == len(pool.pending()) == pool.status().decisions == 4
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
    assert Counter(versions.values()) == {decider._journal.played.epoch: 1, teacher._journal.played.epoch: 5}
    assert faults(place) == []


def test_another_processor_plays_from_a_version_of_its_own(place, monkeypatch):
    """A version that comes out otherwise by a bit is not played from: it would play with other probabilities.

    Where the bits themselves were handed on it plays from those.
    """
    monkeypatch.setattr(handed_on, "LARGEST", 0)
    teacher, decider = place.make(refresh=1), place.open()
    decider.decide("x")
    make = journal.PoolState.make_version

    def other(pool_state):
        version, record = make(pool_state)
        return version, record | {"q": b"other" + record["q"][5:]}

    teach(teacher, "x")
    with monkeypatch.context() as patch:
        patch.setattr(journal.PoolState, "make_version", other)
        decider._journal.look(lambda pool_state: None)
    assert decider._journal.playing is None or decider._journal.playing.seq < decider._journal.pool_state.version
    decider.decide("y")
    assert [decode(body).epoch for _, kind, *_, body, _ in place.events() if kind == "refresh"][
        -1
    ] == decider._journal.played.epoch


def versions(place):
    return [seq for seq, kind, *_ in place.events() if kind == "refresh"]


def decided(place):
    return [decode(body) for _, kind, *_, body, _ in place.events() if kind == "decision"]


@pytest.mark.parametrize("learner", [sp.SelfTuned(), sp.CorrectedPool(), sp.StateEXP3(rate=0.3)])
@pytest.mark.parametrize("more", [{}, {"holdout": 0.3, "shares": {"a": (0.1, 0.6)}}])
def test_whoever_only_decides_draws_from_what_was_handed_on_and_follows_nothing(place, learner, more):
    teacher, decider = place.make(refresh=1, learner=learner, **more), place.open()
    decider.decide("0")
    folded = decider._journal.pool_state.seq
    for n in range(12):
        teach(teacher, f"{n}", loss=float(n % 2))
        decider.decide(f"{n + 1}")
        assert decided(place)[-1].version == versions(place)[-1]
    assert decider._journal.pool_state.seq == folded
    assert decider._journal.played.versions_made == 1
    assert faults(place) == []
    assert decider.status().counts["outcome"] == 12
    assert decider._journal.pool_state.seq > folded


def test_what_is_handed_on_is_the_version_bit_for_bit(place):
    for learner in (sp.SelfTuned(), sp.CorrectedPool()):
        pool = place.make(learner=learner, holdout=0.2, name=type(learner).__name__)
        pool.decide()
        published, seal = pool._journal.published, handed_on.Seal()
        found = handed_on.take_up(handed_on.hand_on(published, seal), published, handed_on.Seal())
        assert found.playing.version == published.playing.version
        assert (found.playing.version.carries is None) == (published.playing.version.carries is None)
        for uniform in np.linspace(0, 0.999, 50):
            assert found.playing.version.draw(uniform) == published.playing.version.draw(uniform)
        before, after = vars(published.playing), vars(found.playing)
        assert {name: before[name] for name in before if name != "version"} == {
            name: after[name] for name in after if name != "version"
        }
        assert found._replace(playing=None) == published._replace(playing=None)


@pytest.mark.parametrize("flipped", range(0, 400, 7))
def test_a_row_that_was_damaged_is_not_drawn_from(flipped):
    """Whichever byte of it."""
    published, seal = a_published(), handed_on.Seal()
    row = bytearray(handed_on.hand_on(published, seal))
    assert handed_on.take_up(bytes(row), published, seal) is not None
    row[flipped % len(row)] ^= 1
    assert handed_on.take_up(bytes(row), published, seal) is None


def a_published():
    version = Version(np.arange(3), np.full(3, 1 / 3), (spread(np.full(3, 1 / 3)),), 0.0, None)
    answers = SimpleNamespace(digest=lambda: b"d")
    catalogue = SimpleNamespace(actions=["a", "b"], contexts=())
    pool_state = SimpleNamespace(
        lessons=3, changes=1, decisions=7, catalogue=catalogue, answers=answers, secret=b"s", seed=b"t", seeded=False
    )
    return lanes.Published(lanes.Playing(version, 5, pool_state, 9, 100), 8, b"h", 0, None)


def test_a_row_of_another_catalogue_or_pool_does_not_fit():
    published = a_published()
    row = handed_on.hand_on(published, handed_on.Seal())
    for name, other in {"actions": ["a", "c"], "secret": b"x", "seed": b"x", "seeded": True, "changes": 2,
                        "has_contexts": True, "answers": SimpleNamespace(digest=lambda: b"x")}.items():  # fmt: skip
        playing = copy(published.playing)
        setattr(playing, name, other)
        assert handed_on.take_up(row, published._replace(playing=playing), handed_on.Seal()) is None
    assert handed_on.take_up(row, published._replace(refresh_seconds=1.0), handed_on.Seal()) is None


@pytest.mark.parametrize(
    "spoilt",
    [
        "DELETE FROM %splays", "UPDATE %splays SET body = ''",
        "UPDATE %splays SET body = set_byte(body, 60, get_byte(body, 60) # 1)",
    ],
)  # fmt: skip
def test_without_a_row_that_fits_the_journal_is_followed(place, spoilt):
    teacher, decider = place.make(refresh=1), place.open()
    decider.decide("0")
    for n in range(4):
        teach(teacher, f"{n}", loss=float(n % 2))
        place.damage(spoilt)
        decider.decide(f"{n + 1}")
        assert decider._journal.pool_state.seq == place.store().standings().pools[place.name].head.seq
        assert decided(place)[-1].version == versions(place)[-1]
    assert faults(place) == []


def test_a_changed_catalogue_is_followed_before_anything_is_drawn(place):
    teacher, decider = place.make(refresh=1), place.open()
    decider.decide("0")
    teacher.add_action("new", row=[0.1, 0.1, 0.8])
    decider.decide("1")
    assert "new" in decider._journal.published.playing.actions
    teach(teacher, "1")
    assert decider.decide("2", uniform=0.999).action is not None
    assert faults(place) == []


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


def after(monkeypatch, kind, method, work):
    """Have something done once, right after a method has answered."""
    original = getattr(kind, method)

    def meanwhile(self, *given):
        answer = original(self, *given)
        monkeypatch.setattr(kind, method, original)
        work()
        return answer

    monkeypatch.setattr(kind, method, meanwhile)


def two(place, **given):
    """Pools of two processes that have decided before."""
    pools = place.make(**given), place.open(**({"clock": given["clock"]} if "clock" in given else {}))
    for pool in pools:
        pool.decide()
    return pools


def test_a_ticket_is_decided_once_where_one_brings_candidates_and_the_other_none(place, monkeypatch):
    """The one is decided in the journal, the other in a lane, while the journal does not look."""
    first, second = two(place)
    told = []
    after(monkeypatch, Writer, "look_up", lambda: told.append(second.decide("x")))
    with pytest.raises(Conflict, match="candidates"):
        first.decide("x", candidates=CANDIDATES)
    assert first.decide("x") == second.decide("x") == told[0]
    teach(first, "x")
    assert [event.ticket for event in decisions_of(place)].count("x") == 1
    assert faults(place) == []


def test_whoever_decides_in_a_lane_what_the_journal_is_deciding_waits_for_it(place, monkeypatch):
    first, second = two(place)
    append = PostgresBatch.append
    threads = ThreadPoolExecutor(1)
    others = []

    def slowly(batch, *given):
        append(batch, *given)
        batch.n_pending()  # what was appended is with the server, and not committed yet
        others.append(threads.submit(second.decide, "x"))
        time.sleep(0.3)
        assert not others[0].done()

    first.settle()
    monkeypatch.setattr(PostgresBatch, "append", slowly)
    made = first.decide("x", candidates=CANDIDATES)
    monkeypatch.setattr(PostgresBatch, "append", append)
    with pytest.raises(Conflict, match="candidates"):
        others[0].result()
    assert first.decide("x", candidates=CANDIDATES) == made
    assert faults(place) == []


def test_racing_for_one_ticket_with_and_without_candidates_decides_it_once(place):
    pools = [*two(place), place.open()]
    for n in range(30):
        with ThreadPoolExecutor(3) as threads:
            told = [threads.submit(pool.decide, f"t{n}") for pool in pools[:2]]
            told.append(threads.submit(pools[2].decide, f"t{n}", candidates=CANDIDATES))
        kept = [each.result() for each in told if each.exception() is None]
        assert all(isinstance(each.exception(), Conflict | None) for each in told)
        assert len(set(kept)) == 1
    tickets = [event.ticket for event in decisions_of(place)]
    assert len(tickets) == len(set(tickets)) == 32
    assert faults(place) == []


def test_a_report_that_comes_before_its_decision_is_in_the_journal_is_not_written(place, monkeypatch):
    """It would be of a decision without a number."""
    first, second = two(place)
    after(monkeypatch, Writer, "take_over", lambda: second.decide("x"))
    with pytest.raises(UnknownTicket):
        first.observe("x", "browse")
    teach(first, "x")
    assert faults(place) == []


def test_a_ticket_that_leaves_for_a_segment_between_look_and_write_is_not_decided_again(place, monkeypatch, tmp_path):
    first, second = two(place)
    told = first.decide("x")
    teach(first, "x")
    second.decide()
    second.settle()
    after(
        monkeypatch, lanes.Published, "is_level", lambda: compact(place.store(), place.name, 0, str(tmp_path), least=1)
    )
    assert second.decide("x") == told
    assert faults(place) == []


def test_a_copy_of_a_process_that_had_not_decided_yet_begins_another_lane(place):
    first, second = place.make(), place.open()
    second._journal._lock_free.lane.name = first._journal._lock_free.lane.name
    first.decide_many(3)
    first.settle()
    second.decide("x")
    assert second._journal._lock_free.lane.name != first._journal._lock_free.lane.name
    teach(first, "x")
    assert faults(place) == []


def test_a_lane_that_rested_for_long_is_not_gone_on_with(place, monkeypatch):
    """The journal may be about to forget where it ended."""
    first, second = two(place)
    first.settle()
    names = [first._journal._lock_free.lane.name]
    change(place.url, f"UPDATE lanes SET at = at - {2 * SILENT}")
    first._journal._lock_free.lane.at -= 2 * SILENT
    second.decide()
    begin = Writer.take_over

    def late(writer):
        monkeypatch.setattr(Writer, "take_over", begin)
        first.decide("x")
        begin(writer)

    monkeypatch.setattr(Writer, "take_over", late)
    second.settle()
    assert first._journal._lock_free.lane.name not in names
    teach(second, "x")
    assert faults(place) == []


def test_what_is_kept_of_lanes_is_forgotten_by_the_clock_of_the_store(place):
    now = [time.time()]
    first, second = two(place, clock=lambda: now[0])
    first.settle()
    now[0] += 400 * 86_400
    second.decide()
    second.settle()
    assert len(ask(place.url, f"SELECT 1 FROM %slanes WHERE {of_pool(place.name, 'lanes')}")) == 2
    change(place.url, f"UPDATE lanes SET at = at - {2 * SILENT}")
    first.decide()
    second.settle()
    assert len(ask(place.url, f"SELECT 1 FROM %slanes WHERE {of_pool(place.name, 'lanes')}")) == 1
    assert faults(place) == []


def test_a_batch_reads_nothing_of_lanes_that_nothing_waits_in(place):
    first, second = two(place)
    first.settle()
    second.decide("x")
    with place.store().batch(place.name) as batch:
        assert [row.ticket for row in batch.lane_rows()] == [None, "x"]


@pytest.mark.parametrize("lessons", [1, 9])
def test_lessons_that_are_too_few_for_another_version_cost_a_decision_nothing(place, monkeypatch, lessons):
    pool = place.make(refresh=10)
    for made in pool.decide_many(lessons):
        teach(pool, made.ticket)
    tries, once = [], lock_free.LockFree._try
    monkeypatch.setattr(lock_free.LockFree, "_try", lambda *given: tries.append(given) or once(*given))
    pool.decide()
    assert len(tries) == 1


def test_a_batch_of_the_same_process_that_comes_between_is_no_other_store(place, monkeypatch, caplog):
    """What this process knows is then ahead of what the decision's transaction has read."""
    pool = place.make(refresh=1)
    pool.decide_many([str(n) for n in range(10)])
    epoch, clock, n = pool._journal.played.epoch, journal.Journal.now, count()

    def late(own, view=None):
        if isinstance(view, LaneBatch):
            teach(pool, str(next(n)))
        return clock(own, view)

    monkeypatch.setattr(journal.Journal, "now", late)
    pool.decide("x")
    pool.decide("y")
    assert next(n) == 2, "neither was tried again"
    assert pool._journal.played.epoch == epoch
    assert not caplog.records
    assert faults(place) == []


def test_what_leaves_for_a_segment_while_a_decision_reads_it_is_read_there(place, monkeypatch, tmp_path, caplog):
    busy, idle = place.make(refresh=1), place.open()
    idle.decide("x")
    busy.decide_many([str(n) for n in range(5)])
    for n in range(5):
        teach(busy, str(n))
    after(monkeypatch, journal.Journal, "now", lambda: compact(place.store(), place.name, 0, str(tmp_path), least=1))
    assert idle.decide("y").ticket == "y"
    assert not caplog.records
    assert faults(place) == []


def test_where_others_are_faster_every_time_a_decision_takes_the_lock(place, monkeypatch):
    pool = place.make()
    pool.decide("x")
    monkeypatch.setattr(lock_free.LockFree, "_try", lambda *given: None)
    made = pool.decide("y")
    assert made == pool.decide("y")
    assert pool.decide("x").ticket == "x"
    assert in_lanes(place) == []
    assert faults(place) == []


def test_what_is_minted_while_playing_from_the_version_of_another_is_known_to_replay(place):
    first, second = two(place, refresh=1)
    teach(first, first.decide().ticket)
    made = second.decide(candidates=CANDIDATES)
    last = decisions_of(place)[-1]
    versions = {seq: decode(body) for seq, kind, *_, body, _ in place.events() if kind == "refresh"}
    assert last.ticket == made.ticket
    assert versions[last.version].epoch == first._journal.played.epoch
    assert faults(place) == []


def test_a_status_counts_what_is_taken_over_while_it_is_read(place, monkeypatch):
    first, second = two(place)
    first.decide_many(3)
    after(monkeypatch, journal.Journal, "_catch_up", second.settle)
    assert first.status().decisions == 5


def test_rows_go_on_though_somebody_has_a_ticket_forgotten(place):
    pool = place.make()
    pool.decide("first")
    pool.settle()
    pool.decide_many(["x", "y"])
    rows = pool.rows()
    assert next(rows)["ticket"] == "first"
    forget(place.open(), ["x"])
    assert [row["ticket"] for row in rows] == ["y"]


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
    assert {"a", "b"} < {row["ticket"] for row in first.rows()}
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


@pytest.mark.parametrize("of", ["ticket = 'b'", "lane <> ''"])
def test_a_decision_that_is_said_to_be_in_the_journal_and_is_not_is_found(place, of):
    pool = place.make()
    pool.decide_many(["a", "b"])
    change(place.url, f"UPDATE lanes SET ticket = NULL WHERE {of}")
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
        batch.add([row], b"", (0, batch.head().seq))
    assert not batch.kept
    assert "x" not in in_lanes(place)


def test_a_decision_is_on_disk_whatever_the_database_says(place):
    place.make()
    pool = sp.Pool.open(f"{place.url}&options=-csynchronous_commit%3Doff", place.name)
    pool.decide()
    for _ in range(5):
        [(written,)] = ask(place.url, "SELECT pg_current_wal_insert_lsn()")
        pool.decide()
        assert ask(place.url, f"SELECT pg_current_wal_flush_lsn() > '{written}'") == [(True,)]
    assert len(in_lanes(place)) == 6
    pool.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_where_transactions_begin_at_another_level_decisions_take_the_lock(place, level):
    """There the rule between lanes and the journal would not see what was committed meanwhile."""
    place.make()
    options = f"-cdefault_transaction_isolation%3D{level.replace(' ', '%5C%20')}"
    pool = sp.Pool.open(f"{place.url}&options={options}", place.name)
    made = [pool.decide(f"call {n}").ticket for n in range(3)]
    assert in_lanes(place) == []
    assert [row["ticket"] for row in pool.rows()] == made
    pool.close()
    assert faults(place) == []


def merged(events, random):
    """The same events in another order that keeps each lane's and the chain's, numbered anew."""
    lanes_of, chain = {}, []
    for event in events[1:]:
        (lanes_of.setdefault(event.lane, []) if isinstance(event, Decided) else chain).append(event)
    queues, done, decided = [chain, *lanes_of.values()], [events[0]], set()
    while any(queues):
        ready = [
            queue for queue in queues if queue and not (
                (isinstance(queue[0], Lesson) and queue[0].number not in decided)
                or (isinstance(queue[0], Decided) and queue[0].version > len(done))
            )
        ]  # fmt: skip
        event = random.choice(ready).pop(0)
        if isinstance(event, Decided):
            decided.add(event.number)
        done.append(event)
    return done


PLAIN = {"learner": sp.PooledGreedy(forgetting=0.9, exploration=0.2), "refresh": 10**6}
WITH_ROWS = {"learner": sp.SelfTuned(), "refresh": 12, "P": {"new": P, "known": P[::-1] * 0.5 + 1 / 6}}


@pytest.fixture(scope="module", params=[PLAIN, WITH_ROWS], ids=["plain", "requests"])
def played(request, database):
    """A pool that three processes have played, with lessons out of order."""
    place = PostgresPlace(database)
    pools = [place.make(**request.param), *(place.open() for _ in range(2))]
    rng = np.random.default_rng(5)

    def decide():
        asked = [{"context": "new"}, {"context": "known"}, {"candidates": CANDIDATES}][rng.integers(3)]
        return pools[rng.integers(3)].decide(**({} if request.param is PLAIN else asked)).ticket

    for pool in pools if request.param is WITH_ROWS else ():
        for _ in range(2):
            pool.decide(candidates=CANDIDATES)  # from here on they come again, and take no lock
    tickets = [decide() for _ in range(30)]
    for ticket in rng.permutation(tickets):
        teach(pools[rng.integers(3)], str(ticket), loss=float(rng.random()), state="browse")
        tickets.append(decide())
    events = [decode(body) for *_, body, _ in place.events()]
    assert sum(bool(event.lane) for event in events if isinstance(event, Decided)) >= 60
    place.close()
    return events


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_what_is_learnt_does_not_depend_on_how_lanes_interleave(played, random):
    def sums(events):
        rows = [(seq, None, None, None, None, encode(event), None) for seq, event in enumerate(events, start=1)]
        pool_state = fold_of(rows)
        return (
            pool_state.live_learner.dump(),
            pool_state.comparison.dump(),
            pool_state.counts,
            pool_state.decisions,
            sorted(pool_state.lanes.items()),
        )

    # Events that name a version by its place keep it: only decisions move.
    order = merged(played, random)
    assert Counter(map(type, order)) == Counter(map(type, played))
    assert sums(_renumbered(order, played)) == sums(played)


def _renumbered(order, original):
    """Versions have moved to other places: whoever names one names its new place."""
    import msgspec

    places = {id(event): seq for seq, event in enumerate(order, start=1)}
    moved = {seq: places[id(event)] for seq, event in enumerate(original, start=1) if isinstance(event, Refreshed)}
    numbers, done = {}, []
    for event in order:
        if isinstance(event, Decided):
            numbers[event.number] = len(numbers)
        if isinstance(event, Decided | Lesson):
            event = msgspec.structs.replace(event, version=moved[event.version], number=numbers[event.number])
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
