"""The lift's interval over simulated pools, watched after every outcome."""

import numpy as np
import pytest

import lift


def check(row):
    assert row.wrong <= 0.05
    assert all(ratio <= 2 for ratio in row.widths)


@pytest.mark.parametrize("kind", lift.KINDS)
def test_a_few_pools(kind):
    check(lift.measure(kind, 40))


@pytest.mark.soak
@pytest.mark.parametrize("kind", lift.KINDS)
def test_many_pools(kind):
    row = lift.measure(kind, 2_000)
    check(row)
    assert row.newcombe_wrong is None or row.newcombe_wrong > 0.05, "else the pools are too easy to tell"


def test_an_interval_of_fixed_samples_is_caught(monkeypatch):
    """The check can fail: watched, Newcombe's interval is wrong too often."""

    def fixed(learner, holdout, share):
        if not (learner.count and holdout.count):
            return None
        counts = np.array([learner.count, holdout.count], float)
        low, high = lift.newcombe(counts, counts * [learner.mean, holdout.mean])
        return lift.Lift(holdout.mean - learner.mean, float(low), float(high))

    monkeypatch.setattr(lift, "lift", fixed)
    monkeypatch.setattr(lift, "LEVEL", -np.inf)  # ask it after every outcome
    monkeypatch.setattr(lift, "settings", lambda rng: (200, 0.3, 0.5))
    assert lift.measure("A/A", 20).wrong > 0.05


def test_newcombe_is_the_published_one():
    """Newcombe 1998, Table II, example (a): 56 of 70 and 48 of 80."""
    low, high = lift.newcombe(np.array([80.0, 70.0]), np.array([48.0, 56.0]))
    assert (round(float(low), 4), round(float(high), 4)) == (0.0524, 0.3339)
