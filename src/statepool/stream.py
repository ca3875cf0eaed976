"""The random numbers of a run: one flat sequence of uniforms, so that compared learners share common random numbers.

Each round takes a number for the action, one for the state and one for the outcome, in that order; an outcome whose
mean is exactly 0 takes none, and the next round takes the next number. Where every action leads to one certain
state, a two-draw stream leaves the state's number out.
"""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, check_whole

Seed = int | np.random.Generator

SEED_GAP = 80_000
"""The default difference between the seeds of a run and of its instance: with equal seeds they share random numbers."""


def generator_of(seed: Seed) -> np.random.Generator:
    """The generator that makes an instance: of a whole number, or the one given, which continues from its state."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_whole(seed, "seed"))


@dataclass(frozen=True)
class Stream:
    """Where a run's numbers come from; reading it twice gives the same numbers."""

    seed: int | None
    generator: np.random.Generator

    @classmethod
    def from_seed(cls, seed: Seed) -> "Stream":
        """From a whole number, or from the state of a NumPy generator (which the run does not advance)."""
        if isinstance(seed, np.random.Generator):
            return cls(None, deepcopy(seed))
        return cls(check_whole(seed, "seed"), np.random.default_rng(seed))

    def uniforms(self, count: int) -> Floats:
        """The first `count` numbers of the stream."""
        return deepcopy(self.generator).random(count)

    def side_generator(self, number: int = 1) -> np.random.Generator:
        """A further, independent source: 1 for learners that draw for themselves, others by their number."""
        if self.seed is not None:
            return np.random.default_rng((self.seed, number))
        return np.random.default_rng(deepcopy(self.generator).integers(1 << 32, size=4 * number)[-4:])

    def key(self) -> NDArray[np.uint64]:
        """One 64-bit number for learners whose draws follow from a key and the round (`learners.draws`)."""
        return self.side_generator().integers(1 << 63, size=1).astype(np.uint64)
