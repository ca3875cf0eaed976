"""What a request may be answered with: actions and their rows of P, of its context or brought along by its caller."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np

from statepool.checks import Floats, Ints
from statepool.live.catalogue import Catalogue, check_label, check_rows

DIGEST_BYTES = 16
MOST_CANDIDATES = 100_000


class Offer(NamedTuple):
    """One row of `P` a candidate; `numbers` are theirs in the catalogue, negative for those that it does not have."""

    labels: list[Any]
    numbers: Ints
    P: Floats
    handicaps: Floats
    came: Ints
    digest: bytes = b""
    """Of candidates that the caller brought."""


def offer_of_context(catalogue: Catalogue, context: Any) -> Offer:
    """The active actions, with their rows in a context."""
    P, numbers, handicaps, came = catalogue.active_in(context)
    return Offer([catalogue.actions[number] for number in numbers], numbers, P, handicaps, came)


def offer_of_candidates(catalogue: Catalogue, candidates: Any) -> Offer:
    """What a caller brought, checked."""
    if not isinstance(candidates, Mapping):
        raise ValueError(f"candidates: is {type(candidates).__name__}, expected {{action: row}}")
    if not 0 < len(candidates) <= MOST_CANDIDATES:
        raise ValueError(f"candidates: has {len(candidates)}, expected 1 to {MOST_CANDIDATES}")
    labels = [check_label(label, "candidates") for label in candidates]
    rows = check_rows(list(candidates.values()), len(catalogue.states), labels)
    return brought_offer(catalogue, labels, rows)


def brought_offer(catalogue: Catalogue, labels: list[Any], rows: Floats) -> Offer:
    """The offer of candidates that were brought, now or when they were journaled."""
    known = [catalogue.number_of_action.get(check_label(label, "candidates")) for label in labels]
    numbers = np.array([-1 - place if number is None else number for place, number in enumerate(known)])
    zeros = np.zeros(len(labels))
    return Offer(labels, numbers, rows, zeros, zeros.astype(np.int64), digest_of(labels, rows))


def digest_of(labels: list[Any], rows: Floats) -> bytes:
    """What candidates are told apart by; their order counts, as it does for the draw."""
    content = msgspec.msgpack.encode([labels, rows.tobytes()])
    return blake2b(content, digest_size=DIGEST_BYTES).digest()
