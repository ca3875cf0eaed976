"""A journal of each format ever written opens, goes on, and says from which event on the new rule plays it."""

import shutil
from pathlib import Path

import pytest

import statepool as sp
from live.places import ask, change, check_chain, raw_events
from statepool.live.errors import UnknownTicket
from statepool.live.forgetting import forget
from statepool.live.format import FORMAT, RULE
from statepool.live.replay import replay
from statepool.live.stores import open_store

STORED = Path(__file__).parent / "journals"
OF_POOL = "SELECT seq, body, hash FROM events WHERE pool = (SELECT id FROM pools WHERE name = '{}') ORDER BY seq"


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
    found, pool_state = replayed(url, name)
    assert not found.faults
    assert f"format-{pool_state.format}" in url
    assert pool_state.format < FORMAT
    assert pool_state.rule == min(pool_state.format, RULE)
    assert found.decisions == 40
    assert (found.redrawn, found.not_redrawn) == ((40, 0) if pool_state.rule == RULE else (0, 40))


@pytest.mark.parametrize("name", ["exp3", "tuned"])
def test_a_stored_journal_goes_on(url, name):
    stored = ask(url, OF_POOL.format(name))
    open_store(url).close()  # the tables are those of this release now, and the events in them the same
    assert ask(url, OF_POOL.format(name)) == stored
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
    found, pool_state = replayed(url, name)
    assert not found.faults
    assert (pool_state.format, pool_state.rule, found.rule_since) == (FORMAT, RULE, len(before) + 1)
    earlier = 0 if "format-3" in url or "format-4" in url else 40  # their rule is today's
    assert (found.not_redrawn, found.redrawn) == (earlier, 70 - earlier)


def test_a_journal_of_a_later_release_is_refused_in_one_sentence(url, monkeypatch):
    with sp.Pool.open(url, "exp3") as pool:
        pool.decide()
    monkeypatch.setattr("statepool.live.format.RULE", 1)
    with pytest.raises(ValueError, match="made by a later statepool"):
        sp.Pool.open(url, "exp3").decide()


@pytest.fixture
def sealed(tmp_path):
    """A journal of format 4 whose first 89 events are in two segments that find events by their tickets alone."""
    folder = shutil.copytree(STORED / "sealed-4", tmp_path / "sealed")
    url = f"sqlite:///{folder / 'sealed.db'}"
    change(url, f"UPDATE segments SET place = '{folder}'")
    return url


def test_segments_of_an_earlier_release_go_on(sealed):
    assert not replayed(sealed, "exp3")[0].faults
    with sp.Pool.open(sealed, "exp3") as pool:
        rows = {row["ticket"]: row for row in pool.rows()}
        assert len(rows) == 40
        assert all(pool.find(ticket) == row for ticket, row in rows.items())
        late = pool.find("own 9")  # decided in the first segment, resolved in the second, seen in the table
        assert (late["loss"], late["state"]) == (0.5, "buy")
        for overdue in pool.pending():
            pool.resolve(overdue.ticket, loss=0.25)
            pool.observe(overdue.ticket, "browse")
            assert pool.find(overdue.ticket)["loss"] == 0.25
        for n in range(30):
            pool.observe(pool.decide(f"new {n}").ticket, "browse")
    assert not replayed(sealed, "exp3")[0].faults


def test_what_is_forgotten_leaves_segments_of_an_earlier_release(sealed):
    with sp.Pool.open(sealed, "exp3") as pool:
        assert forget(pool, ["own 9", "own 21"]).events == 3 + 2
        with pytest.raises(UnknownTicket):
            pool.find("own 9")
        assert len(list(pool.rows())) == 40
    found, _ = replayed(sealed, "exp3")
    assert not found.faults
    assert found.forgotten == 5
