"""What the page counts: level with the journal, bounded whatever its length."""

import numpy as np
import pytest

from live.dashboard.watching import open_pool, play
from statepool.dimension import effective
from statepool.live.dashboard import measures as module
from statepool.live.dashboard.buckets import MOST, REACHED, SEEN, SQUARES, Buckets
from statepool.live.dashboard.curves import curves_of, delays_of, median_of
from statepool.live.dashboard.lessons import Lessons
from statepool.live.dashboard.measures import Measures
from statepool.live.dashboard.page import PageCache
from statepool.live.dashboard.reading import top

SECOND = 1_000_000


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


def follow(pool, measures=None):
    pool_state = pool._fold()
    measures = measures or Measures(len(pool_state.catalogue.states), pool_state.catalogue.row)
    with pool._journal.store.view(pool.name) as view:
        measures.follow(view)
    return measures


def test_buckets_stay_few_and_lose_nothing_as_time_goes_on():
    buckets = Buckets(1)
    for second in range(5000):
        buckets.at(second * SECOND).tallies["decisions"] += 1
    assert len(list(buckets)) <= MOST
    assert buckets.total().tallies["decisions"] == 5000
    assert 5000 / buckets.width <= MOST < 2 * 5000 / buckets.width


def test_buckets_let_go_of_what_is_days_old():
    buckets = Buckets(1)
    buckets.at(0).tallies["decisions"] += 1
    buckets.at(10**13).tallies["decisions"] += 1
    assert [bucket.tallies["decisions"] for bucket in buckets] == [1]


def test_a_clock_that_is_behind_makes_no_bucket_out_of_order():
    buckets = Buckets(1)
    for second in (100, 97, 101, 3):
        buckets.at(second * SECOND).tallies["decisions"] += 1
    assert [bucket.number for bucket in buckets] == [100, 101]
    assert buckets.total().tallies["decisions"] == 4


def test_in_pieces_or_at_once_the_measures_are_the_same(tmp_path):
    clock = Clock()
    pool = open_pool(tmp_path, clock=clock)
    pieces = follow(pool)
    for seed in range(5):
        play(pool, 40, seed=seed)
        clock.now += 1
        follow(pool, pieces)
    whole = follow(pool)
    assert pieces.events == whole.events == 5 * 40 * 3
    for left, right in zip(pieces.buckets, whole.buckets, strict=True):
        assert left.tallies == right.tallies
        assert np.array_equal(left.by_state, right.by_state)
        assert np.array_equal(left.delays, right.delays)
    assert np.array_equal(pieces.lessons.losses, whole.lessons.losses)


def test_counts_are_the_folds(tmp_path):
    clock = Clock()
    pool = open_pool(tmp_path, clock=clock, expire_after=10, default_loss=1.0, holdout=0.3)
    play(pool, 50)
    late = pool.decide_many(7)
    pool.observe(late[0].ticket, "s0")
    clock.now += 11
    assert pool.expire() == 7
    pool.resolve(late[0].ticket, loss=0.25)
    measures, pool_state = follow(pool), pool._fold()
    tallies = measures.buckets.total().tallies
    assert tallies["decisions"] == pool_state.decisions == 57
    assert [tallies[name] for name in ("states", "outcomes", "expiries", "corrections")] == [51, 50, 7, 1]
    assert tallies["learner"] == pool_state.tallies["learner"].count
    assert tallies["holdout"] == pool_state.tallies["holdout"].count > 0
    assert measures.lessons.losses[-1] == 0.25, "the correction replaced the default"


def test_a_long_journal_is_read_from_near_its_end_only(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 100)
    pool = open_pool(tmp_path)
    for seed in range(4):
        play(pool, 50, seed=seed)
    measures = follow(pool)
    assert measures.events <= 100
    play(pool, 10)
    before = measures.events
    follow(pool, measures)
    assert measures.events == before + 30, "then it goes on"
    play(pool, 80)
    follow(pool, measures)
    assert measures.events <= 100, "who was away for long starts anew"


def test_delays_of_decisions_before_the_window_are_looked_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 20)
    clock = Clock()
    pool = open_pool(tmp_path, clock=clock)
    made = pool.decide_many(60)
    clock.now += 3
    for each in made[:15]:
        pool.resolve(each.ticket, loss=0.0)
    delays = follow(pool).buckets.total().delays
    assert delays.sum() == 15
    assert delays[int(np.log2(3000))] == 15
    assert delays_of(delays)["edges"] == [2.048, 4.096]
    assert 2.048 < median_of(delays) < 4.096


def test_dimension_of_what_was_played_is_v_of_the_empirical_play(tmp_path):
    pool = open_pool(tmp_path, n_actions=5, n_states=4, clock=Clock())
    made = play(pool, 300)
    labels = pool._fold().catalogue.actions
    share = np.array([sum(each.action == label for each in made) for label in labels]) / len(made)
    P = np.array([pool._fold().catalogue.row(number) for number in range(5)])
    measures = follow(pool)
    sums = measures.buckets.total().by_state
    assert (sums[SQUARES] / sums[REACHED]).sum() == pytest.approx(effective(P, share), abs=1e-12)
    assert curves_of(measures, 0)["dimension"][-1] == pytest.approx(effective(P, share), abs=1e-12)
    assert sums[SEEN].sum() == 300


def test_dimension_now_is_that_of_the_version(tmp_path):
    pool = open_pool(tmp_path, n_actions=5, n_states=4)
    play(pool, 100)
    model = PageCache(pool).model()
    P = np.array([pool._fold().catalogue.row(number) for number in range(5)])
    assert model.dimension == pytest.approx(effective(P, pool._journal.playing.version.distribution), abs=1e-9)


def test_in_flight_over_time_ends_at_what_waits_now(tmp_path):
    clock = Clock()
    pool = open_pool(tmp_path, clock=clock)
    first = pool.decide_many(30)
    clock.now += 5
    for each in first[:10]:
        pool.resolve(each.ticket, loss=1.0)
    clock.now += 5
    pool.decide_many(4)
    curves = curves_of(follow(pool), pool.n_pending)
    assert curves["in_flight"] == [30, 20, 24]


def test_looking_does_not_change_what_is_played(tmp_path):
    clock = Clock()
    watched, alone = open_pool(tmp_path, "watched", clock=clock), open_pool(tmp_path, "alone", clock=clock)
    for seed in range(6):
        for pool in (watched, alone):
            play(pool, 20, seed=seed)
        tickets = [pool.decide().ticket for pool in (watched, alone)]
        PageCache(watched).model()
        for pool, ticket in zip((watched, alone), tickets, strict=True):
            pool.observe(ticket, "s0")
        clock.now += 30
        PageCache(watched).model()
    assert [row["action"] for row in watched.rows()] == [row["action"] for row in alone.rows()]
    assert [row["probability"] for row in watched.rows()] == [row["probability"] for row in alone.rows()]


def test_a_process_that_only_looks_sees_what_the_others_taught(tmp_path):
    writer = open_pool(tmp_path, P=[[1.0, 0.0], [0.0, 1.0]])
    reader = open_pool(tmp_path, P=[[1.0, 0.0], [0.0, 1.0]])
    page = PageCache(reader)
    assert page.model().decisions == 0
    for seed in range(10):
        play(writer, 40, lost=lambda action, state: float(state == "s0"), seed=seed)
    page._at = 0.0
    model = page.model()
    assert model.decisions == 400
    assert model.actions[0].label == "a1"
    assert model.actions[0].probability > 0.9
    assert reader._journal.playing is None, "nothing was journaled by looking"


def test_of_the_largest_the_first_of_equals():
    assert top(np.array([0.1, 0.4, 0.1, 0.4]), 3) == [1, 3, 0]
    assert top(np.array([1.0]), 20) == [0]


def test_lessons_keep_the_latest():
    lessons = Lessons(kept=3)
    for play_ in range(5):
        lessons.add(play_, 0, 0, 0, play_ / 10)
    assert sorted(lessons.column("number")) == [2, 3, 4]
    lessons.correct(3, 0.9)
    assert sorted(lessons.losses) == [0.2, 0.4, 0.9]
