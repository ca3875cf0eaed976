"""A learner's rule, one call at a time from Python: what `Player`, live pools and replay drive."""

from __future__ import annotations

from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.compiling import entry_point
from statepool.learners.contract import Learner, Played, Problem, Rows, advance, learn, policy, remember, see
from statepool.learners.outside import explained, suited

ADVANCE, POLICY, REMEMBER, SEE, LEARN = range(5)
NO_DECISION = Played(0, 0.0, 0, 0, 0, 0.0)
NO_ROWS = Rows(np.zeros((0, 0)), np.zeros(0, np.int64), 0, False)
NOTHING: Floats = np.zeros(0)
NO_TABLE: Floats = np.zeros((0, 0))
FAR = 64
"""Numbers between two arrays that compiled loops treat as apart for certain."""


@entry_point
def step(
    memory: Any, what: int, rows: Any, played: Any, t: int, number: float, sign: float, x: Any, table: Any
) -> None:  # fmt: skip
    """One of the rule's functions, by its place above: together they are compiled once."""
    if what == ADVANCE:
        advance(memory, t, number)
    elif what == POLICY:
        policy(memory, rows, t, x)
    elif what == REMEMBER:
        for i in range(table.shape[0]):  # one row for each state, that of `played` first
            remember(memory, rows, x, t, played.state + i, table[i])
    elif what == SEE:
        see(memory, played, x)
    else:
        learn(memory, played, number, x, sign)


class Stepper:
    """One memory of a learner, and its rule's functions.

    Parameters
    ----------
    learner : Learner
        The settings.
    problem : Problem
        What it knows before the first round.
    state : bytes, optional
        What `dump` has returned before, to go on from there.
    """

    def __init__(self, learner: Learner, problem: Problem, state: bytes | None = None) -> None:
        self.learner, self.problem = learner, problem
        self.memory = learner.start(problem)
        self.width = learner.saved_width(problem)
        if state is not None:
            self.load(state)

    def advance(self, t: int, now: float) -> None:
        """Round t begins, at time `now`."""
        self._step(ADVANCE, t=t, number=now)

    def policy(self, rows: Rows, t: int) -> Floats:
        """The probability of each action on offer in round t."""
        # Compiled loops sum in another order where one array begins less than some hundred bytes after another. A
        # policy must be the same to the bit wherever its array happens to lie.
        out = np.empty(rows.actions.size + 2 * FAR)[FAR:-FAR]
        # A rule may leave `out` as it was where rows do not vary; here it is new.
        self._step(POLICY, rows=rows._replace(vary=True), t=t, x=out)
        return out

    def remember(self, rows: Rows, policy: Floats, choice: int, state: int) -> Floats:
        """What learning from a decision needs, of which the action and the state are known."""
        table = np.zeros((1, sum(self.width)))
        self._step(REMEMBER, rows=rows, played=NO_DECISION._replace(state=state), t=choice, x=policy, table=table)
        return table[0]

    def saved_by_state(self, rows: Rows, policy: Floats) -> Floats:
        """The first part of what decisions save, one row for each state."""
        table = np.zeros((self.problem.n_states, sum(self.width)))
        self._step(REMEMBER, rows=rows, x=policy, table=table)
        return table[:, : self.width[0]]

    def saved_by_decision(self, rows: Rows, policy: Floats, choice: int) -> Floats:
        """The second part, of the action at this position of the request's rows."""
        return self.remember(rows, policy, choice, 0)[self.width[0] :] if self.width[1] else NOTHING

    def see(self, played: Played, saved: Floats) -> None:
        """The state of a decision is known."""
        self._step(SEE, played=played, x=saved)

    def learn(self, played: Played, loss: float, saved: Floats, sign: float = 1.0) -> None:
        """The outcome of a decision has come, or (`sign` -1) is taken back."""
        self._step(LEARN, played=played, number=loss, sign=sign, x=saved)

    def grow(self, problem: Problem) -> Stepper:
        """The same for another catalogue, or another window."""
        if self.learner.exposure and (problem.window is None) != (self.problem.window is None):
            name = type(self.learner).__name__
            raise ValueError(f"window: a pool of {name} has one from the start or none, expected a new pool")
        grown = Stepper(self.learner, problem)
        grown.memory = self.learner.grow(self.memory, self.problem, problem)
        return grown

    def dump(self) -> bytes:
        """The numbers of the memory."""
        return b"".join(array.tobytes() for array in self.arrays())

    def load(self, state: bytes) -> None:
        """The numbers of a memory of the same shape, back into this one."""
        arrays = self.arrays()
        if sum(array.nbytes for array in arrays) != len(state):
            raise ValueError(
                f"state: has {len(state)} bytes, expected {sum(array.nbytes for array in arrays)} for {self.learner}"
            )
        place = 0
        for array in arrays:
            array[...] = np.frombuffer(state, array.dtype, array.size, place).reshape(array.shape)
            place += array.nbytes

    def arrays(self) -> list[Any]:
        """The arrays of the memory, in their order, without those that hold intermediate results."""
        fields = zip(self.memory._fields, self.memory, strict=True)
        return [array for name, part in fields if name not in self.learner.scratch for array in _arrays(part)]

    def _step(
        self, what: int, rows: Rows = NO_ROWS, played: Played = NO_DECISION, t: int = 0, number: float = 0.0,
        sign: float = 1.0, x: Floats = NOTHING, table: Floats = NO_TABLE,
    ) -> None:  # fmt: skip
        with explained(self.learner, self.memory):
            suited(step, self.memory)(self.memory, what, rows, played, t, float(number), sign, x, table)


def _arrays(memory: Any) -> list[Any]:
    """The arrays of a memory, in their order."""
    if isinstance(memory, tuple):
        return [array for part in memory for array in _arrays(part)]
    return [memory] if isinstance(memory, np.ndarray) else []
