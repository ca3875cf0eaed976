"""What names a person goes; what was learnt, the chain and every other ticket stay."""

from contextlib import closing
from hashlib import sha256

import msgspec
import numpy as np
import pytest

import statepool as sp
from command_line import statepool
from live.places import ACTIONS, STATES, P, fold_of
from statepool.live.anchors import heads
from statepool.live.compaction import compact
from statepool.live.events import decode, erase
from statepool.live.forgetting import forget
from statepool.live.replay import replay
from statepool.live.requests import Decide, Expire
from statepool.live.stores import segments


def play(pool, rounds, seed=1):
    draws, made = np.random.default_rng(seed), []
    for number in range(rounds):
        made.append(pool.decide(f"anna-{seed}-{number}" if number % 2 else None))
        if number % 5:
            pool.observe(made[-1].ticket, STATES[draws.choice(3, p=P[ACTIONS.index(made[-1].action)])])
        if number % 4:
            pool.resolve(made[-1].ticket, reward=float(draws.integers(100)))
    return made


@pytest.mark.parametrize("where", ["table", "segments", "both"])
def test_a_ticket_is_forgotten_and_the_rest_is_as_it_was(place, tmp_path, where, monkeypatch):
    monkeypatch.setattr(segments, "EVENTS_A_BLOCK", 16)
    pool = place.make(sp.SelfTuned(), reward_bounds=(0, 100))
    store = pool._journal.store
    made = play(pool, 30)
    before = place.events()
    if where != "table":
        compact(store, place.name, 0.0, str(tmp_path / "s"), 1)
    if where == "both":
        pool.observe(made[5].ticket, "browse")
        made += play(pool, 10, seed=2)
    noted = heads(store)
    learnt = pool._fold().live_learner.dump()
    gone, kept = [made[5], made[6], made[8], made[-1]], [made[7], made[9]]
    known = [pool.find(each.ticket) for each in kept]
    with store.view(place.name) as view:
        events = {entry.seq: entry for each in gone for entry in view.entries_of(each.ticket)}
    assert forget(pool, [each.ticket for each in gone]) == len(events)
    for each in gone:
        with pytest.raises(sp.live.UnknownTicket):
            pool.find(each.ticket)
        with pytest.raises(sp.live.UnknownTicket):
            pool.resolve(each.ticket, reward=1)
    assert [pool.find(each.ticket) for each in kept] == known
    assert pool._fold().live_learner.dump() == learnt
    pool.rest()
    assert pool._fold().live_learner.dump() == learnt
    play(pool, 5, seed=3)
    pool.snapshot()
    found, pool_state = replay(store, place.name, redraw=True, anchors=noted)
    assert (found.faults, found.forgotten, found.anchors) == ([], len(events), 1)
    assert pool_state.dump() == pool._fold().dump()
    with store.view(place.name) as view:
        whole = list(view.entries())
        for seq, entry in events.items():  # whoever has the bytes can prove that they were there
            last = view.linked(seq)[0]
            assert whole[seq - 1].hash == entry.hash == sha256(last + entry.body).digest()
    told = b"".join(entry.body for entry in whole) + b"".join(f.read_bytes() for f in tmp_path.glob("s/*"))
    assert not any(each.ticket.encode() in told for each in gone)
    assert [entry.hash for entry in whole[: len(before)]] == [row[-1] for row in before]
    if where == "table":
        assert fold_of(place.events()).live_learner.dump() == pool_state.live_learner.dump()


@pytest.mark.parametrize("gone", ["t-0", "t-2"])
def test_what_was_forgotten_expires_like_any_other_decision(place, gone):
    """Also beside others: a decision that is overdue before it, and whoever asks something in the same batch."""
    with closing(place.make(expire_after=1.0, default_loss=1.0)) as pool:
        for number in range(4):
            pool.decide(f"t-{number}")
        pool.observe(gone, "browse")
        forget(pool, [gone])
        late = pool.now() + 10_000_000
        made, expired = pool.run([Decide("u"), Expire(late)])
        assert (made.ticket, expired) == ("u", 4)
        pool.expire(late / 1e6)
        assert pool.pending() == []
        found, pool_state = replay(pool._journal.store, place.name, redraw=True)
        assert (found.faults, pool_state.counts["expiry"]) == ([], 5)


def test_no_byte_of_the_file_tells_of_what_was_forgotten(sqlite, tmp_path):
    """Rows move from page to page while a file grows, and leave for segments: no copy stays behind."""
    names = [f"customer-{number:04}-secret" for number in np.random.default_rng(0).permutation(400)]
    with closing(sqlite.make()) as pool:
        for number, name in enumerate(names):
            pool.decide(name)
            if number % 5:
                pool.observe(name, "browse")
                pool.resolve(name, loss=0.5)
        forget(pool, names[:40])

    def told():
        content = b"".join(file.read_bytes() for file in [sqlite.path, *tmp_path.glob("s/*")])
        return [name for name in names[:80] if name.encode() in content]

    assert told() == names[40:80]
    with closing(sqlite.open()) as pool:
        compact(pool._journal.store, sqlite.name, 0.0, str(tmp_path / "s"), 1)
        forget(pool, names[40:80])
    assert told() == []


def test_a_segment_that_cannot_be_removed_is_told(sqlite, tmp_path, monkeypatch):
    pool = sqlite.make()
    pool.decide("anna")
    pool.resolve("anna", loss=0.0)
    compact(pool._journal.store, sqlite.name, 0.0, str(tmp_path / "s"), 1)
    pool.close()

    def unlink(path):
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr("pathlib.Path.unlink", unlink)
    done = statepool("forget", sqlite.url, sqlite.name, "anna")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "the journal has forgotten, but not every file" in done.stderr
    assert all(name in done.stderr for name in (".segment cannot be removed", "not permitted", str(tmp_path / "s")))
    assert "2 events were erased" in statepool("replay", sqlite.url, sqlite.name).stdout


def test_what_is_not_known_changes_nothing(sqlite):
    pool = sqlite.make()
    pool.decide("anna")
    before = sqlite.events()
    with pytest.raises(sp.live.UnknownTicket, match="nothing was forgotten"):
        forget(pool, ["anna", "berta"])
    for bad in ("", "\x7f0", "x" * 300):
        with pytest.raises(ValueError, match="ticket"):
            forget(pool, [bad])
    assert sqlite.events() == before


def test_an_erasure_that_the_journal_does_not_tell_of_is_a_fault(sqlite):
    """Somebody writes another loss, and claims that the event was erased; or spoils what is left."""
    pool = sqlite.make()
    pool.decide("anna")
    pool.resolve("anna", loss=1.0)
    pool.decide("berta")
    forget(pool, ["berta"])
    pool.close()
    *_, body, digest = sqlite.events()[3]
    fake = erase(msgspec.structs.replace(decode(body), loss=0.0), digest)
    sqlite.change(f"UPDATE events SET body = x'{fake.hex()}' WHERE seq = 4")
    with closing(sqlite.store()) as store:
        assert any("the journal does not say so" in fault for fault in replay(store, sqlite.name)[0].faults)
    erased = bytearray(sqlite.events()[4][-2])
    erased[-50] ^= 1
    sqlite.change(f"UPDATE events SET body = x'{body.hex()}' WHERE seq = 4")
    sqlite.change(f"UPDATE events SET body = x'{bytes(erased).hex()}' WHERE seq = 5")
    with closing(sqlite.store()) as store:
        assert replay(store, sqlite.name)[0].broken_at == 5


def test_the_command(sqlite):
    pool = sqlite.make()
    pool.decide("anna")
    pool.close()
    done = statepool("forget", sqlite.url, sqlite.name, "anna")
    assert (done.returncode, "1 events of 1 tickets" in done.stdout) == (0, True), done.stderr
    again = statepool("forget", sqlite.url, sqlite.name, "anna")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1), again.stderr
    assert "1 events were erased" in statepool("replay", sqlite.url, sqlite.name, "--redraw").stdout
