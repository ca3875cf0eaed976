"""The chain of hashes that holds a journal together: each event's hash is of the one before it and of its own bytes."""

from hashlib import sha256

from statepool.live.errors import Damaged
from statepool.live.events import AnyEvent, decode, erased_of
from statepool.live.stores.store import Entry, View


def chain(before: bytes, body: bytes) -> bytes:
    """The hash of an event: of the one before it, and of its own bytes."""
    return sha256(before + body).digest()


def follows(before: bytes, body: bytes, digest: bytes) -> bool:
    """Whether an event's hash is that of the one before it and of its own bytes, or of those that were erased."""
    if sha256(before + body).digest() == digest:
        return True
    erased = erased_of(body)
    return erased is not None and erased.check == sha256(digest + erased.left).digest()


def read_linked(view: View, seq: int) -> AnyEvent:
    """One event out of the middle of a journal, checked against the one before it."""
    before, entry = view.linked(seq)
    return read_entry(before, entry)


def read_entry(before: bytes, entry: Entry) -> AnyEvent:
    """The event of an entry that follows a hash; a `Damaged` error if it does not."""
    if not follows(before, entry.body, entry.hash):
        raise Damaged(f"event {entry.seq} of the journal is damaged: run `statepool replay` on this store")
    return decode(entry.body)
