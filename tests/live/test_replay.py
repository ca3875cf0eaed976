"""Replay: the journal rebuilt from its first event, and every kind of tampering found."""

import csv
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import msgspec
import numpy as np
import pytest

import statepool as sp
from command_line import statepool
from live.places import KINDS, raw_sqlite
from statepool.live.events import columns_of, decode, encode
from statepool.live.export import export
from statepool.live.hash_chain import chain
from statepool.live.integrity import Beside
from statepool.live.replay import replay
from statepool.live.stores import open_store
from statepool.live.stores.sqlite import SQLiteView

P = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
STATES = ["bounce", "browse", "buy"]
ROWS = {**dict(zip("abc", P, strict=True)), "d": np.array([0.0, 0.5, 0.5])}


def fill(url, learner=None, rounds=60, own=False, **settings):
    draws = np.random.default_rng(3)
    with sp.Pool.open(url, "home", P, ["a", "b", "c"], STATES, learner, seed=5, **settings) as pool:
        tickets = []
        for t in range(rounds):
            decision = pool.decide(f"ticket number {t}" if own else None)
            tickets.append(decision.ticket)
            pool.observe(decision.ticket, STATES[draws.choice(3, p=ROWS[decision.action])])
            if t >= 5 and t % 7:
                pool.resolve(tickets[t - 5], loss=float(draws.integers(2)))
            if t == 30:
                pool.add_action("d", ROWS["d"])
        return pool._fold().dump()


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/pool.db"


def replayed(url, redraw=True):
    store = open_store(url)
    try:
        return replay(store, "home", redraw)
    finally:
        store.close()


@pytest.mark.parametrize(
    "settings", [{}, {"learner": sp.StateEXP3(rate=0.3), "holdout": 0.2}, {"shares": {"a": (0.2, 0.5)}, "refresh": 4}]
)
def test_the_journal_gives_the_same_bits_and_the_same_draws(url, settings):
    live = fill(url, **settings)
    found, pool_state = replayed(url)
    assert not found.faults
    assert found.decisions == found.redrawn == 60
    assert pool_state.dump() == live


def tamper(url, statement):
    with closing(raw_sqlite(url)) as database:
        before = database.total_changes()
        database.execute(statement)
        assert database.total_changes() > before


TAMPERING = {
    "another body": ("UPDATE events SET body = (SELECT body FROM events WHERE seq = 9) WHERE seq = 12", "hash"),
    "a zeroed hash": ("UPDATE events SET hash = zeroblob(32) WHERE seq = 12", "hash"),
    "another kind": ("UPDATE events SET kind = 4 WHERE seq = (SELECT min(seq) FROM events WHERE kind = 2)", "columns"),
    "no kind": ("UPDATE events SET kind = 77 WHERE seq = 12", "kind 77"),
    "another decision": ("UPDATE events SET play = 77 WHERE seq = (SELECT min(seq) FROM events WHERE kind = 1)", "col"),
    "another ticket": ("UPDATE events SET ticket = 'forged' WHERE seq = 12", "columns"),
    "an event gone": ("DELETE FROM events WHERE seq = 40", "missing"),
    "a zeroed snapshot": ("UPDATE snapshots SET body = zeroblob(length(body))", "checksum"),
    "a snapshot ahead": ("UPDATE snapshots SET seq = 100000", "stored as that of event 100000"),
    "another count of decisions": ("UPDATE pools SET plays = plays + 1", "decisions, not"),
    "a zeroed head": ("UPDATE pools SET hash = zeroblob(32)", "head"),
    "another epoch in the head": ("UPDATE pools SET epoch = zeroblob(6)", "head"),
    "nothing pending": ("DELETE FROM pending", "pending"),
    "another pending ticket": (
        "UPDATE pending SET ticket = 'forged' WHERE play = (SELECT min(play) FROM pending)",
        "pending",
    ),
    "another count of pending": ("UPDATE pools SET pending = pending + 1", "pending"),
    "a later time of a pending one": (
        "UPDATE pending SET at = at + 1 WHERE play = (SELECT min(play) FROM pending)",
        "pending",
    ),
    "a tail cut off": ("DELETE FROM events WHERE seq > 100", "the store says"),
    "a tail cut off, and its head rewritten": (
        "DELETE FROM events WHERE seq > 100; UPDATE pools SET seq = 100,"
        " hash = (SELECT hash FROM events WHERE seq = 100),"
        " plays = (SELECT count(*) FROM events WHERE kind = 0)",
        "pending",
    ),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_found(url, what):
    fill(url)
    statement, fault = TAMPERING[what]
    tamper(url, statement)
    found, _ = replayed(url, redraw=False)
    assert any(fault in each for each in found.faults), found.faults


def forge(url, change_event):
    """Another journal of the same length whose chain is whole: only what the events say can give it away."""
    before = b""
    with closing(raw_sqlite(url)) as database:
        for seq, body in list(database.execute("SELECT seq, body FROM events ORDER BY seq")):
            event = change_event(seq, decode(body)) or decode(body)
            body = encode(event)
            before = chain(before, body)
            kind, *columns = columns_of(event)
            database.execute(
                "UPDATE events SET kind = ?, ticket = ?, play = ?, body = ?, hash = ? WHERE seq = ?",
                (KINDS.index(kind), *columns, body, before, seq),
            )
        database.execute("DELETE FROM snapshots; UPDATE pools SET hash = ?", (before,))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"kind": "outcome", "action": 1 << 40}, "not of the decision"),
        ({"kind": "decision", "probability": 0.0}, "probability"),
        ({"kind": "decision", "probability": float("nan")}, "probability"),
        ({"kind": "state", "state": 99}, "cannot have happened"),
    ],
    ids=str,
)
def test_a_forged_chain_is_found(url, changes, fault):
    fill(url)

    def change_event(seq, event):
        if event.kind == changes["kind"] and seq > 60:
            return msgspec.structs.replace(event, **{name: value for name, value in changes.items() if name != "kind"})
        return None

    forge(url, lambda seq, event: None)
    assert not replayed(url, redraw=False)[0].faults
    forge(url, change_event)
    found, _ = replayed(url, redraw=False)
    assert any(fault in each for each in found.faults), found.faults


def spoil_index(path, ticket):
    """One byte of a ticket, in the index and not in the table: a look-up does not find the ticket any more."""
    content = bytearray(path.read_bytes())
    places = [place for place in range(len(content)) if content.startswith(ticket, place)]
    with closing(raw_sqlite(f"sqlite:///{path}")) as database:
        size = database.pragma("page_size")
    for place in places:
        page = place // size * size
        if content[page] == 10:  # a leaf of an index: also of a table without row numbers
            spoilt = bytearray(content)
            spoilt[place] ^= 1
            path.write_bytes(spoilt)
            yield place


def check_every_copy_of_a_ticket_is_read(url):
    """Whichever of the places that hold a ticket is spoilt, replay says so."""
    path = Path(url.removeprefix("sqlite:///"))
    fill(url, own=True)
    with closing(raw_sqlite(url)) as database:
        ticket = database.execute(
            "SELECT ticket FROM events WHERE ticket IS NOT NULL AND seq > 50 LIMIT 1"
        ).get.encode()
        database.execute("VACUUM")  # no traces of rows that were deleted or moved, which nobody reads
        database.pragma("wal_checkpoint(TRUNCATE)")
    n_spoilt = 0
    for _ in spoil_index(path, ticket):
        n_spoilt += 1
        assert replayed(url, redraw=False)[0].faults, "a ticket was spoilt and nobody noticed"
        for leftover in path.parent.glob(path.name + "-*"):
            leftover.unlink()
    assert n_spoilt >= 2


def test_a_spoilt_index_of_tickets_is_found(url):
    check_every_copy_of_a_ticket_is_read(url)


def test_replaying_only_the_chain_is_caught(url, monkeypatch):
    """The mutant of the release before, which looked at nothing but the events and the snapshot."""
    monkeypatch.setattr(Beside, "check", lambda self, piece: [])
    monkeypatch.setattr(Beside, "finish", lambda self: [])
    monkeypatch.setattr(SQLiteView, "damage", lambda self: [])
    with pytest.raises(AssertionError, match="nobody noticed"):
        check_every_copy_of_a_ticket_is_read(url)


def test_what_is_sure_is_said(url):
    fill(url)
    found, pool_state = replayed(url)
    with closing(raw_sqlite(url)) as database:
        ((seq, digest, body),) = database.execute("SELECT seq, hash, body FROM events ORDER BY seq DESC LIMIT 1")
    assert (found.sure_until, found.last_hash) == (seq, digest.hex()) == (pool_state.seq, found.last_hash)
    assert found.last_at == datetime.fromtimestamp(decode(body).at / 1e6, UTC).isoformat()
    tamper(url, "UPDATE events SET hash = zeroblob(32) WHERE seq = 41")
    assert replayed(url)[0].sure_until == 40


def test_a_journal_cut_short_with_all_that_belongs_to_it_needs_a_note_of_its_hash(url):
    """The store as it was a while ago agrees with itself; whoever noted a later hash can tell."""
    fill(url, rounds=30)
    earlier = Path(url.removeprefix("sqlite:///")).read_bytes()
    noted = replayed(url)[0].last_hash
    fill(url, rounds=30)
    assert statepool("replay", url, "home", "--expect", noted).returncode == 0
    later = replayed(url)[0].last_hash
    Path(url.removeprefix("sqlite:///")).write_bytes(earlier)
    assert statepool("replay", url, "home", "--expect", noted).returncode == 0
    done = statepool("replay", url, "home", "--expect", later)
    assert done.returncode == 1
    assert "no event has the hash that was expected" in done.stdout
    for part in ("zz", "", noted[:-1], noted[:62], noted + "00", " ".join(noted)):
        refused = statepool("replay", url, "home", "--expect", part)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert "64 hexadecimal digits" in refused.stderr


def test_a_forged_decision_is_found_by_drawing_again(url, monkeypatch):
    from statepool.live import luck, writer

    fill(url, sp.StateEXP3(rate=0.1), rounds=20)
    monkeypatch.setattr(writer, "uniform_of", lambda *of_ticket: 1 - luck.uniform_of(*of_ticket))
    with sp.Pool.open(url, "home") as pool:
        for _ in range(40):
            pool.decide()
    found, _ = replayed(url)
    assert any("draws another action" in fault for fault in found.faults)
    assert not replayed(url, redraw=False)[0].faults


def test_the_command(url, tmp_path):
    fill(url)
    done = statepool("replay", url, "home", "--redraw", "--export", tmp_path / "rows.parquet", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["agrees"]
    assert found["exported"] == 60
    rows = duckdb.sql(f"SELECT action, count(*), avg(loss) FROM '{tmp_path}/rows.parquet' GROUP BY 1").fetchall()
    assert sum(count for _, count, _ in rows) == 60
    tamper(url, "UPDATE events SET hash = zeroblob(32) WHERE seq = 12")
    done = statepool("replay", url, "home")
    assert done.returncode == 1
    assert "do NOT agree" in done.stdout


@pytest.mark.parametrize("arguments", [("home",), ("home", "--export", "rows.xlsx")])
def test_bad_input_is_one_sentence(url, arguments):
    asked = arguments if len(arguments) > 1 and fill(url) else ("nowhere",)
    done = statepool("replay", url, *asked)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "expected" in done.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_contexts_and_rewards_are_exported(url, tmp_path, kind):
    told = {"new": [[0.5, 0.5], [0.1, 0.9]], "known": [[0.3, 0.7], [0.8, 0.2]]}
    with sp.Pool.open(
        url, "home", told, ["a", "b"], ["x", "y"], contexts=list(told), reward_bounds=(0, 100), seed=1
    ) as pool:
        decisions = pool.decide_many(200, contexts=["new", "known"] * 100)
        pool.observe_many({each.ticket: "xy"[n % 2] for n, each in enumerate(decisions)})
        pool.resolve_many(rewards={each.ticket: 19.9 for each in decisions[:150]})
        pool.resolve(decisions[150].ticket, loss=0.5)
        row = pool.find(decisions[0].ticket)
        rows = list(pool.rows())
    assert (row["reward"], row["context"]) == (19.9, "new")
    assert rows[150]["reward"] is None
    file = tmp_path / f"rows.{kind}"
    assert statepool("replay", url, "home", "--export", file).returncode == 0
    found = duckdb.sql(f"SELECT context, reward FROM '{file}'").fetchall()
    assert found == [(row["context"], row["reward"]) for row in rows]
    audited = sp.audit_log(str(file), context="context", horizon=100)
    assert audited.personal is not None


def test_csv_holds_what_rows_say(url, tmp_path):
    fill(url)
    with sp.Pool.open(url, "home") as pool:
        rows = list(pool.rows())
    assert export(rows, tmp_path / "rows.csv") == 60
    with (tmp_path / "rows.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [row["ticket"] for row in read] == [row["ticket"] for row in rows]
    assert [float(row["probability"]) for row in read] == [row["probability"] for row in rows]
    assert [row["loss"] or None for row in read] == [None if row["loss"] is None else str(row["loss"]) for row in rows]
