"""A version of the play: an immutable value that anybody may draw from at any time.

It is a row of parts. A uniform number below the share of the first part draws from that part; else what is left of the
number is stretched to [0, 1) again and handed to the next one. The holdout, if there is one, is the first part; the
learner's own parts follow.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.kernels import dot

TINY = 1e-12
LARGEST = 2.0 / TINY
SLACK = 1e-9


class Part(NamedTuple):
    """A `share` of what the parts before it left: all of it on one `place`, or drawn by cumulative `sums`."""

    share: float
    place: int = -1
    sums: Floats | None = None

    def pick(self, uniform: float) -> int:
        return self.place if self.sums is None else draw_from(self.sums, uniform)


class Drawn(NamedTuple):
    """The number of an action, its probability, whether it was kept from the learner, and what travels with it; where a
    request had an offer, its context, the label of the candidate, and the digest of the rows."""

    action: int
    probability: float
    is_holdout: bool
    carry: bytes = b""
    context: Any = None
    label: Any = None
    digest: bytes = b""


def spread(distribution: Floats, share: float = 1.0) -> Part:
    """A part that is drawn from a distribution."""
    return Part(share, sums=_frozen(np.cumsum(distribution)))


class Known(NamedTuple):
    """All that a learner knew when a version was made, so that requests with rows of their own play from it, too."""

    decisions: int
    clock: bytes
    ids: Ints
    """The actions that sums of actions are of."""
    flat: Floats
    registers: Floats

    @property
    def nbytes(self) -> int:
        """What it takes beside a version, whose actions these are."""
        return len(self.clock) + self.flat.nbytes + self.registers.nbytes


PackedPart = tuple[float, int, bytes | None]
PackedKnown = tuple[int, bytes, bytes, bytes]


class PackedVersion(NamedTuple):
    """All that drawing takes, as plain values, and what requests need, where that travels, too."""

    ids: bytes
    distribution: bytes
    parts: tuple[PackedPart, ...]
    has_holdout: bool
    carries: tuple[tuple[int, ...], bytes] | None
    known: PackedKnown | None


class Version:
    """`distribution` is over `ids`, the numbers of the active actions; `parts` say how it is drawn from.

    `carries` has what travels with each action, a row a state, for learners whose lessons depend on the action.
    """

    __slots__ = ("carries", "distribution", "has_holdout", "ids", "known", "parts")

    def __init__(
        self, ids: Ints, distribution: Floats, parts: tuple[Part, ...], holdout: float, base: Floats | None
    ) -> None:
        if base is not None:
            distribution = (1 - holdout) * distribution + holdout * base
            parts = (spread(base, holdout), *parts)
        if not (distribution >= 0).all() or not abs(distribution.sum() - 1) < SLACK:
            raise ValueError(
                "distribution: what the learner knows gives no distribution, expected probabilities that sum to 1"
            )
        self.ids, self.distribution, self.parts = _frozen(ids), _frozen(distribution), parts
        self.has_holdout = base is not None
        self.carries: Floats | None = None
        self.known: Known | None = None

    def carrying(self, carries: Floats | None, known: Known) -> "Version":
        """The same, with what travels and what was known."""
        other = copy(self)
        other.carries = None if carries is None else _frozen(carries)
        other.known = known
        return other

    @property
    def nbytes(self) -> int:
        """What it takes in memory, but for what was known."""
        tables = [self.ids, self.distribution, self.carries, *(part.sums for part in self.parts)]
        return sum(table.nbytes for table in tables if table is not None)

    def packed(self, with_known: bool) -> PackedVersion:
        """To be drawn from elsewhere, bit for bit; without what was known, no request can be answered there."""
        parts = tuple((share, place, None if sums is None else sums.tobytes()) for share, place, sums in self.parts)
        carries = None if self.carries is None else (self.carries.shape, self.carries.tobytes())
        known = self.known if with_known else None
        packed = known and (known.decisions, known.clock, known.flat.tobytes(), known.registers.tobytes())
        return PackedVersion(self.ids.tobytes(), self.distribution.tobytes(), parts, self.has_holdout, carries, packed)

    @classmethod
    def unpacked(cls, packed: PackedVersion) -> "Version":
        """The version that was packed."""
        version = cls.__new__(cls)
        version.ids, version.distribution = np.frombuffer(packed.ids, np.int64), np.frombuffer(packed.distribution)
        version.parts = tuple(
            Part(share, place, None if sums is None else np.frombuffer(sums)) for share, place, sums in packed.parts
        )
        version.has_holdout, version.known = packed.has_holdout, None
        if packed.known is not None:
            decisions, clock, *tables = packed.known
            version.known = Known(decisions, clock, version.ids, *map(np.frombuffer, tables))
        version.carries = (
            None if packed.carries is None else np.frombuffer(packed.carries[1]).reshape(packed.carries[0])
        )
        return version

    def draw(self, uniform: float) -> Drawn:
        """The action of a uniform number; what is recorded is its probability over all parts together."""
        place, is_holdout = self.find(uniform)
        carry = b"" if self.carries is None else self.carries[place].tobytes()
        return Drawn(self.ids.item(place), min(self.distribution.item(place), 1.0), is_holdout, carry)

    def find(self, uniform: float) -> tuple[int, bool]:
        """The place of the action among `ids`, and whether it is of the holdout."""
        for number, part in enumerate(self.parts):
            if uniform < part.share:
                return part.pick(uniform / part.share), self.has_holdout and not number
            uniform = (uniform - part.share) / (1 - part.share)
        raise ValueError(f"uniform: is {uniform!r}, expected a number in [0, 1)")

    def reach(self, columns: Floats) -> Floats:
        """q, the probability of each state."""
        return np.array([dot(self.distribution, column) for column in columns])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Version) and self._bits() == other._bits()

    __hash__ = None  # type: ignore[assignment]

    def _bits(self) -> tuple[Any, ...]:
        parts = [(share, place, sums is not None and sums.tobytes()) for share, place, sums in self.parts]
        return self.ids.tobytes(), self.distribution.tobytes(), parts, self.has_holdout


def _frozen(values: Any) -> Any:
    """The array, if nobody else can write to it, or a copy; read-only."""
    own = values if values.base is None and values.flags.owndata else values.copy()
    own.setflags(write=False)
    return own


def draw_from(sums: Floats, uniform: float) -> int:
    """The first place whose cumulative probability passes the number: never one of probability 0."""
    total = sums.item(-1)
    place = int(sums.searchsorted(uniform * total, "right"))
    # The product may round up to the total; the place that reaches the total has a probability.
    return place if place < sums.size else int(sums.searchsorted(total, "left"))


def within(distribution: Floats, low: Floats, high: Floats) -> Floats:
    """The distribution clip(c x, low, high) whose sum is 1: proportions are kept wherever no bound is in the way."""
    if high.sum() < 1:  # actions retired since: a decision is worth more than a bound
        high = high / high.sum() if high.sum() > TINY else np.ones(high.size)
    if low.sum() > 1:
        low = low / low.sum()
    floored = np.maximum(distribution, TINY)
    bottom, top = 0.0, 1.0
    while np.clip(top * floored, low, high).sum() < 1 and top < LARGEST:  # bounds may sum to a hair less than 1
        bottom, top = top, 2 * top
    for _ in range(100):  # halving a bracket of doubles a hundred times leaves neighbours
        middle = (bottom + top) / 2
        if np.clip(middle * floored, low, high).sum() < 1:
            bottom = middle
        else:
            top = middle
    fitted = np.clip(top * floored, low, high)
    return np.asarray(fitted / fitted.sum())
