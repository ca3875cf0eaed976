"""A journal whose first part lies in sealed segments is the journal it was: the same bits, the same answers."""

import json
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import statepool as sp
from command_line import statepool
from live.places import ACTIONS, KINDS, STATES, P, PostgresPlace, check_chain, fold_of, told
from statepool.live.compaction import compact
from statepool.live.errors import Conflict, Damaged, StoreUnavailable
from statepool.live.replay import replay
from statepool.live.stores import segments
from statepool.live.stores.owners import make_folder


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Blocks and chunks of a few, so that a few hundred events have many."""
    monkeypatch.setattr(segments, "EVENTS_A_BLOCK", 16)
    monkeypatch.setattr(segments, "KEYS_A_CHUNK", 8)
    monkeypatch.setattr("statepool.live.compaction.MOST_EVENTS", 120)
    monkeypatch.setattr("statepool.live.compaction.DELETED_AT_ONCE", 50)


def play(pool, rounds, seed=1, own=True):
    """Some tickets are the caller's, some outcomes and states never come."""
    draws, made = np.random.default_rng(seed), []
    for number in range(rounds):
        made.append(pool.decide(f"order-{seed}-{number}" if own and number % 3 == 0 else None))
        if number % 5:
            pool.observe(made[-1].ticket, STATES[draws.choice(3, p=P[ACTIONS.index(made[-1].action)])])
        if number % 7:
            pool.resolve(made[-1].ticket, loss=float(draws.integers(2)))
        if number == rounds // 2:
            pool.add_action(f"new-{seed}", row=[0.2, 0.3, 0.5])
            pool.retire_action(f"new-{seed}")
    return made


def sealed(place, pool, folder, least=1):
    store = pool._journal.store
    found = compact(store, place.name, 0.0, str(folder), least)
    return store, found


def whole(store, name):
    with store.view(name) as view:
        return told([(entry.seq, KINDS.index(entry.kind), *entry[2:]) for entry in view.entries()])


def test_nothing_changes_but_where_it_lies(place, tmp_path):
    pool = place.make(sp.SelfTuned())
    made = play(pool, 80)
    events, rows, pending = place.events(), list(pool.rows()), pool.pending()
    check_chain(events)
    store, found = sealed(place, pool, tmp_path / "segments")
    assert (found.events, found.segments) == (len(events), -(-len(events) // 120))
    assert place.events() == [], "the rows have left the database"
    assert whole(store, place.name) == events
    assert list(pool.rows()) == rows
    assert pool.pending() == pending
    report, pool_state = replay(store, place.name, redraw=True)
    assert (report.faults, report.events) == ([], len(events))
    assert pool_state.dump() == fold_of(events).dump()
    with closing(place.store()) as again, store.view(place.name) as view:
        other = sp.Pool.open(again, place.name)
        assert other._fold().dump() == pool_state.dump()
        assert view.bodies(["order-1-0", "nobody", made[1].ticket]).keys() == {"order-1-0", made[1].ticket}
        assert view.catalogue() == [seq for seq, kind, *_ in events if kind == "catalogue"]


def test_rows_that_requests_brought_are_sealed_and_found_again(place, tmp_path):
    pool, candidates = place.make(), {"a": [0.8, 0.2, 0.0], "other": [0.1, 0.6, 0.3]}
    made = pool.decide(candidates=candidates)
    events = place.events()
    store, found = sealed(place, pool, tmp_path / "segments")
    assert found.events == len(events)
    assert whole(store, place.name) == events
    pool.resolve(pool.decide("later", candidates=candidates).ticket, loss=0.5)
    assert [event[1] for event in place.events()].count("rows") == 0, "they are kept once"
    pool.observe(made.ticket, "browse")
    report, _ = replay(store, place.name, redraw=True)
    assert (report.faults, report.redrawn) == ([], 2)


def test_a_pool_goes_on_across_the_seam(place, tmp_path):
    """Beside one that is never compacted: the same draws, the same sums; late reports find what they need."""
    twins = {}
    for which in ("compacted", "plain"):
        place.name = f"{which}-{os.path.basename(tmp_path)}"
        pool = place.make(sp.SelfTuned(), clock=lambda: 1e9)
        twins[which] = (place.name, pool, play(pool, 60))
    name, pool, made = twins["compacted"]
    place.name = name
    store, _ = sealed(place, pool, tmp_path / "segments")
    pool.rest()  # so that it reads everything anew
    twin = twins["plain"][1]
    twin.rest()
    pairs = list(zip(made, twins["plain"][2], strict=True))
    for mine, other in pairs[:30]:
        assert (mine.action, mine.probability) == (other.action, other.probability)
        known, known_too = pool.find(mine.ticket), twin.find(other.ticket)
        for each, decision, found in ((pool, mine, known), (twin, other, known_too)):
            if found["state"] is None:
                each.observe(decision.ticket, "browse")
            if found["loss"] is None:
                each.resolve(decision.ticket, loss=0.25)
            each.resolve(decision.ticket, loss=0.25 if found["loss"] is None else found["loss"])  # harmless
    for each, decision in ((pool, made[1]), (twin, twins["plain"][2][1])):
        with pytest.raises(Conflict):
            each.resolve(decision.ticket, loss=0.123)
    assert pool.decide("order-1-0") == made[0], "a sealed ticket is not drawn again"
    with pytest.raises(sp.live.UnknownTicket):
        pool.observe("order-9-9", "buy")
    assert [d.action for d in play(pool, 40, seed=2)] == [d.action for d in play(twin, 40, seed=2)]
    assert pool._fold().live_learner.dump() == twin._fold().live_learner.dump()
    sealed(place, pool, tmp_path / "segments")
    play(pool, 10, seed=3)
    report, pool_state = replay(store, name, redraw=True)
    assert report.faults == []
    assert pool_state.dump() == pool._fold().dump()
    check_chain(whole(store, name))


def test_only_what_is_old_enough_and_enough_of_it(sqlite, tmp_path):
    now = [1_000.0]
    pool = sqlite.make(clock=lambda: now[0])
    store = pool._journal.store
    play(pool, 20)
    old = len(sqlite.events())
    now[0] = 10**9 * 9.0  # later than the store's own clock
    play(pool, 5, seed=2)
    few = compact(store, sqlite.name, 86_400, str(tmp_path / "s"), least=old + 1)
    assert (few.events, few.left) == (0, old)
    assert not (tmp_path / "s").exists()
    assert compact(store, sqlite.name, 86_400, str(tmp_path / "s"), least=old).events == old
    assert compact(store, sqlite.name, 86_400, str(tmp_path / "s"), least=1).events == 0
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="older-than"):
            compact(store, sqlite.name, bad, str(tmp_path / "s"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is no folder"):
        compact(store, sqlite.name, 0, str(tmp_path / "file"), 1)


@pytest.mark.parametrize("after", ["write", "seal", "drop"])
def test_a_compaction_that_is_stopped_loses_nothing(sqlite, tmp_path, after, monkeypatch):
    pool = sqlite.make()
    play(pool, 60)
    events = sqlite.events()
    store, batch = pool._journal.store, type(pool._journal.store).batch

    class Stop(Exception):  # noqa: N818
        pass

    class Batches:
        count = 0

    def counted(self, name):
        Batches.count += 1
        if Batches.count == {"write": 3, "seal": 4, "drop": 5}[after]:
            raise Stop
        return batch(self, name)

    monkeypatch.setattr(type(store), "batch", counted)
    with pytest.raises(Stop):
        compact(store, sqlite.name, 0.0, str(tmp_path / "s"), 1)
    monkeypatch.setattr(type(store), "batch", batch)
    assert whole(store, sqlite.name) == events
    assert replay(store, sqlite.name)[0].faults == []
    compact(store, sqlite.name, 0.0, str(tmp_path / "s"), 1)
    assert sqlite.events() == []
    assert whole(store, sqlite.name) == events


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_every_flipped_bit_of_a_segment_shows(sqlite, tmp_path):
    pool = sqlite.make()
    play(pool, 30)
    sealed(sqlite, pool, tmp_path / "s")
    [file] = (tmp_path / "s").iterdir()
    size = file.stat().st_size
    for at in np.random.default_rng(0).integers(0, size, 40):
        flip(file, at)
        with closing(sqlite.store()) as again:
            try:
                faults = replay(again, sqlite.name)[0].faults
            except ValueError as error:
                faults = [str(error)]
            assert faults, f"byte {at} of {size}"
        flip(file, at)
    with closing(sqlite.store()) as again:
        assert replay(again, sqlite.name)[0].faults == []


def test_a_missing_segment_is_said_in_one_sentence(sqlite, tmp_path):
    pool = sqlite.make()
    play(pool, 30)
    sealed(sqlite, pool, tmp_path / "s")
    [file] = (tmp_path / "s").iterdir()
    kept = file.read_bytes()
    file.unlink()
    with closing(sqlite.store()) as again:
        with pytest.raises(StoreUnavailable, match="put it back there"):
            sp.Pool.open(again, sqlite.name)
        file.write_bytes(kept[:100])
        with pytest.raises(Damaged, match="shorter than it says"):
            sp.Pool.open(again, sqlite.name)
        file.write_bytes(kept)
        sp.Pool.open(again, sqlite.name).decide()


def test_segments_in_an_object_store(sqlite):
    fsspec = pytest.importorskip("fsspec")

    class Elsewhere(fsspec.get_filesystem_class("memory")):
        """Under another name, as what is in memory is no place to keep a journal."""

        protocol = "elsewhere"

        @classmethod
        def _strip_protocol(cls, path):
            return super()._strip_protocol(path.removeprefix("elsewhere://"))

    fsspec.register_implementation("elsewhere", Elsewhere, clobber=True)
    pool = sqlite.make()
    play(pool, 30)
    events = sqlite.events()
    store, found = sealed(sqlite, pool, "elsewhere://bucket/segments")
    assert found.events == len(events)
    assert whole(store, sqlite.name) == events
    assert len(fsspec.filesystem("memory").ls("/bucket/segments")) == found.segments


@pytest.mark.parametrize("place", ["memory://s", "simplecache::memory://s", "file://relative/s"])
def test_a_place_that_keeps_nothing_is_refused(sqlite, place):
    pool = sqlite.make()
    play(pool, 30)
    pool.close()
    events = sqlite.events()
    done = statepool("compact", sqlite.url, "--older-than", "0s", "--least", "1", "--place", place)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert "place: " in done.stderr
    assert sqlite.events() == events


def test_a_folder_is_private_however_it_is_named(sqlite, tmp_path):
    pool = sqlite.make()
    play(pool, 30)
    pool.close()
    command = ("compact", sqlite.url, "--older-than", "0s", "--least", "1", "--json")
    done = statepool(*command, "--place", f"file://{tmp_path}/s")
    assert json.loads(done.stdout)["place"] == str(tmp_path / "s")
    [segment] = (tmp_path / "s").iterdir()
    assert [each.stat().st_mode & 0o777 for each in (tmp_path / "s", segment)] == [0o700, 0o600]
    with closing(sqlite.store()) as store, store.view(sqlite.name) as view:
        assert view.sealed()[0].place == str(tmp_path / "s")


NOBODY = 65534


@pytest.fixture
def open_folder():
    """That anybody may pass through; those of pytest are for their owner alone."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_root_seals_belongs_to_the_owner_of_the_file(sqlite, open_folder):
    pool = sqlite.make()
    play(pool, 30)
    pool.close()
    os.chown(sqlite.path, NOBODY, NOBODY)
    command = ("compact", sqlite.url, "--older-than", "0s", "--least", "1", "--place")
    (open_folder / "closed").mkdir(mode=0o700)
    events = sqlite.events()
    for wrong in ("closed", "closed/s"):
        done = statepool(*command, open_folder / wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert f"{open_folder}/{wrong} cannot be read by the user " in done.stderr
        assert (sqlite.events(), os.listdir(open_folder / "closed")) == (events, [])
    done = statepool(*command, open_folder / "new" / "s")
    assert (done.returncode, done.stderr) == (0, "")
    [segment] = (open_folder / "new" / "s").iterdir()
    for each in (open_folder / "new", open_folder / "new" / "s", segment):
        assert (each.stat().st_uid, each.stat().st_gid, each.stat().st_mode & 0o077) == (NOBODY, NOBODY, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="the file must be another's")
def test_somebody_else_seals_nothing_that_the_owner_could_not_read(sqlite, monkeypatch):
    pool = sqlite.make()
    play(pool, 30)
    pool.close()
    events = sqlite.events()
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    done = statepool("compact", sqlite.url, "--older-than", "0s", "--least", "1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert "belongs to the user root, who could not read segments of" in done.stderr
    assert sqlite.events() == events


def test_a_backup_of_a_compacted_store_replays(sqlite, tmp_path):
    from statepool.live.backup import backup, restore

    pool = sqlite.make()
    play(pool, 30)
    sealed(sqlite, pool, tmp_path / "s")
    play(pool, 10, seed=2)
    [copied] = backup(sqlite.url, tmp_path / "b.db", verify=True)
    [again] = restore(tmp_path / "b.db", f"sqlite:///{tmp_path}/r.db", verify=True)
    assert copied.faults == again.faults == ()
    assert Path(tmp_path / "r.db").exists()


def test_a_backup_is_restored_where_its_segments_lie_now(sqlite, server, tmp_path):
    pool = sqlite.make()
    play(pool, 30)
    pool.close()
    done = statepool("compact", sqlite.url, "--older-than", "0s", "--least", "1", "--place", str(tmp_path / "s"))
    assert " events sealed in 1 segment, " in done.stdout
    file, before = tmp_path / "b.db", n_events(sqlite)
    with closing(sqlite.open()) as more:
        more.decide()
    told = f"{sqlite.name}: {before} of {n_events(sqlite)} events are in segments at {tmp_path}"
    assert f"{told}/s, which are not in this file" in statepool("backup", sqlite.url, str(file)).stdout
    (tmp_path / "s").rename(tmp_path / "moved")
    asked = ("restore", str(file), f"sqlite:///{tmp_path}/r.db")
    for wrong in ((), ("--place", str(tmp_path / "nowhere"))):
        done = statepool(*asked, *wrong)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert ".segment is not in" in done.stderr
        assert "--place" in done.stderr
        assert not (tmp_path / "r.db").exists()
    for target in (f"sqlite:///{tmp_path}/r.db", server.emptied()):
        done = statepool("restore", str(file), target, "--place", "moved", "--verify", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"{told}/moved, which must stay there" in done.stdout
        assert "everything agrees" in statepool("replay", target, sqlite.name, "--redraw").stdout


def n_events(place):
    with closing(place.store()) as store, store.view(place.name) as view:
        return view.head().seq


def test_the_command(sqlite, tmp_path):
    pool = sqlite.make()
    play(pool, 30)
    events = sqlite.events()
    pool.close()
    done = statepool("compact", sqlite.url, "--older-than", "0s")
    said = f"nothing sealed, {len(events)} events older than 0s: fewer than 10 000 (--least) are left where they are"
    assert done.stdout == f"{sqlite.name}: {said}\n"
    done = statepool("compact", sqlite.url, "--older-than", "0s", "--least", "1", "--json")
    assert done.returncode == 0, done.stderr
    [told] = json.loads(done.stdout)["pools"]
    assert (told["events"], sqlite.events()) == (len(events), [])
    assert "everything agrees" in statepool("replay", sqlite.url, sqlite.name, "--redraw").stdout
    for bad in (("--older-than", "soon"), ("nobody",), ("--place", "nothing://x"), ("--least", "0")):
        done = statepool("compact", sqlite.url, *bad)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (bad, done.stderr)
    assert "least: is 0" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_gives_nothing_but_the_folder_away(tmp_path, monkeypatch):
    """Who may write beside it puts a link in its place, right after it was made."""
    store, secret = tmp_path / "shop" / "pool.db", tmp_path / "secret"
    store.parent.mkdir()
    store.touch()
    secret.touch()
    for path in (store.parent, store):
        os.chown(path, 65534, 65534)
    monkeypatch.setattr("statepool.live.stores.owners._may_pass", lambda owner, folder: True)
    real = Path.mkdir

    def mkdir(path, *given, **more):
        real(path, *given, **more)
        path.rmdir()
        path.symlink_to(secret)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(ValueError, match="cannot be made"):
        make_folder(store.parent / "segments", str(store))
    assert secret.stat().st_uid == 0


def test_a_clock_that_was_ahead_keeps_nothing_from_being_sealed(place, tmp_path):
    """What was written after an event is younger than it, whatever its stamp says."""
    now = [time.time() - 200 * 86_400]
    pool = place.make(clock=lambda: now[0])
    play(pool, 10)
    now[0] += 230 * 86_400
    pool.decide()
    now[0] -= 230 * 86_400
    play(pool, 10, seed=2)
    before = n_events(place)
    now[0] = time.time()
    pool.decide()
    done = compact(pool._journal.store, place.name, 90 * 86_400, str(tmp_path), 1)
    assert (done.events, done.left) == (before, 0)
    assert replay(pool._journal.store, place.name)[0].faults == []


def test_who_shares_a_database_is_told_where_its_segments_must_be_found(server, tmp_path):
    place = PostgresPlace(server.emptied())
    with closing(place.make()) as pool:
        play(pool, 30)
        pool.settle()
    done = statepool("compact", place.url, "--older-than", "0s", "--least", "1", "--place", "s", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/s is a folder of this machine" in done.stderr
