"""Events for the tests of stores: made up, but numbered and pointing back as real ones do."""

import sys
from collections.abc import Sequence

import msgspec

from statepool.live.events import Decided, Kind, encode
from statepool.live.stores import open_store
from statepool.live.stores.store import Batch, Entry, Head, Overdue, Store


def body_of(kind: Kind, ticket: str | None, number: int | None, at: int) -> bytes:
    """The bytes of an event that is not of its kind, unless it is a decision: stores read those."""
    if kind == "decision":
        return encode(Decided(at, ticket or "", number or 0, 1, 0, 0.5, False))
    return msgspec.msgpack.encode([99, at, f"{kind} of {ticket}"])


def made(head: Head, kinds: Sequence[tuple[Kind, str | None, int | None]], at: int = 0) -> tuple[list[Entry], Head]:
    """Entries of (kind, ticket, number) that go on from a head, and the head after them; it numbers decisions."""
    entries: list[Entry] = []
    seq, digest, decisions, epoch = head
    for kind, ticket, given in kinds:
        seq += 1
        number = decisions if kind == "decision" else given
        decisions += kind == "decision"
        digest = f"hash {seq} of {ticket}".encode()
        body = body_of(kind, ticket, number, at or seq)
        column = ticket if kind in ("decision", "rows") else None
        entries.append(Entry(seq, kind, column, number, body, digest))
    return entries, Head(seq, digest, decisions, epoch)


def opened_by(entries: Sequence[Entry]) -> list[Overdue]:
    """The decisions among events, as they become pending."""
    return [Overdue(entry.number or 0, entry.ticket or "", entry.at) for entry in entries if entry.kind == "decision"]


def append(batch: Batch, kinds: Sequence[tuple[Kind, str | None, int | None]], at: int = 0) -> list[Entry]:
    entries, head = made(batch.head(), kinds, at)
    batch.append(entries, head, opened_by(entries))
    return entries


def write(store: Store, *kinds: tuple[Kind, str | None, int | None], at: int = 0) -> list[Entry]:
    """One batch of the pool "home"."""
    with store.batch("home") as batch:
        return append(batch, kinds, at)


def decide(store: Store, *tickets: str, at: int = 0) -> list[Entry]:
    return write(store, *(("decision", ticket, None) for ticket in tickets), at=at)


def run(url: str, who: str, batches: int) -> None:
    """A process that opens the store with others, and decides: two events a batch."""
    store = open_store(url)
    store.ensure("home")
    for number in range(batches):
        decide(store, f"{who} {number} a", f"{who} {number} b")
    store.close()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
