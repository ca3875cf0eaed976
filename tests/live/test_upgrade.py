"""A journal of each format ever written opens, goes on, and says from which event on the new rule plays it."""

import shutil
from pathlib import Path

import pytest

import statepool as sp
from command_line import statepool
from live.places import ask, change, check_chain, raw_events
from statepool.live.errors import UnknownTicket
from statepool.live.forgetting import forget
from statepool.live.format import FORMAT, RULE
from statepool.live.replay import replay
from statepool.live.stores import open_store
from statepool.live.stores.migrations import steps

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


def reading(url, folder):
    """Commands that only read."""
    return [
        ("replay", url, "exp3"), ("keys", "list", "--store", url), ("keys", "calls", "--store", url),
        ("anchor", url, folder / "notes.jsonl"), ("serve", "--follow", "--port", "0", "--store", url),
    ]  # fmt: skip


def check_older_is_refused(commands):
    for command in commands:
        done = statepool(*command)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert "made by an earlier statepool" in done.stderr


def kept(folder):
    return [(each.name, each.read_bytes()) for each in sorted(folder.iterdir())]


def version(url):
    return ask(url, "SELECT max(version) FROM %smigrations")[0][0]


def test_what_only_reads_leaves_tables_of_an_earlier_release(url, tmp_path):
    before = kept(tmp_path)
    file = url.removeprefix("sqlite:///")
    check_older_is_refused([*reading(url, tmp_path), ("audit", file)])
    assert kept(tmp_path) == before


@pytest.mark.parametrize("command", ["keys add", "forget", "compact"])
def test_what_writes_in_any_case_brings_the_tables_up_to_date(url, tmp_path, command):
    given = {
        "keys add": ("keys", "add", "boss", "--role", "admin", "--store", url),
        "forget": ("forget", url, "exp3", "own 1"),
        "compact": ("compact", url),
    }
    assert statepool(*given[command]).returncode == 0
    assert version(url) == steps("sqlite")[-1][0]
    assert statepool(*reading(url, tmp_path)[0]).returncode == 0


def test_what_only_reads_leaves_tables_of_an_earlier_release_in_a_database(server, tmp_path, monkeypatch):
    url = server.emptied()
    with monkeypatch.context() as earlier:
        earlier.setattr("statepool.live.stores.postgres.steps", lambda store: steps(store)[:-1])
        open_store(url).close()
    before = version(url)
    check_older_is_refused([*reading(url, tmp_path), ("backup", url, tmp_path / "b.db")])
    assert (version(url), kept(tmp_path)) == (before, [])
    open_store(url).close()
    assert version(url) > before


def test_a_backup_of_an_earlier_release_leads_back_to_it(url, tmp_path):
    """Its tables, and those of the store, are as they were; restored it has those of this release."""
    schema = "SELECT sql FROM sqlite_schema ORDER BY name"
    before, tables, events = kept(tmp_path), ask(url, schema), ask(url, OF_POOL.format("exp3"))
    done = statepool("backup", url, tmp_path / "b.db", "--verify")
    assert (done.returncode, done.stderr, "every journal was replayed, and agrees" in done.stdout) == (0, "", True)
    assert [each for each in kept(tmp_path) if each[0] != "b.db"] == before, "also nothing else was left there"
    copy = f"sqlite:///{tmp_path}/b.db"
    assert (ask(copy, schema), ask(copy, OF_POOL.format("exp3"))) == (tables, events)
    assert statepool("restore", tmp_path / "b.db", f"sqlite:///{tmp_path}/r.db", "--verify").returncode == 0
    assert version(f"sqlite:///{tmp_path}/r.db") == steps("sqlite")[-1][0]


def test_what_is_only_old_is_not_called_damaged(url, tmp_path, caplog):
    """A snapshot of another release is not read any more, and nothing is wrong with it."""
    with sp.Pool.open(url, "exp3") as pool:
        pool.decide()
    assert [record.getMessage() for record in caplog.records if "damaged" in record.getMessage()] == []
    assert "is of another release" in caplog.text


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
