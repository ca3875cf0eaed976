"""Sums that do not depend on the order of what is added: whole numbers of 2^-100, of any size.

A sum may fade, by the round played and never by arrival: what round r added counts exp(log_factor (now - r)) in round
`now`. To stay exact it is kept in blocks of rounds. Inside a block, terms are weighed for the block's end, once, when
they come; only reading fades the blocks. A block that has faded to nothing is dropped, with what still comes for it.
"""

from math import exp, ldexp
from typing import Any

import numpy as np

from statepool.checks import Floats

BITS = 100
SCALE = 2.0**BITS
"""Terms run from e^-32 (the oldest of a block) to 1e200 (a charge): 53 bits are kept of the smallest."""

FADE_OF_BLOCK = 32.0
NOTHING = -700.0


def fixed(value: float) -> int:
    """A whole number of 2^-100; the same for -value, with the other sign."""
    return int(value * SCALE)


class ExactSums:
    """A row of sums, all fading alike (`log_factor` 0: not at all)."""

    def __init__(self, size: int, log_factor: float = 0.0) -> None:
        self.size = size
        self._log_factor = log_factor
        self._length = int(FADE_OF_BLOCK / -log_factor) if log_factor < 0 else 0
        self._blocks: dict[int, list[int]] = {}
        self._oldest = 0

    def add(self, place: int, round_played: int, value: float, sign: int = 1) -> None:
        """Add a term of a round; with sign -1, take back exactly what was added."""
        number, weight = self.block_of(round_played)
        self.put(place, number, sign * value * weight)

    def block_of(self, round_played: int) -> tuple[int, float]:
        """The block that holds a round, and the weight of its terms: the same for all sums that fade alike."""
        if not self._length:
            return 0, 1.0
        number = round_played // self._length
        return number, exp(self._log_factor * ((number + 1) * self._length - round_played))

    def put(self, place: int, number: int, weighed: float) -> None:
        """Add to a block what has been weighed for it."""
        if weighed:
            (self._blocks.get(number) or self._new_block(number))[place] += fixed(weighed)

    def _new_block(self, number: int) -> list[int]:
        block = [0] * self.size
        if number >= self._oldest:
            self._blocks[number] = block
        return block

    def read(self, now: int) -> Floats:
        """The sums as of round `now`."""
        total = np.zeros(self.size)
        for number in sorted(self._blocks):
            weight = exp(self._log_factor * (now - (number + 1) * self._length))
            total += np.array([ldexp(value, -BITS) for value in self._blocks[number]]) * weight
        return total

    def forget(self, now: int) -> None:
        """Drop the blocks that have faded to nothing by round `now`."""
        if self._length:
            self._oldest = max(0, int((now + NOTHING / -self._log_factor) // self._length))
            for number in [number for number in self._blocks if number < self._oldest]:
                del self._blocks[number]

    def clear(self) -> None:
        self._blocks.clear()

    def dump(self) -> list[Any]:
        """For a snapshot: the same sums, the same bytes."""
        rows = ((number, self._blocks[number]) for number in sorted(self._blocks))
        return [self._oldest, [[number, [_to_bytes(value) for value in row]] for number, row in rows if any(row)]]

    def load(self, dumped: list[Any]) -> None:
        self._oldest, blocks = dumped
        self._blocks = {number: [int.from_bytes(value, "big", signed=True) for value in row] for number, row in blocks}


def _to_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
