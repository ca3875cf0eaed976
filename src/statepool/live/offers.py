"""What a request may be answered with: actions and their rows of P, of its context or brought along by its caller."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np

from statepool.checks import Floats, Ints
from statepool.live.catalogue import Catalogue, check_label, check_rows, offered, table_of

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
    context: Any = None
    """Whose actions these are, if they are a context's."""


class Offers:
    """All offers as of one change of the catalogue: a value, though the catalogue goes on."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._n_states = len(catalogue.states)
        self._actions, self._numbers = catalogue.actions, catalogue.number_of_action  # which only grow
        self._n_actions = len(catalogue.actions)
        self._tables, self._n_first = catalogue.tables, catalogue.n_first
        if self._tables:
            self._active, self._handicaps, self._came = catalogue.active()[1:]
            self._rows = catalogue.rows().copy()

    def of_context(self, context: Any) -> Offer:
        """The active actions, with their rows in a context where it has some, that it may be answered with.

        An action that came after the contexts were given has one row for all.
        """
        table = table_of(self._tables, context)
        numbers, P = offered(table, self._active, self._n_first, self._rows)
        if not numbers.size:
            raise ValueError(f"context: {context!r} has no active action, expected one that may be played")
        places = np.searchsorted(self._active, numbers)
        labels = [self._actions[number] for number in numbers]
        label = check_label(context, "context")
        return Offer(labels, numbers, P, self._handicaps[places], self._came[places], context=label)

    def of_candidates(self, candidates: Any) -> Offer:
        """What a caller brought, checked."""
        if not isinstance(candidates, Mapping):
            raise ValueError(f"candidates: is {type(candidates).__name__}, expected {{action: row}}")
        if not 0 < len(candidates) <= MOST_CANDIDATES:
            raise ValueError(f"candidates: has {len(candidates)}, expected 1 to {MOST_CANDIDATES}")
        labels = [check_label(label, "candidates") for label in candidates]
        rows = check_rows(list(candidates.values()), self._n_states, labels)
        return self.of_brought(labels, rows)

    def of_brought(self, labels: list[Any], rows: Floats) -> Offer:
        """Candidates that were brought, now or when they were journaled."""
        known = [self._number(check_label(label, "candidates")) for label in labels]
        numbers = np.array([-1 - place if number is None else number for place, number in enumerate(known)])
        zeros = np.zeros(len(labels))
        return Offer(labels, numbers, rows, zeros, zeros.astype(np.int64), digest_of(labels, rows))

    def _number(self, label: Any) -> int | None:
        """Of an action that there was already."""
        number = self._numbers.get(label)
        return number if number is not None and number < self._n_actions else None

    def digest(self) -> bytes:
        """Of all that the offers of contexts are made from."""
        whole = blake2b(digest_size=DIGEST_BYTES)
        if self._tables:
            for label, (numbers, rows) in self._tables.items():
                whole.update(msgspec.msgpack.encode([label, rows.shape]) + numbers.tobytes() + rows.tobytes())
            for values in (self._active, self._handicaps, self._came, self._rows):
                whole.update(values.tobytes())
        return whole.digest()


def digest_of(labels: list[Any], rows: Floats) -> bytes:
    """What candidates are told apart by; their order counts, as it does for the draw."""
    content = msgspec.msgpack.encode([labels, rows.tobytes()])
    return blake2b(content, digest_size=DIGEST_BYTES).digest()
