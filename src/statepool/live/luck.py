"""Where a live pool's chance comes from: its seed and the ticket. Asking again gives the same number."""

from functools import lru_cache
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from statepool.checks import check_count

SEED_BYTES = 32
PLAY_BYTES = 6


def seed_bytes(seed: int | None) -> bytes:
    """The seed as journaled; None: fresh from the system, once."""
    if seed is None:
        return token_bytes(SEED_BYTES)
    return blake2b(str(check_count(seed, "seed", lowest=0)).encode(), digest_size=SEED_BYTES).digest()


@lru_cache(maxsize=64)
def _keyed(seed: bytes, size: int, person: bytes) -> Any:
    return blake2b(digest_size=size, key=seed, person=person)


def _digest(seed: bytes, size: int, person: bytes, message: bytes) -> bytes:
    hashing = _keyed(seed, size, person).copy()  # half the time of taking the key in anew
    hashing.update(message)
    return bytes(hashing.digest())


def uniform_of(seed: bytes, ticket: str) -> float:
    """The uniform number in [0, 1) that the ticket's action is drawn from."""
    return (int.from_bytes(_digest(seed, 8, b"", ticket.encode()), "big") >> 11) * 2.0**-53


def mint(seed: bytes, play: int) -> str:
    """The ticket of a decision whose caller brought none: numbered, which indexes like, and not to be guessed."""
    number = play.to_bytes(PLAY_BYTES, "big")
    return number.hex() + _digest(seed, 10, b"ticket", number).hex()


def will_mint(seed: bytes, ticket: str, plays: int) -> bool:
    """Whether a decision still to come would get this very ticket."""
    head = ticket[: 2 * PLAY_BYTES]
    if len(ticket) != 2 * (PLAY_BYTES + 10) or not set(head) <= set("0123456789abcdef"):
        return False
    return int(head, 16) >= plays and ticket == mint(seed, int(head, 16))
