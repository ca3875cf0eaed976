"""The latest version of a pool in one row of the store, for processes that only decide.

Whoever writes a batch hands on what lanes draw from, as of the head that the batch leaves: the version, bit for bit,
and how much was learnt since. A process that finds it with that head draws from it, and need neither follow the journal
nor make the version itself. The row is sealed with a key that follows from what its reader must know of the pool anyway
(labels, keys, settings): one that was damaged, or that is of other actions or of another pool, does not fit, and the
journal is followed as without it.
"""

from hashlib import blake2b
from hmac import compare_digest

import msgspec

from statepool.live.lanes import Published
from statepool.live.versions import PackedVersion, Version

LARGEST = 16 << 10
"""Bytes of a version that is handed on: a larger one costs the log of the database more than it saves."""
SEAL_BYTES = 32


class HandedOn(msgspec.Struct, frozen=True, array_like=True):
    """What lanes draw from as long as the journal ends with event `seq`, of this hash."""

    seq: int
    hash: bytes
    unplayed: int
    version_seq: int
    at: int
    cost: int
    lessons: int
    decisions: int
    version: PackedVersion
    brought: int


_decoder = msgspec.msgpack.Decoder(HandedOn)


class Seal:
    """The key of one catalogue's rows, made once for each."""

    def __init__(self) -> None:
        self._made: tuple[tuple[object, ...], bytes] = (), b""

    def key(self, published: Published) -> bytes:
        """It follows from all that a drawing takes and the row does not hold."""
        playing = published.playing
        # The same list grows with the catalogue, and the number of changes with every change of it.
        of = playing.changes, id(playing.actions), playing.secret, published.refresh_seconds
        if of != self._made[0]:
            facts = [
                playing.changes, playing.actions, playing.has_contexts, playing.secret, playing.seed, playing.seeded,
                published.refresh_seconds, playing.answers.digest(),
            ]  # fmt: skip
            self._made = of, blake2b(msgspec.msgpack.encode(facts), digest_size=SEAL_BYTES).digest()
        return self._made[1]


def hand_on(published: Published, seal: Seal) -> bytes | None:
    """The row of what lanes draw from; None: it is too large."""
    playing = published.playing
    if playing.version.nbytes > LARGEST:
        return None
    row = HandedOn(
        published.seq, published.hash, published.unplayed, playing.seq, playing.at, playing.cost, playing.lessons,
        playing.decisions, playing.version.packed(_is_asked_for_more(published)), published.brought,
    )  # fmt: skip
    body = msgspec.msgpack.encode(row)
    return _seal(seal.key(published), body) + body


def take_up(row: bytes, before: Published, seal: Seal) -> Published | None:
    """What a row hands on, to whoever drew from `before`; None: it does not fit, and the journal is to be followed."""
    body = row[SEAL_BYTES:]
    if not compare_digest(_seal(seal.key(before), body), row[:SEAL_BYTES]):
        return None
    found = _decoder.decode(body)
    playing = before.playing.followed_by(
        Version.unpacked(found.version), found.version_seq, found.at, found.cost, found.lessons, found.decisions
    )
    return Published(playing, found.seq, found.hash, found.unplayed, before.refresh_seconds, found.brought)


def _is_asked_for_more(published: Published) -> bool:
    """Whether requests bring rows of their own here, and what they need is small enough to go with the version."""
    version = published.playing.version
    if version.known is None or not (published.playing.has_contexts or published.brought):
        return False
    return version.nbytes + version.known.nbytes <= LARGEST


def _seal(key: bytes, body: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=SEAL_BYTES).digest()
