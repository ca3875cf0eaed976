"""What every store must do: one suite, run on SQLite and on PostgreSQL."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import journals
import pytest
from journals import append, body_of, decide, made, write

from statepool.live.errors import Conflict, Damaged, StoreUnavailable
from statepool.live.events import Decided, Kind, columns_of, encode
from statepool.live.luck import mint
from statepool.live.stores import open_store
from statepool.live.stores.store import Call, Entry, Head, Key, Overdue, Standing, Store

NOTHING = Head(0, b"", 0)


class MadeUpError(Exception):
    pass


def journal(store: Store) -> list[Entry]:
    with store.view("home") as view:
        return list(view.entries())


def plays_pending(store: Store, before: int | None = None, limit: int | None = None) -> list[int]:
    with store.view("home") as view:
        return [overdue.number for overdue in view.pending(before, limit)]


def test_pools_are_made_once_and_sorted(store: Store) -> None:
    for name in ("b", "a", "ü 'quoted'", "a", "home"):
        store.ensure(name)
    assert store.pools() == ["a", "b", "home", "ü 'quoted'"]


def test_racing_callers_make_one_pool(store: Store) -> None:
    threads = [threading.Thread(target=store.ensure, args=("new",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.pools() == ["home", "new"]


def test_an_unknown_pool_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="no pool 'nowhere'"), store.batch("nowhere"):
        pass
    with pytest.raises(ValueError, match="no pool 'nowhere'"), store.view("nowhere"):
        pass


def test_an_empty_pool(store: Store) -> None:
    with store.view("home") as view:
        assert view.head() == NOTHING
        assert list(view.entries()) == view.catalogue() == view.pending() == []
        assert view.snapshot() is None
        assert view.n_pending() == 0
        assert view.bodies(["t"]) == view.bodies([]) == {}
        with pytest.raises(Damaged, match="no event 1"):
            view.linked(1)


def test_what_was_appended_is_read_back(store: Store) -> None:
    awkward = Entry(1, "catalogue", None, None, bytes(range(256)), b"\x00")
    with store.batch("home") as batch:
        batch.append([awkward], Head(1, b"\x00", 0))
        entries = append(batch, [("decision", "t'\"%s ü", None), ("refresh", None, None)])
        batch.append([], batch.head())
        assert list(batch.entries()) == [awkward, *entries]
    with store.view("home") as view:
        assert view.head() == Head(3, entries[-1].hash, 1)
        assert list(view.entries()) == [awkward, *entries]
        assert all(type(entry) is Entry for entry in view.entries())
        assert view.linked(1) == (b"", awkward)
        assert view.linked(2) == (b"\x00", entries[0])


def test_entries_after_a_place_and_without_a_kind(store: Store) -> None:
    with store.batch("home") as batch:
        entries = append(batch, [("decision", str(i), None) if i % 3 else ("refresh", None, None) for i in range(2500)])
    with store.view("home") as view:
        assert list(view.entries(after=2000)) == entries[2000:]
        assert list(view.entries(after=2500)) == []
        assert list(view.entries(without="decision")) == entries[::3]
        assert list(view.entries(after=1, without="refresh")) == [e for e in entries[1:] if e.kind == "decision"]


def test_the_catalogue_alone(store: Store) -> None:
    entries = write(store, ("catalogue", None, None), ("decision", "t", None), ("catalogue", None, None))
    with store.view("home") as view:
        assert view.catalogue() == [entries[0].seq, entries[2].seq]
        third = entries[2].seq
        assert list(view.linked_catalogue(1, third)) == [(entries[1].hash, entries[2])] == [view.linked(third)]
        assert list(view.linked_catalogue(1, third - 1)) == []


def test_bodies_of_tickets(store: Store) -> None:
    write(store, ("decision", "a", None), ("state", "a", 0), ("decision", "b", None), ("refresh", None, None))
    with store.batch("home") as batch:
        append(batch, [("outcome", "b", 1)])
        of_b = {"decision": body_of("decision", "b", 1, 3), "outcome": body_of("outcome", "b", 1, 5)}
        assert batch.bodies(["b"]) == {"b": of_b}
    of_a = {"decision": body_of("decision", "a", 0, 1), "state": body_of("state", "a", 0, 2)}
    with store.view("home") as view:
        assert view.bodies(["a", "missing", "a"]) == {"a": of_a}
        assert view.bodies_of([1, 0, 7, 1]) == {0: of_a, 1: of_b}
        assert view.bodies_of([]) == {}
        assert [entry.kind for entry in view.entries_of("b")] == ["decision", "outcome"]
        assert view.entries_of("missing") == []


def test_a_ticket_that_was_minted_is_found_by_its_number(store: Store) -> None:
    """Nothing is kept of it beside its decision, and another one of the same number is not taken for it."""
    minted = (b"secret", b"epoch1", 1), (b"other", b"epoch1", 1), (b"secret", b"epoch1", 7)
    own, *others = (mint(*each)[0] for each in minted)
    bodies = [encode(Decided(5, ticket, number, 1, 0, 0.5, False)) for number, ticket in enumerate(["a", own])]
    event = Decided(5, own, 1, 1, 0, 0.5, False, minted=True)
    assert columns_of(event) == ("decision", None, 1)
    bodies[1] = encode(event)
    entries = [Entry(1, "decision", "a", 0, bodies[0], b"1"), Entry(2, "decision", None, 1, bodies[1], b"2")]
    with store.batch("home") as batch:
        batch.append(entries, Head(2, b"2", 2), [Overdue(0, "a", 5), Overdue(1, own, 5)])
    write(store, ("outcome", None, 1))
    with store.view("home") as view:
        found = view.bodies([own, *others, "a"])
        assert found.keys() == {own, "a"}
        assert found[own].keys() == {"decision", "outcome"}
        assert [entry.seq for entry in view.entries_of(own)] == [2, 3]
        assert view.pending() == [Overdue(0, "a", 5)]


@pytest.mark.parametrize("kind", ["decision", "state", "outcome", "expiry", "correction"])
def test_a_decision_has_one_event_of_a_kind(store: Store, kind: Kind) -> None:
    """Whatever its ticket."""
    decide(store, "a")
    if kind == "decision":
        entry = Entry(2, kind, "b", 0, body_of(kind, "b", 0, 2), b"2")
        with pytest.raises(ValueError, match="without a gap"), store.batch("home") as batch:
            batch.append([entry], Head(2, b"2", 2))
        return
    write(store, (kind, "a", 0))
    with pytest.raises(Conflict):
        write(store, (kind, "a", 0))
    assert len(journal(store)) == 2


def test_pools_do_not_see_each_other(store: Store) -> None:
    store.ensure("other")
    decide(store, "t")
    with store.batch("other") as batch:
        append(batch, [("catalogue", None, None), ("decision", "t", None), ("outcome", "t", 0)])
        batch.save_snapshot(3, b"other")
    assert len(journal(store)) == 1
    assert plays_pending(store) == [0]
    with store.view("home") as view:
        assert view.snapshot() is None
        assert view.bodies(["t"]) == {"t": {"decision": body_of("decision", "t", 0, 1)}}
        assert view.catalogue() == []


def test_an_exception_rolls_everything_back(store: Store) -> None:
    before = decide(store, "a")

    def fail() -> None:
        with store.batch("home") as batch:
            append(batch, [("decision", "b", None), ("outcome", "a", 0)])
            batch.save_snapshot(2, b"lost")
            assert batch.n_pending() == 1
            raise MadeUpError

    with pytest.raises(MadeUpError):
        fail()
    with store.view("home") as view:
        assert list(view.entries()) == before
        assert view.head() == Head(1, before[-1].hash, 1)
        assert view.pending() == [Overdue(0, "a", 1)]
        assert view.n_pending() == 1
        assert view.snapshot() is None
    assert decide(store, "b")[0].seq == 2


def test_uniqueness_is_held_by_the_table(store: Store) -> None:
    """Mutant "dropping the uniqueness rule"."""
    before = decide(store, "a")
    with pytest.raises(Conflict):
        decide(store, "new", "a")
    with pytest.raises(Conflict):
        write(store, ("state", "a", 0), ("state", "a", 0))
    assert journal(store) == before
    assert plays_pending(store) == [0]
    assert len(write(store, ("state", "a", 0), ("outcome", "a", 0))) == 2


def test_a_batch_that_failed_keeps_nothing_even_if_the_error_is_swallowed(store: Store) -> None:
    before = decide(store, "a")

    def swallow() -> None:
        with store.batch("home") as batch:
            with suppress(Conflict):
                append(batch, [("decision", "b", None), ("decision", "a", None)])
                batch.n_pending()
            batch.save_snapshot(1, b"")

    with pytest.raises(Conflict):
        swallow()
    assert journal(store) == before


@pytest.mark.parametrize(
    ("first", "second", "seq"), [(2, 3, 3), (3, 4, 4), (2, 4, 4), (3, 2, 3), (2, 3, 2), (2, 2, 3), (1, 2, 2)]
)
def test_gaps_are_refused(store: Store, first: int, second: int, seq: int) -> None:
    decide(store, "a")
    entries = [Entry(s, "refresh", None, None, b"", b"") for s in (first, second)]
    if (first, second, seq) == (2, 3, 3):
        with store.batch("home") as batch:
            batch.append(entries, Head(seq, b"", 1))
        return
    with pytest.raises(ValueError, match="without a gap"), store.batch("home") as batch:
        batch.append(entries, Head(seq, b"", 1))
    assert len(journal(store)) == 1


@pytest.mark.parametrize(("number", "decisions"), [(0, 2), (1, 1), (2, 2)])
def test_decisions_are_counted(store: Store, number: int, decisions: int) -> None:
    decide(store, "a")
    with pytest.raises(ValueError, match="without a gap"), store.batch("home") as batch:
        batch.append(
            [Entry(2, "decision", "b", number, body_of("decision", "b", number, 2), b"")], Head(2, b"", decisions)
        )


@pytest.mark.parametrize("opened", [[], [Overdue(1, "a", 1)], [Overdue(0, "a", 1), Overdue(1, "b", 1)]])
def test_a_decision_that_is_not_opened_is_refused(store: Store, opened: list[Overdue]) -> None:
    with pytest.raises(ValueError, match="opened"), store.batch("home") as batch:
        batch.append([Entry(1, "decision", "a", 0, body_of("decision", "a", 0, 1), b"")], Head(1, b"", 1), opened)
    assert journal(store) == []


def test_pending_until_an_outcome_or_an_expiry(store: Store) -> None:
    decide(store, "a", "b", "c", "d")
    write(store, ("outcome", "b", 1), ("state", "a", 0), ("decision", "e", None), ("outcome", "e", 4))
    assert plays_pending(store) == [0, 2, 3]
    write(store, ("expiry", "d", 3))
    write(store, ("correction", "d", 3), ("outcome", "d", 3))  # ends nothing that has ended
    with store.view("home") as view:
        assert view.pending() == [Overdue(0, "a", 1), Overdue(2, "c", 3)]
        assert view.n_pending() == 2
    with store.batch("home") as batch:
        append(batch, [("expiry", "a", 0)])
        assert batch.n_pending() == len(batch.pending()) == 1


def test_pending_before_a_time_though_clocks_step_back(store: Store) -> None:
    for ticket, at in (("a", 30), ("b", 10), ("c", 50), ("d", 20), ("e", 10)):
        decide(store, ticket, at=at)
    assert plays_pending(store, before=10) == []
    assert plays_pending(store, before=30) == [1, 3, 4]
    assert plays_pending(store, before=31) == [0, 1, 3, 4]
    assert plays_pending(store, before=31, limit=2) == [0, 1]
    assert plays_pending(store, before=30, limit=3) == [1, 3, 4]
    assert plays_pending(store, before=30, limit=0) == plays_pending(store, limit=0) == []
    assert plays_pending(store, limit=2) == [0, 1]


def test_the_last_snapshot_stays(store: Store) -> None:
    for seq, blob in ((1, b"one"), (2, bytes(3_000_000))):
        decide(store, str(seq))
        with store.batch("home") as batch:
            batch.save_snapshot(seq, blob)
            assert batch.snapshot() == (seq, blob)
    with store.view("home") as view:
        assert view.snapshot() == (2, bytes(3_000_000))


def test_keys(store: Store) -> None:
    store.add_key("shop", "h1", "decide")
    store.add_key("desk", "h2", "admin")
    with pytest.raises(ValueError, match="'shop'"):
        store.add_key("shop", "h3", "admin")
    assert store.keys() == [Key("desk", "h2", "admin"), Key("shop", "h1", "decide")]
    assert store.drop_key("shop")
    assert not store.drop_key("shop")
    assert store.keys() == [Key("desk", "h2", "admin")]


def test_a_view_stays_as_it_was_beside_a_writer(store: Store) -> None:
    decide(store, "a", "b")
    with store.view("home") as old:
        entries: Iterator[Entry] = old.entries()
        next(entries)
        write(store, ("outcome", "a", 0), ("decision", "c", None))
        assert len(list(entries)) == 1
        assert old.head().seq == 2
        assert [len(old.pending()), old.n_pending()] == [2, 2]
        assert old.bodies(["c"]) == {}
        with store.view("home") as new:
            assert new.head().seq == len(list(new.entries())) == 4
            assert [overdue.ticket for overdue in new.pending()] == ["b", "c"]


def test_a_batch_is_not_seen_before_its_commit(store: Store) -> None:
    with store.batch("home") as batch:
        append(batch, [("decision", "a", None)])
        assert batch.n_pending() == 1
        assert journal(store) == []
    assert len(journal(store)) == 1


def test_what_has_ended_cannot_be_used(store: Store) -> None:
    decide(store, "a")
    with store.view("home") as view:
        entries = view.entries()
    with store.batch("home") as batch:
        pass
    for use in (lambda: next(entries), view.pending, batch.n_pending, lambda: batch.save_snapshot(1, b"")):
        with pytest.raises(ValueError, match="has ended"):
            use()
    with pytest.raises(ValueError, match="has ended"):
        append(batch, [("decision", "b", None)])


def test_threads_take_turns(store: Store) -> None:
    def work(who: int) -> None:
        for number in range(5):
            decide(store, f"{who} {number}")
            plays_pending(store)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.seq for entry in journal(store)] == list(range(1, 41))


def test_racing_callers_open_one_new_store(url: str) -> None:
    stores: list[Store] = []
    threads = [threading.Thread(target=lambda: stores.append(open_store(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.pools() for store in stores] == [[]] * 4
    for store in stores:
        store.close()


def test_processes_take_turns(store: Store, url: str) -> None:
    """Three processes write, this one among them; meanwhile nobody reads past a gap, or half a batch."""
    command = [sys.executable, "-W", "error", str(Path(journals.__file__)), url]
    processes = [subprocess.Popen([*command, who, "40"]) for who in "ab"]
    mine: list[str] = []
    while None in [process.poll() for process in processes]:
        mine += [str(entry.ticket) for entry in decide(store, f"c {len(mine)}", f"c {len(mine) + 1}")]
        entries = journal(store)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert len(entries) % 2 == 0
        time.sleep(0.005)
    assert [process.returncode for process in processes] == [0, 0]
    theirs = [f"{who} {number} {half}" for who in "ab" for number in range(40) for half in "ab"]
    assert sorted(str(entry.ticket) for entry in journal(store)) == sorted([*theirs, *mine])
    assert plays_pending(store) == list(range(160 + len(mine)))
    with store.view("home") as view:
        assert view.n_pending() == view.head().seq == 160 + len(mine)


def test_reopening_goes_on(store: Store, url: str) -> None:
    entries = decide(store, "a", "b")
    store.add_key("shop", "h", "decide")
    store.close()
    again = open_store(url)
    assert again.pools() == ["home"]
    assert again.keys() == [Key("shop", "h", "decide")]
    assert journal(again) == entries
    assert decide(again, "c")[0].seq == 3
    again.close()


def test_closing_twice_is_harmless_and_ends_it(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        decide(store, "a")
    with pytest.raises(StoreUnavailable, match="closed"):
        store.pools()


def test_a_store_that_closes_under_a_view_leaves_it_to_end(store: Store) -> None:
    decide(store, "a")
    with store.view("home") as view:
        store.close()
        assert view.head().seq == len(list(view.entries())) == 1


def test_head_and_entries_must_agree(store: Store) -> None:
    entries, head = made(NOTHING, [("decision", "a", None)])
    with pytest.raises(ValueError, match="without a gap"), store.batch("home") as batch:
        batch.append(entries, head._replace(decisions=0))


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("pool.db", "'pool.db' is no URL.*for a file: sqlite:///pool.db"),
        ("mysql://me:secret@host/db", "'mysql://…' is no URL.*expected sqlite:///"),
        ("password=secret host=db", "what was given is no URL"),
        ("sqlite://pool.db", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///pool.db?mode=ro", "names no file"),
        ("postgresql://me:sec/ret@host/db", "percent-encoded"),
        ("postgresql://me:sec@ret@host/db", "percent-encoded"),
        ("postgresql://me:sec%ret@host/db", "percent-encoded"),
    ],
)
def test_other_urls_are_refused_without_telling_passwords(url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        open_store(url)
    assert "ret" not in str(caught.value)


def test_a_key_is_renewed_with_its_rights(store: Store) -> None:
    store.add_key("shop", "h1", "decide", until=900, pools=("home", "two"))
    assert store.renew_key("shop", "h2", "shop (before)", old_until=500, until=None)
    assert store.renew_key("shop", "h3", "shop (before)", old_until=700, until=800)
    assert store.keys() == [
        Key("shop", "h3", "decide", 800, ("home", "two")),
        Key("shop (before)", "h2", "decide", 700, ("home", "two")),
    ]
    assert store.renew_key("shop", "h4", "shop (before)", old_until=10**9, until=None)
    assert store.keys()[1].until == 800  # never later than it was
    assert not store.renew_key("nobody", "h", "nobody (before)", 1, None)


def test_calls_are_kept_and_the_oldest_make_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sqlite_people", "postgres_people"):
        monkeypatch.setattr(f"statepool.live.stores.{module}.MOST_CALLS", 3)
    for number in range(5):
        store.add_call(Call(number, "boss", "10.0.0.1", "PUT /v1/pools/home", 200, ""))
    assert [call.at for call in store.calls(10)] == [2, 3, 4]
    assert [call.at for call in store.calls(1)] == [4]


def test_where_all_pools_stand(store: Store) -> None:
    store.ensure("another")
    decide(store, "t1", "t2")
    with store.view("home") as view:
        head, [first, _] = view.head(), view.pending()
    clock, pools = store.standings()
    assert pools == {"another": Standing(NOTHING, 0, None), "home": Standing(head, 2, first.at)}
    assert abs(clock / 1e6 - time.time()) < 60
