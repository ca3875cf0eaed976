"""Where a live pool's chance comes from: keys that only its journal holds. Asking again gives the same number.

A decision whose caller brought a ticket is drawn from a number that follows from the ticket, so that asking again
gives the same action. Any other is drawn from one that follows from its place in the journal. The ticket that it gets
carries the epoch of the process that minted it: a copy of a journal that goes on elsewhere, or a journal that was
restored, mints other tickets for the same places.
"""

from functools import lru_cache
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from statepool.checks import check_whole

KEY_BYTES = 32
PLAY_BYTES = 6
EPOCH_BYTES = 6
PROOF_BYTES = 8
TICKET_LENGTH = 2 * (PLAY_BYTES + EPOCH_BYTES + PROOF_BYTES)


def new_key() -> bytes:
    """A secret, fresh from the system."""
    return token_bytes(KEY_BYTES)


def new_epoch() -> bytes:
    """The name of a stretch of one process's writing, which no other stretch has."""
    return token_bytes(EPOCH_BYTES)


def seed_bytes(seed: int | None) -> bytes:
    """The key of the draws; a seed makes it one that can be guessed, which is for tests."""
    if seed is None:
        return new_key()
    return blake2b(str(check_whole(seed, "seed")).encode(), digest_size=KEY_BYTES).digest()


@lru_cache(maxsize=64)
def _keyed(key: bytes, size: int, person: bytes) -> Any:
    return blake2b(digest_size=size, key=key, person=person)


def _digest(key: bytes, size: int, person: bytes, message: bytes) -> bytes:
    hashing = _keyed(key, size, person).copy()  # half the time of taking the key in anew
    hashing.update(message)
    return bytes(hashing.digest())


def _uniform(seed: bytes, person: bytes, message: bytes) -> float:
    return (int.from_bytes(_digest(seed, 8, person, message), "big") >> 11) * 2.0**-53


def uniform_of_ticket(seed: bytes, ticket: str) -> float:
    """The uniform number in [0, 1) of a ticket that a caller brought."""
    return _uniform(seed, b"", ticket.encode())


def uniform_of_play(seed: bytes, play: int) -> float:
    """The uniform number in [0, 1) of a decision whose caller brought no ticket."""
    return _uniform(seed, b"play", play.to_bytes(PLAY_BYTES, "big"))


def uniform_of_place(seed: bytes, lane: bytes, place: int) -> float:
    """The same for a decision of a lane, which has no place in the journal yet."""
    return _uniform(seed, b"lane", lane + place.to_bytes(PLAY_BYTES, "big"))


def uniform_of(
    seed: bytes, seeded: bool, ticket: str, minted: bool, lane: bytes, place: int, round_played: int
) -> float:
    """The number that a decision is drawn from, unless its caller gave one.

    Where somebody gave the seed, draws follow from the round alone, so that a test can be repeated; else two lanes that
    count the same round draw apart.
    """
    if not minted:
        return uniform_of_ticket(seed, ticket)
    return uniform_of_place(seed, lane, place) if lane and not seeded else uniform_of_play(seed, round_played)


def mint(secret: bytes, epoch: bytes, play: int) -> str:
    """The ticket of a decision whose caller brought none: numbered, which indexes like, and not to be guessed."""
    named = play.to_bytes(PLAY_BYTES, "big") + epoch
    return (named + _digest(secret, PROOF_BYTES, b"ticket", named)).hex()


def epoch_of(ticket: str) -> bytes:
    """The epoch that a minted ticket carries."""
    return bytes.fromhex(ticket)[PLAY_BYTES:-PROOF_BYTES]


def is_minted(secret: bytes, ticket: str) -> bool:
    """Whether this pool, or a copy of it, minted a ticket."""
    if len(ticket) != TICKET_LENGTH or not set(ticket) <= set("0123456789abcdef"):
        return False
    named = bytes.fromhex(ticket)[:-PROOF_BYTES]
    return ticket == mint(secret, named[PLAY_BYTES:], int.from_bytes(named[:PLAY_BYTES], "big"))
