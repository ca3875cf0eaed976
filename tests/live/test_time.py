"""Time is the store's: a clock that is wrong in one process spoils nothing for the others."""

import time
from datetime import UTC, datetime

import pytest

from statepool.live import journal

MONTH = 30 * 86_400.0


def test_a_clock_a_month_ahead_expires_nothing_that_is_fresh(place):
    pool = place.make(expire_after=7 * 86_400, default_loss=1.0)
    pool.decide_many(5)
    ahead = place.open(clock=lambda: time.time() + MONTH)
    with pytest.raises(ValueError, match=r"clock: is 2[56]\d{5} seconds ahead of the store's, so nothing was expired"):
        ahead.expire()
    assert pool.n_pending == 5
    assert ahead.expire(now=time.time() + MONTH) == 5  # a simulation says so


def test_a_machine_whose_clock_is_wrong_decides_and_expires_by_the_store(place, monkeypatch):
    pool = place.make(expire_after=7 * 86_400, default_loss=1.0)
    before = datetime.now(UTC)
    pool.decide_many(5)
    for wrong in (MONTH, -MONTH):
        right = time.time
        monkeypatch.setattr(time, "time", lambda wrong=wrong, right=right: right() + wrong)
        other = place.open()
        other.decide()
        assert (other.expire(), pool.expire()) == (0, 0)
        monkeypatch.undo()
    assert all(abs((row["decided_at"] - before).total_seconds()) < 600 for row in pool.rows())


def test_a_clock_a_little_ahead_expires_by_the_store(place):
    pool = place.make(clock=lambda: time.time() + 30, expire_after=20, default_loss=1.0)
    place.open().decide("x")
    assert pool.expire() == 0


@pytest.mark.parametrize("seconds", [253_402_300_800.0, 1e15, -1e12, float("nan"), float("inf")])
def test_a_clock_that_no_date_can_say_is_refused_and_spoils_nothing(place, seconds):
    now = [1e6]
    pool = place.make(clock=lambda: now[0])
    pool.decide("before")
    now[0] = seconds
    with pytest.raises(ValueError, match=r"clock: says .* seconds since 1970, expected a time before the year 10000"):
        pool.decide("x")
    now[0] = 1e6
    pool.decide("after")
    assert [row["ticket"] for row in pool.rows()] == ["before", "after"]


@pytest.mark.parametrize(("seconds", "year"), [(3e11, 9999), (-1e11, 1)])
def test_a_journal_that_has_such_a_time_can_be_read(place, monkeypatch, seconds, year):
    monkeypatch.setattr(journal, "EARLIEST", -1e18)
    monkeypatch.setattr(journal, "LATEST", 1e18)
    pool = place.make(clock=lambda: seconds)
    pool.decide("x")
    assert [row["decided_at"].year for row in pool.rows()] == [year]
    assert pool.find("x")["decided_at"].year == year
