"""Replay: the journal rebuilt from its first event, and every kind of tampering found."""

import csv
import json
import subprocess
import sys
from contextlib import closing

import duckdb
import numpy as np
import pytest

import statepool as sp
from live.places import raw_sqlite
from statepool.live.export import export
from statepool.live.replay import replay
from statepool.live.stores import open_store

P = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
STATES = ["bounce", "browse", "buy"]
ROWS = {**dict(zip("abc", P, strict=True)), "d": np.array([0.0, 0.5, 0.5])}


def fill(url, learner=None, rounds=60, **settings):
    draws = np.random.default_rng(3)
    with sp.Pool.open(url, "home", P, ["a", "b", "c"], STATES, learner, seed=5, **settings) as pool:
        tickets = []
        for t in range(rounds):
            decision = pool.decide()
            tickets.append(decision.ticket)
            pool.observe(decision.ticket, STATES[draws.choice(3, p=ROWS[decision.action])])
            if t >= 5 and t % 7:
                pool.resolve(tickets[t - 5], loss=float(draws.integers(2)))
            if t == 30:
                pool.add_action("d", ROWS["d"])
        return pool.fold().dump()


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
    found, fold = replayed(url)
    assert not found.faults
    assert found.decisions == found.redrawn == 60
    assert fold.dump() == live


def tamper(url, statement):
    with closing(raw_sqlite(url)) as database:
        database.execute(statement)
        assert database.changes() == 1


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE events SET body = (SELECT body FROM events WHERE seq = 9) WHERE seq = 12", "hash"),
        ("UPDATE events SET hash = zeroblob(32) WHERE seq = 12", "hash"),
        ("UPDATE events SET at = at + 1 WHERE seq = 12", "columns"),
        ("DELETE FROM events WHERE seq = 40", "missing"),
        ("UPDATE snapshots SET body = zeroblob(length(body))", "checksum"),
        ("UPDATE pools SET plays = plays + 1", "plays"),
    ],
)
def test_tampering_is_found(url, statement, fault):
    fill(url)
    tamper(url, statement)
    found, _ = replayed(url, redraw=False)
    assert any(fault in each for each in found.faults), found.faults


def test_a_forged_decision_is_found_by_drawing_again(url, monkeypatch):
    from statepool.live import luck, requests

    fill(url, sp.StateEXP3(rate=0.1), rounds=20)
    monkeypatch.setattr(requests, "uniform_of_play", lambda seed, play: 1 - luck.uniform_of_play(seed, play))
    with sp.Pool.open(url, "home") as pool:
        for _ in range(40):
            pool.decide()
    found, _ = replayed(url)
    assert any("draws another action" in fault for fault in found.faults)
    assert not replayed(url, redraw=False)[0].faults


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-c", "from statepool.cli import main; main()", "replay", *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def test_the_command(url, tmp_path):
    fill(url)
    done = command(url, "home", "--redraw", "--export", tmp_path / "rows.parquet", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["agrees"]
    assert found["exported"] == 60
    rows = duckdb.sql(f"SELECT action, count(*), avg(loss) FROM '{tmp_path}/rows.parquet' GROUP BY 1").fetchall()
    assert sum(count for _, count, _ in rows) == 60
    tamper(url, "UPDATE events SET hash = zeroblob(32) WHERE seq = 12")
    done = command(url, "home")
    assert done.returncode == 1
    assert "do NOT agree" in done.stdout


@pytest.mark.parametrize("arguments", [("home",), ("home", "--export", "rows.xlsx")])
def test_bad_input_is_one_sentence(url, arguments):
    done = command(url, *arguments) if len(arguments) > 1 and fill(url) else command(url, "nowhere")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "expected" in done.stderr


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
