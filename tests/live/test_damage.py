"""One bit of a database file flipped: if anything that the package reads has changed, replay refuses or names it."""

from contextlib import closing

import apsw
import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P
from statepool.live.errors import StoreUnavailable
from statepool.live.replay import replay
from statepool.live.stores import open_store
from statepool.live.stores.sqlite import SQLiteView

READ = [
    "SELECT * FROM pools",
    "SELECT * FROM events NOT INDEXED ORDER BY pool, seq",
    "SELECT seq FROM events WHERE pool = 1 AND kind = 7 ORDER BY seq",
    "SELECT * FROM pending NOT INDEXED ORDER BY pool, play",
    "SELECT play, ticket, at FROM pending INDEXED BY pending_at WHERE pool = 1 AND at < 9223372036854775807",
    "SELECT * FROM snapshots",
    "SELECT * FROM migrations",
]
LOOK_UP = "SELECT play, kind, body FROM events INDEXED BY events_ticket WHERE pool = 1 AND ticket = ?"
OF_NUMBER = "SELECT kind, body FROM events INDEXED BY events_play WHERE pool = 1 AND play = ?"


def fill(path, rounds=150):
    """Every kind of event, tickets in flight, a snapshot in the middle of it."""
    draws, tickets, now = np.random.default_rng(3), [], [1e9]
    url = f"sqlite:///{path}"
    given = {"holdout": 0.2, "expire_after": 1e6, "default_loss": 0.5, "refresh": 4}
    pool = sp.Pool.open(url, "home", P, ACTIONS, STATES, sp.StateEXP3(rate=0.1), seed=5, clock=lambda: now[0], **given)
    for t in range(rounds):
        tickets.append(pool.decide(f"own {t}" if t % 3 else None).ticket)
        pool.observe(tickets[-1], STATES[draws.integers(3)])
        if t % 4:
            pool.resolve(tickets[draws.integers(max(t - 5, 0), t + 1)], loss=0.5)  # some twice
        if t == 20:
            pool.add_action("d", [0.2, 0.2, 0.6])
            now[0] += 2e6
            pool.expire()
            pool.resolve(tickets[0], loss=0.5)
            pool.reweight_action("b", [0.5, 0.5, 0.0])
        if t == 100:
            pool.snapshot()
            pool._journal._snapshot_at = 10**9  # closing leaves it in the middle
    pool.close()
    with closing(apsw.Connection(str(path))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.pragma("journal_mode", "delete")
        return tickets


def read_raw(path, tickets):
    """All that the package ever reads, by SQL of our own; None if SQLite cannot."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as database:
            tables = [list(database.execute(sql)) for sql in READ]
            by_ticket = [sorted(database.execute(LOOK_UP, (ticket,)), key=repr) for ticket in tickets]
            return (
                tables,
                by_ticket,
                [sorted(database.execute(OF_NUMBER, (number,)), key=repr) for number in range(len(tickets))],
            )
    except (apsw.Error, UnicodeDecodeError):
        return None


def is_noticed(path):
    try:
        store = open_store(f"sqlite:///{path}")
    except (ValueError, StoreUnavailable):
        return True
    try:
        return bool(replay(store, "home")[0].faults)
    except (ValueError, StoreUnavailable):
        return True
    finally:
        store.close()


def flip(path, whole, seed, n_flips):
    """(how many flips changed what is read, the places of those that went unnoticed)."""
    draws, tickets = np.random.default_rng(seed), fill(whole)
    wanted, content = read_raw(whole, tickets), whole.read_bytes()
    assert wanted is not None
    assert not is_noticed(whole), "the file was at fault before"
    changed, missed = 0, []
    content = whole.read_bytes()
    for _ in range(n_flips):
        place, bit = int(draws.integers(len(content))), int(draws.integers(8))
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        if read_raw(path, tickets) != wanted:
            changed += 1
            if not is_noticed(path):
                missed.append((place, bit))
        for leftover in path.parent.glob(path.name + "-*"):
            leftover.unlink()
    return changed, missed


def test_flipped_bits_are_refused_or_named(tmp_path):
    changed, missed = flip(tmp_path / "damaged.db", tmp_path / "whole.db", seed=1, n_flips=80)
    assert changed > 20
    assert not missed


@pytest.mark.soak
def test_two_thousand_flipped_bits_are_refused_or_named(tmp_path):
    changed, missed = flip(tmp_path / "damaged.db", tmp_path / "whole.db", seed=2, n_flips=2_000)
    print(f"{changed} of 2000 flips changed what is read, {len(missed)} unnoticed")
    assert changed > 500
    assert not missed


def test_events_that_lead_back_do_not_make_replay_read_for_ever(tmp_path, monkeypatch):
    fill(tmp_path / "whole.db")
    read = SQLiteView._tail

    def lead_back(view, after, without):
        while True:
            yield from list(read(view, after, without))[:5]

    listed = SQLiteView._tail_linked_catalogue
    monkeypatch.setattr(SQLiteView, "_tail", lead_back)
    monkeypatch.setattr(SQLiteView, "_tail_linked_catalogue", lambda view, after, last: listed(view, 0, last))
    store = open_store(f"sqlite:///{tmp_path / 'whole.db'}")
    assert "out of order" in replay(store, "home")[0].faults[0]
    with store.view("home") as view, pytest.raises(StoreUnavailable, match="out of order"):
        list(view.linked_catalogue(1, 10**6))
    store.close()
