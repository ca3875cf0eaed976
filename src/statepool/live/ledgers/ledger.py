"""A ledger: what a pooled learner keeps of a live pool, and how it makes a version of the play.

It holds exact sums over states and outcomes. For a version these are written into the learner's own memory, and the
learner's own compiled rule plays from there: live and simulated play are one implementation. What the outcome of a
ticket adds is computed from the record of its version, never from what is known by then.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from statepool.checks import Floats, Ints
from statepool.kernels import LARGEST_CHARGE, columns_of
from statepool.learners.learner import Learner, Problem
from statepool.learners.rules import step_act, step_play
from statepool.live.exact import ExactSums
from statepool.live.versions import Part, spread
from statepool.stream import Stream

Record = dict[str, Any]

UNREACHED = 1e-6
"""A state less likely than this counts as one the play could not reach: its estimate, a charge of a million about once
in a million plays, is worth less than a guess."""


class Ledger(ABC):
    """One row of `P` an active action, `ids` their numbers in the catalogue."""

    heeds_states = False
    """Whether a state whose outcome has not come changes the play."""

    learns_map = False

    def __init__(self, learner: Learner, n_states: int) -> None:
        self.learner = learner
        self.n_states = n_states
        self.since = 0
        """Rounds before this one charge nothing any more."""
        self.sums: dict[str, ExactSums] = {"unreached": ExactSums(n_states)}

    def set_actions(self, P: Floats, ids: Ints, handicaps: Floats, added: Ints) -> None:
        """The active actions; `handicaps`: what each was charged, after `added` plays, for states not reached."""
        self.P, self.ids, self.handicaps, self.added = P, ids, handicaps, added
        self.memory = self.learner.start(Problem(P, None, 0, Stream.from_seed(0)))

    def place_of(self, number: int) -> int | None:
        """Where an action stands among the active ones, whose numbers grow."""
        place = int(np.searchsorted(self.ids, number))
        return place if place < len(self.ids) and self.ids[place] == number else None

    def check(self, P: Floats) -> None:
        """Refuse a learner that does not fit the map, before a pool is made of it."""
        self.learner.start(Problem(P[:1], None, 0, Stream.from_seed(0)))

    def columns(self) -> Floats:
        """The map that is played by, transposed."""
        return columns_of(self.P)

    @abstractmethod
    def prepare(self, plays: int) -> None:
        """Write the sums into the memory, for the round after `plays` decisions."""

    def play(self) -> Floats:
        """The distribution of the next action."""
        out = np.empty(len(self.ids))
        step_act(self.memory, 0, 0.5)
        step_play(self.memory, 0, out)
        return out

    def parts(self, play: Floats) -> tuple[Part, ...]:
        """How an action is drawn from that distribution, as the learner itself does."""
        return (spread(play),)

    def record(self, q: Floats) -> Record:
        """What tickets of this version will need."""
        record: Record = {"q": q.tobytes()}
        unreached = np.flatnonzero(q < UNREACHED)
        if unreached.size:
            record["unreached"] = unreached.tolist()
        return record

    def resume(self, record: Record, plays: int) -> None:
        """A version was made, here or elsewhere."""
        for sums in self.sums.values():
            sums.forget(plays)

    def see(self, play: int, action: int, state: int) -> None:  # noqa: B027 most learners need not know
        """A state was seen."""

    def learn(self, record: Record, play: int, state: int, loss: float, sign: int = 1) -> None:
        """The outcome of a round came, or (sign -1) is taken back."""
        for s in record.get("unreached", ()) if play >= self.since else ():
            if s != state:
                self.sums["unreached"].add(s, play, loss, sign)
        self._learn(record, play, state, loss, sign)

    @abstractmethod
    def _learn(self, record: Record, play: int, state: int, loss: float, sign: int) -> None: ...

    def arrive(self, age: int) -> None:  # noqa: B027
        """An outcome came `age` rounds after it was played."""

    def handicap(self, row: Floats, plays: int) -> float:
        """What the past would have charged a row on states that could not be reached: what was lost meanwhile."""
        return float(row @ self.sums["unreached"].read(plays))

    def category_row(self, ids: list[int]) -> Floats | None:
        """The row that actions of a category have shown, where the map is learnt."""
        return None

    def dump(self) -> dict[str, Any]:
        return {name: sums.dump() for name, sums in sorted(self.sums.items())}

    def load(self, dumped: dict[str, Any]) -> None:
        for name, sums in self.sums.items():
            sums.load(dumped[name])


def charge_of(loss: float, q: float) -> float:
    """loss / q, and no more than numbers hold: a map may call a state possible that hardly is."""
    return min(loss / float(q), LARGEST_CHARGE)


def read(record: Record, name: str) -> Floats:
    """A row of numbers of a record."""
    return np.frombuffer(record[name])
