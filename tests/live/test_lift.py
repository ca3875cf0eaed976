"""Lift: the learner against the holdout, with an interval that holds at all times together."""

import numpy as np
import pytest

from live.places import STATES, play
from statepool.live.dashboard.page import page_of
from statepool.live.lift import Tally, lift


def tally(losses):
    losses = np.asarray(losses, float)
    return Tally(losses.size, float(losses.sum()))


def test_a_tally_has_a_mean():
    assert tally([0.0, 1.0, 1.0, 0.5]).mean == 0.625


def test_the_interval_holds_at_all_times_together():
    rng, share, misses = np.random.default_rng(0), 0.3, 0
    for _ in range(40):
        held = rng.random(600) < share
        losses = rng.random(600) < np.where(held, 0.5, 0.4)
        for n in (50, 100, 200, 400, 600):
            found = lift(tally(losses[:n][~held[:n]]), tally(losses[:n][held[:n]]), share)
            if found is not None and not found.low <= 0.1 <= found.high:
                misses += 1
                break
    assert misses <= 4  # 2 of 40 expected at most


def test_without_outcomes_of_both_there_is_none():
    assert lift(tally([]), tally([1]), 0.5) is None


def test_status_has_the_lift_of_decisions_since_the_holdout_changed(place):
    pool = place.make(holdout=0.5, holdout_action="a", update_every=5)
    play(pool, 40, loss=lambda n: 0.25)
    losses = pool.status().losses
    assert losses["learner"].count + losses["holdout"].count == 40
    assert pool.status().lift.value == pytest.approx(0, abs=1e-12)
    pool.change(holdout=0.25)
    assert pool.status().lift is None
    play(pool, 10)
    assert sum(each.count for each in pool.status().losses.values()) == 10


def test_with_a_window_only_decisions_older_than_it_count(place, clock):
    pool = place.make(holdout=0.5, window=100, clock=clock)
    play(pool, 10)
    clock.now = 50
    play(pool, 10)
    assert sum(each.count for each in pool.status().losses.values()) == 0
    clock.now = 100
    assert sum(each.count for each in pool.status().losses.values()) == 10
    clock.now = 160
    pool.decide_many(5)
    assert sum(each.count for each in pool.status().losses.values()) == 20


def test_decisions_whose_window_is_over_count_before_their_default_is_stored(place, clock):
    """A process that only reads must not show purchases alone; `expire` changes nothing that is shown."""
    pool = place.make(holdout=0.5, window=100, reward_bounds=(0, 10), clock=clock)
    for n in range(40):
        ticket = pool.decide().ticket
        pool.observe(ticket, STATES[0])
        if n % 4 == 0:
            pool.resolve(ticket, reward=10)
    clock.now = 101
    before = pool.status()
    assert before.pending == 30
    assert sum(each.count for each in before.losses.values()) == 40
    assert sum(each.total for each in before.losses.values()) == pytest.approx(30)
    page = page_of(pool)
    assert page["states"][0]["mean"] == pytest.approx(2.5)
    assert pool.expire() == 30
    after = pool.status()
    assert after.losses == before.losses
    assert after.lift == before.lift
    assert page_of(pool)["states"][0] == page["states"][0]
