"""The store is not the one it was: a backup restored under a running pool, a copy that goes on, a damaged snapshot."""

import logging
from contextlib import closing

import apsw
import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P, SQLitePlace, change, fold_of
from statepool.live.journal import Journal
from statepool.live.replay import replay


def play(pool, rounds, seed=1):
    draws, made = np.random.default_rng(seed), []
    for _ in range(rounds):
        made.append(pool.decide())
        pool.observe(made[-1].ticket, STATES[draws.choice(3, p=P[ACTIONS.index(made[-1].action)])])
        pool.resolve(made[-1].ticket, loss=float(draws.integers(2)))
    return made


def copy(place, path):
    """As an administrator does: the database's own backup, into a file or over one that is in use."""
    with (
        closing(apsw.Connection(str(place.path))) as source,
        closing(apsw.Connection(str(path))) as target,
        target.backup("main", source, "main") as work,
    ):
        work.step()
    copied = SQLitePlace(path)
    copied.name = place.name
    return copied


def check_level(place, pool):
    """What the process holds is what the table adds up to, and the snapshot that it saves as well."""
    events = place.events()
    assert pool._fold().dump() == fold_of(events).dump()
    pool.snapshot()
    found, _ = replay(pool._journal.store, place.name, redraw=True)
    assert not found.faults


def check_a_restored_backup_is_read_anew(place, tmp_path, more):
    pool = place.make()
    play(pool, 30)
    backup = copy(place, tmp_path / "backup.db")
    play(pool, 20)
    copy(backup, place.path)
    if more:  # another process goes on from the backup, past where this one stands or not
        with place.open() as other:
            play(other, more, seed=2)
    check_level(place, pool)
    play(pool, 5)
    check_level(place, pool)


@pytest.mark.parametrize("more", [0, 10, 20, 40])
def test_a_backup_restored_under_a_running_pool(sqlite, tmp_path, more, caplog):
    caplog.set_level(logging.WARNING)
    check_a_restored_backup_is_read_anew(sqlite, tmp_path, more)
    assert "another journal than before" in caplog.text


def test_comparing_heads_by_number_alone_is_caught(sqlite, tmp_path, monkeypatch):
    """The mutant of the release before: events past one's own are applied, whatever journal they are of."""

    def follow(self, pool_state, view):
        for entry in view.entries(pool_state.seq):
            pool_state.apply(sp.live.events.decode(entry.body), entry.seq)
            self._hash = entry.hash
        return view.head()

    monkeypatch.setattr(Journal, "_follow", follow)
    with pytest.raises(AssertionError):
        check_a_restored_backup_is_read_anew(sqlite, tmp_path, 20)


def check_a_copy_mints_other_tickets(place, tmp_path):
    pool = place.make(seed=5)
    play(pool, 20)
    backup = copy(place, tmp_path / "older.db")
    lost = pool.decide_many(100)
    copy(backup, place.path)
    anew = pool.decide_many(100)  # the same process, which does not know yet
    with backup.open() as elsewhere:
        there = elsewhere.decide_many(100)
        with pytest.raises(sp.live.UnknownTicket):
            elsewhere.observe(lost[0].ticket, "buy")
    tickets = [each.ticket for each in lost + anew + there]
    assert len(set(tickets)) == 300, "a ticket was minted twice"
    with pytest.raises(sp.live.UnknownTicket):
        pool.resolve(lost[3].ticket, loss=1.0)


def test_a_restored_copy_mints_other_tickets(sqlite, tmp_path):
    check_a_copy_mints_other_tickets(sqlite, tmp_path)


def test_minting_without_an_epoch_is_caught(sqlite, tmp_path, monkeypatch):
    monkeypatch.setattr("statepool.live.writer.new_epoch", lambda: b"\0" * 6)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_a_copy_mints_other_tickets(sqlite, tmp_path)


SNAPSHOT_DAMAGE = {
    "a bit flipped": "UPDATE snapshots SET body = CAST(substr(body, 1, 90) || x'55' || substr(body, 92) AS BLOB)",
    "cut short": "UPDATE snapshots SET body = substr(body, 1, 40)",
    "empty": "UPDATE snapshots SET body = x''",
    "named as another event's": "UPDATE snapshots SET seq = seq - 1",
    "ahead of the journal": "UPDATE snapshots SET seq = 100000",
}


def check_a_damaged_snapshot_is_only_a_cache(place, damage, caplog):
    pool = place.make(sp.SelfTuned())
    play(pool, 30)
    pool.close()
    change(place.url, SNAPSHOT_DAMAGE[damage])
    caplog.clear()
    with place.open() as pool:
        assert pool._fold().dump() == fold_of(place.events()).dump()
        assert "folded anew" in caplog.text
        play(pool, 5)
        check_level(place, pool)


@pytest.mark.parametrize("damage", SNAPSHOT_DAMAGE)
def test_a_damaged_snapshot_is_only_a_cache(sqlite, damage, caplog):
    check_a_damaged_snapshot_is_only_a_cache(sqlite, damage, caplog)


def test_a_snapshot_of_another_journal_is_not_used(sqlite, tmp_path, caplog):
    pool = sqlite.make()
    play(pool, 20)
    backup = copy(sqlite, tmp_path / "older.db")
    play(pool, 20)
    pool.close()
    elsewhere = backup.open()
    play(elsewhere, 30, seed=9)
    elsewhere._journal._snapshot_at = 10**9
    elsewhere.close()
    change(backup.url, f"ATTACH '{sqlite.path}' AS other; REPLACE INTO snapshots SELECT * FROM other.snapshots")
    with backup.open() as pool:
        assert pool._fold().dump() == fold_of(backup.events()).dump()
    assert "of another journal" in caplog.text


def test_trusting_the_snapshot_is_caught(sqlite, caplog, monkeypatch):
    """The mutant without a checksum."""

    class Nothing:
        def __init__(self, body):
            pass

        def digest(self):
            return b"\0" * 32

    monkeypatch.setattr("statepool.live.snapshots.sha256", Nothing)
    with pytest.raises((AssertionError, ValueError, KeyError, TypeError)):
        check_a_damaged_snapshot_is_only_a_cache(sqlite, "a bit flipped", caplog)
