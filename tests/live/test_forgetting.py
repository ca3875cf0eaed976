"""What names a person goes; what was learnt, the chain and every other ticket stay."""

import json
from contextlib import closing, suppress
from hashlib import sha256
from pkgutil import resolve_name

import msgspec
import numpy as np
import pytest

import statepool as sp
from command_line import statepool
from live.places import ACTIONS, STATES, P, fold_of
from statepool.live import forgetting, loose_files
from statepool.live.anchors import heads
from statepool.live.compaction import compact
from statepool.live.errors import StoreUnavailable
from statepool.live.events import decode, erase
from statepool.live.forgetting import forget
from statepool.live.loose_files import remove_loose
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
    assert forget(pool, [each.ticket for each in gone]).events == len(events)
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
    assert (found.erased_since_noted, found.agrees) == (len(events), None)
    again, _ = replay(store, place.name, anchors=[*noted, *heads(store)])
    assert (again.erased_since_noted, again.agrees) == (0, True)
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

    def unlink(path, missing_ok=False):
        raise PermissionError(1, "Operation not permitted", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", unlink)
        done = statepool("forget", sqlite.url, sqlite.name, "anna")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert "the journal has forgotten, but files that are no part of the journal cannot be removed" in done.stderr
        assert all(name in done.stderr for name in (".segment cannot be removed", "not permitted", str(tmp_path / "s")))
        assert "2 events were erased" in statepool("replay", sqlite.url, sqlite.name).stdout
        assert "cannot be removed" in statepool("forget", sqlite.url, sqlite.name, "anna").stderr
    calls = statepool("keys", "calls", "--store", sqlite.url).stdout
    assert calls.count("forget 1 tickets") == calls.count("503") == 2
    assert len(files(tmp_path)) == 2
    assert "is not known to this pool" in statepool("forget", sqlite.url, sqlite.name, "anna").stderr
    check_files(sqlite, tmp_path)


def files(tmp_path):
    return {file.name.removesuffix(".segment") for file in tmp_path.glob("s/*")}


def check_files(place, tmp_path):
    """Nothing lies there but what the journal is made of, and replay finds no fault."""
    with closing(place.store()) as store:
        with store.view(place.name) as view:
            assert files(tmp_path) == {sealed.digest for sealed in view.sealed()}
            assert view.loose() == []
        assert replay(store, place.name, redraw=True)[0].faults == []


class Killed(BaseException):
    pass


def kill():
    raise Killed


def first_time(monkeypatch, name, meanwhile):
    """The first time that a function has done its part, something happens before its caller goes on."""
    real, calls = resolve_name(name), []

    def patched(*given):
        found = real(*given)
        calls.append(found)
        if len(calls) == 1:
            meanwhile()
        return found

    monkeypatch.setattr(name, patched)
    return calls


@pytest.mark.parametrize("after", ["compaction.seal", "stores.folders.Folder.write", "compaction.write_segment"])
def test_what_is_forgotten_while_it_is_sealed_is_forgotten(place, tmp_path, monkeypatch, after):
    """A segment was made with it, or written, or read back, and is not sealed yet."""
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 30)
    with closing(place.open()) as other:
        first_time(monkeypatch, f"statepool.live.{after}", lambda: forget(other, [made[5].ticket]))
        done = compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    assert done.segments == 1
    with pytest.raises(sp.live.UnknownTicket):
        pool.find(made[5].ticket)
    check_files(place, tmp_path)


@pytest.mark.parametrize("sealed", [0, 20])
def test_what_is_sealed_while_it_is_forgotten_is_forgotten(place, tmp_path, monkeypatch, sealed):
    """It is in the table when that is looked up, and in a segment when it is erased."""
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 30)
    if sealed:
        with monkeypatch.context() as patched:
            patched.setattr("statepool.live.compaction.MOST_EVENTS", sealed)
            patched.setattr("statepool.live.compaction._last_old", lambda view, cutoff: sealed)
            compacted = first_time(patched, "statepool.live.compaction.write_segment", lambda: None)
            compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), sealed)
        assert [each.last for each in compacted] == [sealed]
    with closing(place.open()) as other:

        def meanwhile():
            assert compact(other._journal.store, place.name, 0.0, str(tmp_path / "s"), 1).segments == 1

        plans = first_time(monkeypatch, "statepool.live.forgetting._plan", meanwhile)
        forget(pool, [made[1].ticket, made[25].ticket])
    assert len(plans) == 2
    for each in (made[1], made[25]):
        with pytest.raises(sp.live.UnknownTicket):
            pool.find(each.ticket)
    check_files(place, tmp_path)


def test_two_who_forget_leave_no_file_of_what_the_other_forgot(place, tmp_path, monkeypatch):
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 30)
    compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    with closing(place.open()) as other:
        plans = first_time(monkeypatch, "statepool.live.forgetting._plan", lambda: forget(other, [made[5].ticket]))
        forget(pool, [made[7].ticket])
    assert len(plans) == 3
    told = b"".join(file.read_bytes() for file in tmp_path.glob("s/*"))
    assert not any(made[n].ticket.encode() in told for n in (5, 7))
    check_files(place, tmp_path)


@pytest.mark.parametrize("by", ["forget", "compact"])
def test_a_file_that_a_killed_compaction_left_is_removed(place, tmp_path, monkeypatch, by):
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 30)
    with monkeypatch.context() as patched:
        first_time(patched, "statepool.live.compaction.write_segment", kill)
        with pytest.raises(Killed):
            compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    assert len(files(tmp_path)) == 2, "somebody may still be writing it"
    if by == "forget":
        forget(pool, [made[5].ticket])
    else:
        monkeypatch.setattr("statepool.live.loose_files.WRITTEN_WITHIN", 0)
        compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    check_files(place, tmp_path)


@pytest.mark.parametrize("killed", [False, True])
def test_a_segment_that_was_cleared_away_is_written_again(place, tmp_path, monkeypatch, killed):
    """Also if who cleared it away was killed before the store knew that the file was gone."""
    pool = place.make(reward_bounds=(0, 100))
    play(pool, 30)
    with closing(place.open()) as other:

        def clear():
            with monkeypatch.context() as patched, suppress(Killed):
                if killed:
                    first_time(patched, "statepool.live.stores.folders.Folder.remove", kill)
                remove_loose(other._journal.store, place.name)

        first_time(monkeypatch, "statepool.live.compaction.write_segment", clear)
        assert compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1).segments == 1
    monkeypatch.setattr("statepool.live.loose_files.WRITTEN_WITHIN", 0)
    remove_loose(pool._journal.store, place.name)  # the row of a file that is gone is kept for a while
    check_files(place, tmp_path)


def test_a_file_that_was_sealed_meanwhile_is_not_removed(place, tmp_path):
    """It was loose when that was looked up, and is a part of the journal when the lock is had."""
    pool, folder = place.make(reward_bounds=(0, 100)), segments.Folder(str(tmp_path / "s"))
    play(pool, 30)
    pool.settle()
    store, looked = pool._journal.store, []
    with store.view(place.name) as view:
        made = segments.seal(place.name, b"", list(view.entries()))
    written = loose_files.write_segment(store, folder, *made)

    def seal_first(loose, late):
        looked.append(loose)
        if len(looked) == 1:
            with store.batch(place.name) as batch:
                batch.seal(written)
        return True

    loose_files._remove(store, place.name, seal_first)
    assert len(looked) == 1
    check_files(place, tmp_path)


def test_a_file_that_was_written_in_part_is_removed(place, tmp_path):
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 10)
    with pool._journal.store.batch(place.name) as batch:
        batch.announce("a" * 64, str(tmp_path / "s"))
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / f"{'a' * 64}.segment.part").write_bytes(made[5].ticket.encode())
    forget(pool, [made[5].ticket])
    check_files(place, tmp_path)


def test_a_segment_that_another_wrote_anew_is_read_again(place, tmp_path, monkeypatch):
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 30)
    compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    with closing(place.open()) as other:
        first_time(monkeypatch, "statepool.live.forgetting._nameless", lambda: forget(other, [made[5].ticket]))
        forget(pool, [made[7].ticket])
    for each in (made[5], made[7]):
        with pytest.raises(sp.live.UnknownTicket):
            pool.find(each.ticket)
    check_files(place, tmp_path)


def test_who_forgets_nothing_disturbs_nobody(place, tmp_path, monkeypatch):
    pool = place.make(reward_bounds=(0, 100))
    play(pool, 30)
    with closing(place.open()) as other:

        def meanwhile():
            with pytest.raises(sp.live.UnknownTicket):
                forget(other, ["nobody"])

        written = first_time(monkeypatch, "statepool.live.compaction.write_segment", meanwhile)
        compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    assert len(written) == 1
    check_files(place, tmp_path)


def test_a_replay_that_meets_a_forgetting_says_so(place, tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "EVENTS_A_BLOCK", 16)
    pool = place.make(reward_bounds=(0, 100))
    made = play(pool, 30)
    compact(pool._journal.store, place.name, 0.0, str(tmp_path / "s"), 1)
    with closing(place.store()) as store, pytest.raises(StoreUnavailable, match="replay again"):
        replay(store, place.name, on_event=lambda seq: forget(pool, [made[5].ticket]) if seq == 20 else None)
    check_files(place, tmp_path)


def test_a_past_that_was_written_anew_as_an_erasure_is_not_vouched_for(sqlite, tmp_path, monkeypatch):
    """The chain is as it was noted, and every erasure is told: but what is left says what somebody wanted."""
    pool = sqlite.make()
    for name in ("anna", "berta"):
        pool.decide(name)
        pool.resolve(name, loss=1.0)
    place = str(tmp_path / "notes.jsonl")
    assert statepool("anchor", sqlite.url, place).returncode == 0
    real = forgetting._nameless

    def nameless(entry, pool_state):
        left = real(entry, pool_state)
        event = decode(left.body)
        changed = msgspec.structs.replace(event, loss=0.0) if hasattr(event, "loss") else event
        return left._replace(body=erase(changed, entry.hash))

    monkeypatch.setattr(forgetting, "_nameless", nameless)
    forget(pool, ["anna"])
    pool.close()
    sqlite.change("DELETE FROM snapshots")
    found = statepool("replay", sqlite.url, sqlite.name, "--anchors", place)
    assert (found.returncode, "cannot tell: " in found.stdout) == (1, True), found.stdout
    assert "everything agrees\n" not in found.stdout
    assert (
        json.loads(statepool("replay", sqlite.url, sqlite.name, "--anchors", place, "--json").stdout)["agrees"] is None
    )
    assert statepool("anchor", sqlite.url, place).returncode == 0
    assert "everything agrees\n" in statepool("replay", sqlite.url, sqlite.name, "--anchors", place).stdout


def test_a_decision_that_came_in_a_lane_of_another_store_is_forgotten(place, tmp_path):
    pool = place.make()
    pool.decide("anna")
    pool.close()
    backup, url = str(tmp_path / "b.db"), f"sqlite:///{tmp_path}/restored.db"
    assert statepool("backup", place.url, backup).returncode == 0
    assert statepool("restore", backup, url).returncode == 0
    done = statepool("forget", url, place.name, "anna")
    assert (done.returncode, "1 events of 1 tickets" in done.stdout) == (0, True), done.stderr


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
