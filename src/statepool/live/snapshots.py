"""A snapshot as stored: a checksum, then what it is of (format, rule, event and its hash), then the pool's state.

A snapshot is a cache. One that is damaged, or of another format, rule or journal, is refused, and the journal is folded
anew.
"""

from hashlib import sha256
from typing import NamedTuple

import msgspec

from statepool.live.format import FORMAT, RULE

CHECKSUM_BYTES = 32
OF_THE_FIRST_RELEASE = b"\x88\xa3seq"
"""How its snapshots begin: a map of eight, with no checksum before it."""


class Snapshot(NamedTuple):
    format: int
    rule: int
    seq: int
    hash: bytes
    """Of the event `seq`, so that a snapshot of another journal is told apart."""
    state: bytes


class UnusableSnapshot(ValueError):  # noqa: N818
    """This snapshot cannot be used; the journal can."""


class Outdated(UnusableSnapshot):
    """It is whole, and of another release: nothing is wrong with it, and nothing reads it any more."""


def seal(seq: int, digest: bytes, state: bytes) -> bytes:
    """The bytes to store."""
    body = msgspec.msgpack.encode((FORMAT, RULE, seq, digest, state))
    return sha256(body).digest() + body


def unseal(stored_seq: int, blob: bytes) -> Snapshot:
    """The snapshot of its bytes; raises `Refused` for all that this release did not write like that."""
    checksum, body = blob[:CHECKSUM_BYTES], blob[CHECKSUM_BYTES:]
    if sha256(body).digest() != checksum:
        if blob.startswith(OF_THE_FIRST_RELEASE):
            raise Outdated(f"the snapshot after event {stored_seq} is of another release")
        raise UnusableSnapshot(
            f"the snapshot after event {stored_seq} is damaged: its checksum is not that of its bytes"
        )
    snapshot = Snapshot(*msgspec.msgpack.decode(body))
    if (snapshot.format, snapshot.rule) != (FORMAT, RULE):
        raise Outdated(f"the snapshot after event {stored_seq} is of another release")
    if snapshot.seq != stored_seq:
        raise UnusableSnapshot(f"the snapshot is stored as that of event {stored_seq}, and is of event {snapshot.seq}")
    return snapshot
