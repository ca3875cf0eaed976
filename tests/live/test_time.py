"""Windows, defaults and clocks."""

import pytest

import statepool as sp
from live.places import play
from statepool.live.errors import Conflict

EXPOSED, HELD = sp.PooledGreedy(exploration=0.1), sp.StateEXP3(rate=0.3)


def test_a_decision_without_an_outcome_gets_the_default_when_its_window_is_over(place, clock):
    pool = place.make(window=100, reward_bounds=(0, 10), default_reward=1.0, clock=clock)
    pool.decide("old")
    clock.now = 60
    pool.decide("young")
    clock.now = 100
    assert pool.expire() == 1
    assert pool.expire() == 0
    row = pool.find("old")
    assert (row["reward"], row["loss"], row["expired"]) == (1.0, 0.9, True)
    assert pool.find("young")["loss"] is None
    assert pool.status().pending == 1


def test_without_a_default_it_is_the_worst_bound(place, clock):
    assert place.make(window=1, clock=clock).decide("1")
    clock.now = 2
    place.opened[0].expire()
    assert place.opened[0].find("1")["loss"] == 1.0


@pytest.mark.parametrize("learner", [HELD, EXPOSED], ids=["held", "exposed"])
def test_a_late_outcome_replaces_the_default(place, clock, learner):
    pool = place.make(learner, window=10, clock=clock, update_every=1)
    pool.decide("1", uniform=0.5)
    pool.observe("1", "browse")
    clock.now = 11
    pool.expire()
    defaulted = pool.policy()
    clock.now = 12
    pool.resolve("1", loss=0.0)
    row = pool.find("1")
    assert (row["loss"], row["expired"]) == (0.0, False)
    if learner is HELD:
        assert pool.policy() != defaulted, "the default was learnt and is taken back"
    with pytest.raises(Conflict):
        pool.resolve("1", loss=0.5)
    assert pool.replay().ok


def test_a_held_outcome_is_learnt_when_its_window_closes(place, clock):
    pool = place.make(HELD, window=10, clock=clock, update_every=1)
    pool.decide("1", uniform=0.5)
    pool.resolve("1", loss=1.0)
    pool.observe("1", "browse")
    even = pool.policy()
    clock.now = 9
    pool.learn()
    assert pool.policy() == even
    clock.now = 10
    assert pool.learn()
    assert pool.policy() != even
    assert pool.expire() == 0
    assert pool.replay().ok


def test_with_exposure_an_outcome_is_learnt_when_it_comes(place, clock):
    pool = place.make(EXPOSED, window=10, clock=clock, update_every=1)
    pool.decide("1", uniform=0.5)
    pool.observe("1", "browse")
    clock.now = 1
    version = pool.status().version
    pool.resolve("1", loss=0.0)
    assert pool.status().version == version + 1
    assert pool.status().counts["unlearned"] == 0
    assert pool.replay().ok


def test_a_clock_that_is_set_back_and_forth_loses_no_expiry(place, clock):
    clock.now = 1e6
    pool = place.make(window=100, clock=clock)
    pool.decide("1")
    clock.now += 86_400
    assert pool.expire() == 1
    pool.decide("in the future")
    clock.now = 1e6 + 10
    pool.decide("2")
    assert pool.expire() == 0
    clock.now += 101
    assert pool.expire() == 1
    clock.now += 86_400
    assert pool.expire() == 1
    assert pool.status().pending == 0
    assert pool.replay().ok


def test_expiry_needs_a_window(place):
    with pytest.raises(ValueError, match="no window"):
        place.make().expire()


def test_many_decisions_expire(place, clock):
    pool = place.make(window=10, clock=clock)
    pool.decide_many(2_500)
    clock.now = 20
    assert pool.expire() == 2_500
    assert pool.learn() is False, "without a state there is nothing to learn"
    play(pool, 3)
    assert pool.learn()
    assert pool.replay().ok


def test_a_version_is_due_after_so_many_reports(place, clock):
    pool = place.make(update_every=4, clock=clock)
    play(pool, 3)
    assert pool.status().version == 2
    assert pool.status().counts["unlearned"] == 2


def test_a_clock_set_back_past_the_window_loses_no_expiry(place, clock):
    clock.now = 1e6
    pool = place.make(window=100, clock=clock)
    pool.decide("before")
    clock.now += 5_000
    assert pool.expire() == 1
    clock.now -= 4_000  # further than the window, and nobody expires anything for a long time
    pool.decide("after")
    clock.now += 10_000
    assert pool.expire() == 1
    assert pool.status().pending == 0
    assert pool.replay().ok


def test_reports_that_came_before_a_clock_was_set_back_are_learnt_at_once(place, clock):
    clock.now = 1e6
    pool = place.make(clock=clock, update_every=1_000)
    play(pool, 2)
    clock.now -= 86_400
    assert pool.learn()
    assert pool.status().counts["unlearned"] == 0
    assert pool.replay().ok
