"""Export, incremental rows, erase, archive, backup, and the view in SQL."""

import shutil
import signal
import subprocess
import sys

import duckdb
import pytest
import sqlalchemy as sa

import statepool as sp
from live.places import Clock, play
from statepool.live import maintenance
from statepool.live.dashboard.page import page_of
from statepool.live.errors import ReadOnly, StoreUnavailable, UnknownTicket
from statepool.live.maintenance import COLUMNS, backup, export


def test_rows_after_a_cursor_are_those_of_which_anything_was_learnt_since(place):
    pool = place.make(update_every=1)
    play(pool, 5)
    rows = list(pool.rows())
    assert list(rows[0]) == list(COLUMNS)
    cursor = max(row["cursor"] for row in rows)
    assert list(pool.rows(after=cursor)) == list(pool.rows(after=2**40)) == []
    pool.decide("waiting")
    pool.decide("without-a-state")
    pool.resolve("without-a-state", 0.5)
    [new] = play(pool, 1)
    assert [row["ticket"] for row in pool.rows(after=cursor)] == [new]
    pool.observe("waiting", "buy")
    assert {row["ticket"] for row in pool.rows(after=cursor)} == {new, "waiting"}
    pool.observe("without-a-state", "buy")
    kept = {row["ticket"]: row for row in rows}
    kept |= {row["ticket"]: row for row in pool.rows(after=cursor)}
    assert list(kept.values()) == sorted(pool.rows(), key=lambda row: list(kept).index(row["ticket"]))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_export(sqlite, tmp_path, suffix):
    pool = sqlite.make(reward_bounds=(0, 2))
    for ticket in play(pool, 3):
        assert ticket
    path = tmp_path / f"rows.{suffix}"
    assert export(pool.rows(), path) == 3
    read = {"csv": duckdb.read_csv, "jsonl": duckdb.read_json, "parquet": duckdb.read_parquet}[suffix]
    assert [row[0] for row in read(str(path)).project("ticket").fetchall()] == [row["ticket"] for row in pool.rows()]
    with pytest.raises(ValueError, match=r"\.csv, \.parquet or \.jsonl"):
        export(pool.rows(), tmp_path / "rows.txt")


def test_decisions_can_be_read_with_sql(place):
    pool = place.make(reward_bounds=(0, 10), window=100, default_reward=2, clock=Clock(1e9))
    pool.decide("1")
    pool.observe("1", "buy")
    pool.resolve("1", reward=5)
    pool.decide("2")
    pool._clock.now += 101
    pool.expire()
    name = "statepool.decision_log" if pool.database.is_postgres else "decision_log"
    with pool.database.read() as connection:
        query = sa.text(f"SELECT * FROM {name} WHERE pool = '{pool.name}' ORDER BY ticket")
        rows = connection.execute(query).mappings().all()
    assert list(rows[0]) == [
        "pool", "ticket", "action", "probability", "context", "state", "loss", "reward", "decided_at", "observed_at",
        "resolved_at", "is_holdout", "expired", "version", "clipped",
    ]  # fmt: skip
    assert [(row["state"], row["reward"], row["loss"], bool(row["expired"])) for row in rows] == [
        ("buy", 5.0, 0.5, False), (None, 2.0, 0.8, True),
    ]  # fmt: skip
    assert str(rows[0]["decided_at"]).startswith("2001-09-09")


def test_the_query_that_the_alarm_about_bounds_shows_finds_the_outcomes(place):
    pool = place.make(reward_bounds=(0, 10))
    pool.decide_many(["inside", "outside"])
    pool.resolve_many(rewards={"inside": 5.0, "outside": 50.0})
    [alarm] = [each for each in page_of(pool)["alarms"] if each.kind == "bounds"]
    with pool.database.read() as connection:
        rows = connection.execute(sa.text(alarm.text.partition("All of them: ")[2])).all()
    assert [tuple(row) for row in rows] == [("outside", 50.0, 0.0)]


def test_an_erased_person_is_gone_and_replay_agrees(place):
    pool = place.make(update_every=1, keep_candidates=True)
    play(pool, 3)
    pool.decide("me", candidates={"mine": [1, 0, 0], "yours": [0, 1, 0]})
    pool.observe("me", "browse")
    pool.resolve("me", 1.0)
    pool.decide("too")
    pool.resolve("too", 0.5)
    pool.erase("me")
    pool.erase("too")
    with pytest.raises(UnknownTicket):
        pool.find("me")
    with pytest.raises(UnknownTicket):
        pool.erase("me")
    tables = pool.database.tables
    with pool.database.read() as connection:
        for table in (tables.candidate_sets, tables.decisions):
            content = connection.execute(sa.select(table).where(table.c.pool == pool.definition.id)).all()
            assert "mine" not in str(content)
            assert "'me'" not in str(content)
    play(pool, 3)
    assert len(list(pool.rows())) == 8
    assert pool.replay().ok


def test_archived_decisions_are_in_the_file_and_gone_and_replay_starts_after_them(place, tmp_path, clock):
    pool = place.make(update_every=2, clock=clock)
    old = play(pool, 20)
    pool.decide("unsettled")
    clock.now = 100
    young = play(pool, 5)
    path = tmp_path / "old.parquet"
    assert pool.archive(50, path) == 20
    assert [row[0] for row in duckdb.read_parquet(str(path)).project("ticket").fetchall()] == old
    assert [row["ticket"] for row in pool.rows()] == ["unsettled", *young]
    with pytest.raises(UnknownTicket):
        pool.resolve(old[0], 0.5)
    assert pool.replay().ok
    pool.observe("unsettled", "buy")
    pool.resolve("unsettled", 1.0)
    play(pool, 10)
    again = place.open(clock=clock)
    assert again.policy() == pool.policy()
    found = again.replay()
    assert (found.fault, found.redrawn) == (None, 10)
    with pytest.raises(ValueError, match="expected a new file"):
        pool.archive(50, path)


def test_a_decision_whose_version_was_archived_in_that_moment_is_never_learnt(place, tmp_path, clock):
    pool = place.make(update_every=2, clock=clock)
    play(pool, 20)
    pool.decide("caught")
    pool.archive(50, tmp_path / "old.parquet")
    versions = pool.database.tables.versions
    is_old = versions.c.pool == pool.definition.id, versions.c.number < pool.status().version
    pool.database.write(lambda connection: connection.execute(sa.delete(versions).where(*is_old)))
    pool.observe("caught", "buy")
    pool.resolve("caught", 0.5)
    play(pool, 4)
    assert pool.status().counts["unlearned"] == 0
    assert pool.find("caught")["cursor"] == 0
    assert pool.replay().ok


def test_keys_of_archived_decisions_may_come_again(place, tmp_path, clock):
    clock.now = 1000
    pool = place.make(window=10, clock=clock)
    play(pool, 3)
    clock.now = 1100
    pool.expire()
    assert pool.archive(1050, tmp_path / "old.parquet") == 3
    clock.now = 0
    pool.decide("while the clock was wrong")
    clock.now = 2000
    assert pool.expire() == 1


def test_an_outcome_that_comes_while_decisions_are_archived_is_kept(place, tmp_path, clock, monkeypatch):
    pool = place.make(update_every=1, window=10, clock=clock)
    pool.decide_many(["late", "silent"])
    pool.observe_many([("late", "buy"), ("silent", "bounce")])
    clock.now = 20
    assert pool.expire() == 2
    write = maintenance.export

    def export(records, path):
        count = write(records, path)
        pool.resolve("late", 0.25)
        return count

    monkeypatch.setattr(maintenance, "export", export)
    assert pool.archive(15, tmp_path / "old.parquet") == 1
    assert [(row["ticket"], row["loss"]) for row in pool.rows()] == [("late", 0.25)]
    assert pool.replay().ok


def test_an_erased_candidate_of_the_catalogue_replays(place):
    pool = place.make(update_every=1)
    pool.decide("me", candidates={"a": [0.2, 0.3, 0.5], "poster": [1, 0, 0]}, uniform=0.1)
    assert pool.find("me")["action"] == "a"
    pool.erase("me")
    assert pool.replay().ok


def test_a_backup_taken_in_use_is_a_pool(sqlite, tmp_path):
    pool = sqlite.make(update_every=1)
    play(pool, 10)
    backup(pool.database, tmp_path / "copy.db")
    play(pool, 5)
    with sp.Pool.open(f"sqlite:///{tmp_path / 'copy.db'}", sqlite.name) as copy:
        assert len(list(copy.rows())) == 10
        assert copy.replay().ok
    with pytest.raises(ValueError, match="expected a new file"):
        backup(pool.database, tmp_path / "copy.db")


def test_a_backup_restored_under_a_running_process(sqlite, tmp_path):
    pool = sqlite.make(update_every=1)
    play(pool, 5)
    backup(pool.database, tmp_path / "copy.db")
    lost = play(pool, 5)
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"pool.db{end}").unlink(missing_ok=True)
    with pytest.raises(StoreUnavailable, match="not there any more"):
        pool.decide()
    shutil.copy(tmp_path / "copy.db", tmp_path / "pool.db")
    play(pool, 7)
    with pytest.raises(UnknownTicket):
        pool.find(lost[0])
    assert len(list(pool.rows())) == 12
    assert pool.replay().ok


def test_a_backup_restored_after_a_kill(tmp_path):
    """As the page on operations says; the kill leaves a `-wal`, which would undo the restore if it stayed."""
    url, copy = f"sqlite:///{tmp_path / 'pool.db'}", tmp_path / "copy.db"
    code = f"""
import os, signal
import statepool as sp
from statepool.live.maintenance import backup
pool = sp.Pool.open({url!r}, "home", [[0.5, 0.5], [0.2, 0.8]], ["a", "b"], ["x", "y"])
pool.decide("before")
backup(pool.database, __import__("pathlib").Path({str(copy)!r}))
pool.decide("after")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert (tmp_path / "pool.db-wal").stat().st_size
    for end in ("-wal", "-shm"):
        (tmp_path / f"pool.db{end}").unlink(missing_ok=True)
    shutil.copy(copy, tmp_path / "pool.db")
    with sp.Pool.open(url, "home") as pool:
        assert [row["ticket"] for row in pool.rows()] == ["before"]
        assert pool.replay().ok


def test_a_database_of_another_release_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path / 'old.db'}"
    with sp.live.Database(url) as database:
        database.write(lambda connection: connection.execute(sa.update(database.tables.meta).values(schema=1)))
    with pytest.raises(ValueError, match="another release"):
        sp.live.Database(url)


def test_reading_only(sqlite):
    pool = sqlite.make()
    play(pool, 2)
    with sp.live.Database(sqlite.url, read_only=True) as database:
        follower = sp.Pool.open(database, sqlite.name)
        assert follower.status().decisions == 2
        with pytest.raises(ReadOnly):
            follower.decide()
    with pytest.raises(ValueError, match="is not there"):
        sp.live.Database(sqlite.url + "x", read_only=True)
