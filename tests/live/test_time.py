"""Windows, defaults and clocks."""

import math
import threading

import pytest
import sqlalchemy as sa

import statepool as sp
from live.places import Place, play
from statepool.live import decisions
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


def test_another_process_uses_a_new_window_at_once(place, clock):
    pool, other = (place.make(window=100, clock=clock) for _ in range(2))
    pool.decide("1")
    other.change(window=1_000)
    clock.now = 200
    assert pool.expire() == 0
    clock.now = 1_000
    assert pool.expire() == 1


def test_an_expiry_that_another_process_does_not_finish_loses_none(server, clock, monkeypatch):
    """The other process has stored the first defaults when this one wants to, and is killed before the rest."""
    monkeypatch.setattr(decisions, "EXPIRED_AT_ONCE", 5)
    place = Place(server.url())
    pool = place.make(window=100, clock=clock)
    clock.now = 1e6
    pool.decide_many(10)
    clock.now += 1_000
    tables, stored, go = pool.database.tables, threading.Event(), threading.Event()

    def store_some(connection):
        mine = sa.select(tables.decisions.c.id).where(tables.decisions.c.pool == pool.definition.id)
        ids = connection.execute(mine.order_by("decided_at").limit(5)).scalars().all()
        default = {"kind": "expiry", "pool": pool.definition.id, "loss": 1.0, "reported": 1.0, "is_reward": False}
        rows = [default | {"decision": each, "at": clock.now, "due": -math.inf} for each in ids]
        connection.execute(sa.insert(tables.reports), rows)
        stored.set()
        go.wait(10)

    other = threading.Thread(target=pool.database.write, args=(store_some,))
    other.start()
    assert stored.wait(10)
    expiring = threading.Thread(target=pool.expire)
    expiring.start()
    expiring.join(0.5)
    go.set()
    other.join()
    expiring.join()
    pool.expire()
    assert pool.status().pending == 0
    place.close()
