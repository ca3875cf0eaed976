"""Where a live pool's chance comes from: keys that only its journal holds. Asking again gives the same number.

A decision whose caller brought a ticket is drawn from a number that follows from the ticket, so that asking again
gives the same action. Any other is drawn from one that follows from its place in the journal. The ticket that it gets
carries the epoch of the process that minted it: a copy of a journal that goes on elsewhere, or a journal that was
restored, mints other tickets for the same places.
"""

from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, NamedTuple

from statepool.checks import check_whole

KEY_BYTES = 32
NUMBER_BYTES = 6
EPOCH_BYTES = 6
PROOF_BYTES = 8
TICKET_BYTES = NUMBER_BYTES + EPOCH_BYTES + PROOF_BYTES
TICKET_LENGTH = 27
"""Characters, six bits each."""
NUMBER_LENGTH = 8
PADDING = "="
TO_URL, FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
HEX_LENGTH = 2 * TICKET_BYTES
"""Of tickets that earlier releases minted."""
OF_LANE = 1 << (8 * NUMBER_BYTES - 1)
"""Set in the number of a ticket that was minted in a lane."""


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


def uniform_of_number(seed: bytes, number: int) -> float:
    """The uniform number in [0, 1) of a decision whose caller brought no ticket."""
    return _uniform(seed, b"play", number.to_bytes(NUMBER_BYTES, "big"))


def uniform_of_place(seed: bytes, lane: bytes, place: int) -> float:
    """The same for a decision of a lane, which has no place in the journal yet."""
    return _uniform(seed, b"lane", lane + place.to_bytes(NUMBER_BYTES, "big"))


def uniform_of(
    seed: bytes, seeded: bool, ticket: str, minted: bool, lane: bytes, place: int, round_played: int
) -> float:
    """The number that a decision is drawn from, unless its caller gave one.

    Where somebody gave the seed, draws follow from the round alone, so that a test can be repeated; else two lanes that
    count the same round draw apart.
    """
    if not minted:
        return uniform_of_ticket(seed, ticket)
    return uniform_of_place(seed, lane, place) if lane and not seeded else uniform_of_number(seed, round_played)


def mint(secret: bytes, epoch: bytes, number: int) -> tuple[str, bytes]:
    """The ticket of a decision whose caller brought none, numbered and not to be guessed; and what is stored of it
    (`tail_of`).

    It is found by its number. That nobody guesses another's is due to 64 bits that only the pool's secret gives, and
    that two copies of a journal never mint the same to 48 random ones (`new_epoch`).
    """
    text, proof = _minted(secret, number, epoch)
    return text, epoch + proof


def mint_in_lane(secret: bytes, lane: bytes, place: int) -> tuple[str, bytes]:
    """The same in a lane: its number is not that of a decision in the journal, and shows that."""
    return _minted(secret, OF_LANE | place, lane)


def _minted(secret: bytes, number: int, epoch: bytes) -> tuple[str, bytes]:
    named = number.to_bytes(NUMBER_BYTES, "big") + epoch
    proof = _proof(secret, named)
    return _text(named + proof), proof


def _proof(secret: bytes, named: bytes) -> bytes:
    return _digest(secret, PROOF_BYTES, b"ticket", named)


def _text(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).translate(TO_URL)[:TICKET_LENGTH].decode()


class Minted(NamedTuple):
    """What a ticket of the shape that pools mint says; whether one did is for `is_minted`."""

    number: int
    epoch: bytes
    proof: bytes
    in_lane: bool


def read_ticket(ticket: str) -> Minted | None:
    """None: no pool mints such; `in_lane` is not known of one that an earlier release minted."""
    try:
        raw = bytes.fromhex(ticket) if len(ticket) == HEX_LENGTH else _raw(ticket)
    except ValueError:
        return None
    if len(raw) != TICKET_BYTES or ticket not in (raw.hex(), _text(raw)):
        return None
    number = int.from_bytes(raw[:NUMBER_BYTES], "big")
    return Minted(number & ~OF_LANE, raw[NUMBER_BYTES:-PROOF_BYTES], raw[-PROOF_BYTES:], number >= OF_LANE)


def _raw(ticket: str) -> bytes:
    if len(ticket) != TICKET_LENGTH:
        return b""
    return a2b_base64(f"{ticket}{PADDING}".encode().translate(FROM_URL))


def number_of(ticket: str) -> int | None:
    """The decision that a ticket is of, if this release minted it in the journal; whoever looks it up compares."""
    if len(ticket) != TICKET_LENGTH:
        return None
    try:
        raw = a2b_base64(ticket[:NUMBER_LENGTH].encode("ascii", "replace").translate(FROM_URL))
    except ValueError:
        return None
    number = int.from_bytes(raw, "big")
    return number if len(raw) == NUMBER_BYTES and number < OF_LANE else None


def is_minted(secret: bytes, ticket: str) -> bool:
    """Whether this pool, or a copy of it, minted a ticket."""
    read = read_ticket(ticket)
    if read is None:
        return False
    number = read.number | OF_LANE if read.in_lane else read.number
    return read.proof == _proof(secret, number.to_bytes(NUMBER_BYTES, "big") + read.epoch)


def is_minted_for(secret: bytes, ticket: str, lane: bytes, number: int) -> bool:
    """Whether a ticket is the one of the decision of that number, or of that place in a lane.

    A process may play from another's version: outside lanes a ticket says by itself whose epoch it is of.
    """
    read = read_ticket(ticket)
    if read is None or read.number != number or (lane and read.epoch != lane):
        return False
    is_old = len(ticket) == HEX_LENGTH
    return (is_old or read.in_lane == bool(lane)) and is_minted(secret, ticket)


def tail_of(ticket: str, lane: bytes, number: int) -> bytes | None:
    """What is left of a minted ticket without what is known of its decision; None: it does not follow from that."""
    if len(ticket) != TICKET_LENGTH:
        return None
    tail = _raw(ticket)[NUMBER_BYTES:]
    tail = tail.removeprefix(lane) if lane else tail
    return tail if text_of(tail, lane, number) == ticket else None


def text_of(tail: bytes, lane: bytes, number: int) -> str:
    """The ticket again."""
    return _text((number | (OF_LANE if lane else 0)).to_bytes(NUMBER_BYTES, "big") + lane + tail)
