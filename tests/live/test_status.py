"""Readings of a pool: values of one moment, and the only way in for whoever watches."""

import re
from pathlib import Path

import numpy as np
import pytest

import statepool
import statepool as sp

P = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]
CORE = {"live/pool.py", "live/journal.py"}


def open_pool(place, **settings):
    return place.open(P=P, actions=["a", "b", "c"], states=["left", "cart"], seed=1, **settings)


def teach(pool, n):
    for _ in range(n):
        made = pool.decide()
        pool.observe(made.ticket, "cart" if made.action == "b" else "left")
        pool.resolve(made.ticket, loss=float(made.action == "a"))


def test_nobody_outside_the_core_reaches_into_a_journal():
    package = Path(statepool.__file__).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name not in CORE:
            found = re.search(r"\b(?!self\b)\w+\._journal\b|\.read\(\)\.catalogue", path.read_text())
            assert found is None, f"{name}: {found and found.group()}"


def test_what_is_read_does_not_move(sqlite):
    pool = open_pool(sqlite)
    teach(pool, 5)
    status, listing = pool.status(), pool.listing()
    bits = status.playing.distribution.tobytes(), listing.rows.tobytes(), dict(status.distribution)
    pool.add_action("d", [0.1, 0.9])
    pool.reweight_action("a", [0.4, 0.6])
    teach(pool, 30)
    assert (status.playing.distribution.tobytes(), listing.rows.tobytes(), dict(status.distribution)) == bits
    assert status.actions == listing.actions == ("a", "b", "c")
    assert (status.decisions, status.losses["learner"].count) == (5, 5)
    for array in (status.playing.distribution, status.playing.numbers, listing.rows, *status.sums.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_reading_after_a_change_has_what_changed(sqlite):
    pool = open_pool(sqlite)
    before = pool.status(), pool.listing()
    assert pool.listing() is before[1], "nothing has changed, so nothing is copied again"
    pool.add_action("d", [0.1, 0.9])
    pool.retire_action("a")
    status, listing = pool.status(), pool.listing()
    assert list(status.distribution) == ["b", "c", "d"]
    assert listing.actions == status.actions == ("a", "b", "c", "d")
    assert listing.rows[3].tolist() == [0.1, 0.9]
    assert status.changes == before[0].changes + 2


def test_a_status_has_the_version_that_is_played(sqlite):
    pool = open_pool(sqlite)
    teach(pool, 20)
    made = pool.decide()
    assert pool.status().distribution[made.action] == made.probability


def test_a_learnt_map_is_read_as_it_was_played_by(sqlite):
    pool = sqlite.open(actions=["a", "b"], states=["left", "cart"], learner=sp.SelfTuned(learn_map=True), seed=1)
    teach(pool, 40)
    learnt = pool.status().playing.learnt
    assert learnt.shape == (2, 2)
    assert learnt.sum(axis=0) == pytest.approx(np.ones(2))
    assert learnt[1, 1] > 0.7, "b was always seen in a cart"


def test_vitals_make_no_play(sqlite, monkeypatch):
    pool = open_pool(sqlite, expire_after=60.0, default_loss=1.0)
    teach(pool, 3)
    other = sqlite.open()
    monkeypatch.setattr(
        "statepool.live.pool_state.PoolState.make_version", lambda pool_state: pytest.fail("made a version")
    )
    vitals = other.vitals()
    assert (vitals.n_actions, vitals.counts["outcome"], vitals.settings.expire_after) == (3, 3, 60.0)
    assert (vitals.version_at, vitals.versions_made) == (None, 0)
    assert pool.vitals().versions_made > 0


def test_what_is_printed_has_no_raw_times(sqlite):
    pool = open_pool(sqlite)
    teach(pool, 2)
    for reading in (pool.status(), pool.vitals()):
        assert not re.search(r"\d{12}", repr(reading))
