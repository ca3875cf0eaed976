"""A journal of each format ever written opens, goes on, and says from which event on the new rule plays it."""

import shutil
from pathlib import Path

import pytest

import statepool as sp
from live.places import check_chain, raw_events
from statepool.live.format import FORMAT, RULE
from statepool.live.replay import replay
from statepool.live.stores import open_store

STORED = Path(__file__).parent / "journals"


@pytest.fixture(params=sorted(path.stem for path in STORED.glob("*.db")))
def url(request, tmp_path):
    return f"sqlite:///{shutil.copy(STORED / f'{request.param}.db', tmp_path)}"


def replayed(url, name):
    store = open_store(url)
    try:
        return replay(store, name, redraw=True)
    finally:
        store.close()


@pytest.mark.parametrize("name", ["exp3", "tuned"])
def test_a_stored_journal_is_whole(url, name):
    found, fold = replayed(url, name)
    assert not found.faults
    assert f"format-{fold.format}" in url
    assert fold.format < FORMAT
    assert fold.rule == min(fold.format, RULE)
    assert found.decisions == 40
    assert (found.redrawn, found.not_redrawn) == ((40, 0) if fold.rule == RULE else (0, 40))


@pytest.mark.parametrize("name", ["exp3", "tuned"])
def test_a_stored_journal_goes_on(url, name):
    before = raw_events(url, name)
    with sp.Pool.open(url, name) as pool:
        open_tickets = [each.ticket for each in pool.pending()]
        old = {row["ticket"]: row for row in pool.rows()}
        assert pool.decide("own 1").action == old["own 1"]["action"]  # repeating an old call is still harmless
        for n in range(30):
            made = pool.decide()
            assert made.ticket not in old
            pool.observe(made.ticket, "browse")
            pool.resolve(made.ticket, loss=n % 2)
        for ticket in open_tickets:
            pool.resolve(ticket, loss=1.0)
    after = raw_events(url, name)
    assert after[: len(before)] == before
    check_chain(after)
    found, fold = replayed(url, name)
    assert not found.faults
    assert (fold.format, fold.rule, found.rule_since) == (FORMAT, RULE, len(before) + 1)
    earlier = 0 if "format-3" in url else 40  # its rule is today's
    assert (found.not_redrawn, found.redrawn) == (earlier, 70 - earlier)


def test_a_journal_of_a_later_release_is_refused_in_one_sentence(url, monkeypatch):
    with sp.Pool.open(url, "exp3") as pool:
        pool.decide()
    monkeypatch.setattr("statepool.live.format.RULE", 1)
    with pytest.raises(ValueError, match="made by a later statepool"):
        sp.Pool.open(url, "exp3").decide()
