"""The power goes while requests with candidates are in flight: what was acknowledged is there, and is drawn again."""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "stores"))
import pytest
from power import Disk, Platter

import statepool as sp
from live.killed import CATALOGUE, offer_of, state_of
from live.places import raw_events
from statepool.live.replay import replay
from statepool.live.stores.sqlite import SQLiteStore

CUTS = 25


class Recorder:
    """A client, and its own record: how far the disk was when each call returned."""

    def __init__(self, folder, synchronous):
        self.disk = Disk(f"disk of {folder}")
        self.told = []
        for run in range(2):  # closing in between checkpoints and deletes the WAL
            store = SQLiteStore(folder / "pool.db", synchronous, self.disk.name)
            pool = sp.Pool.open(store, "home", **CATALOGUE, learner=sp.SelfTuned(), refresh=3)
            for n in range(12):
                ticket = f"{run}-{n}"
                made = pool.decide(ticket, candidates=offer_of(ticket))
                self._tell("decision", ticket, made.probability)
                pool.observe(ticket, state_of(ticket))
                self._tell("state", ticket, None)
                pool.resolve(ticket, loss=0.5)
                self._tell("outcome", ticket, None)
            pool.close()
            store.close()

    def _tell(self, kind, ticket, probability):
        self.told.append((len(self.disk.steps), kind, ticket, probability))


def left_after(folder):
    """(kind, ticket) of what is there, read from the table; the journal agrees with itself, draw by draw."""
    url = f"sqlite:///{folder}/pool.db"
    store = SQLiteStore(folder / "pool.db")
    found, _ = replay(store, "home", redraw=True)
    assert found.faults == []
    assert found.redrawn == found.decisions
    with sp.Pool.open(store, "home") as pool:
        odds = {row["ticket"]: row["probability"] for row in pool.rows()}
        pool.decide("after the power came back", candidates=offer_of("after"))
    store.close()
    return {(kind, ticket) for _, kind, ticket, *_ in raw_events(url, "home")}, odds


def cut_the_power(tmp_path, synchronous):
    (tmp_path / "live").mkdir()
    client, chance, platter = Recorder(tmp_path / "live", synchronous), random.Random(11), Platter()
    assert any(offer_of(ticket) for _, _, ticket, _ in client.told)
    begun = client.told[0][0]
    moments = set(chance.sample(range(begun, len(client.disk.steps)), CUTS))
    for moment, step in enumerate(client.disk.steps):
        if moment in moments:
            left = tmp_path / str(moment)
            left.mkdir()
            platter.lose_power(left, chance if moment % 2 else None)
            there, odds = left_after(left)
            for at, kind, ticket, probability in client.told:
                if at <= moment:
                    assert (kind, ticket) in there
                    assert probability is None or odds[ticket] == probability
        platter.take(step)


def test_requests_with_candidates_survive_a_loss_of_power(tmp_path):
    cut_the_power(tmp_path, "FULL")


def test_a_disk_that_is_not_waited_for_is_caught(tmp_path):
    with pytest.raises((AssertionError, ValueError)):
        cut_the_power(tmp_path, "OFF")
