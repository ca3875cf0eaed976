"""Apart: one copy of any learner for each context, none of which learns from another: what sharing nothing costs.

Each copy plays the requests of its context as if there were no others, and knows the rows of the actions that its
context may be answered with. It is told the horizon and the delay that it has if contexts are equally frequent.

    Apart()                action-level EXP3 for each context: neither states nor contexts are shared
    Apart(SelfTuned())     pooled through the states, within a context only

Source: ours, for comparison. All contexts must have as many actions; a learner of interleaved copies is refused.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, shown
from statepool.learners import rules
from statepool.learners.action_exp3 import ActionEXP3
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.bank import pick, stack
from statepool.learners.rules import add_rule, is_own

ROUND, ACTION = -2, -1
"""Behind what a copy's own ticket holds: the copy's round, and the action as the copy numbers it."""


@dataclass(frozen=True)
class Apart(Learner):
    """One copy of a learner for each context, none of which learns from another: what sharing nothing costs.

    >>> import statepool as sp
    >>> sp.Apart()
    Apart(learner=ActionEXP3(rate=None, copies=1, mixing=0.0))
    """

    learner: Learner = ActionEXP3()  # noqa: RUF009 (settings are frozen, so sharing one is safe)
    knows_contexts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.learner, Learner) or isinstance(self.learner, Apart) or self.learner.reads_losses:
            raise ValueError(
                f"learner: is {shown(self.learner)}, expected a learner that learns from outcomes, such as StateEXP3()"
            )
        if getattr(self.learner, "copies", 1) != 1:
            raise ValueError(f"learner: is {shown(self.learner)}, expected one without interleaved copies")

    def check_tells_play(self, in_any_context: bool = False) -> None:
        self.learner.check_tells_play()
        super().check_tells_play(in_any_context)

    def start(self, problem: Problem) -> "ApartMemory":
        P = problem.P if problem.contexts is not None else problem.P[None]
        candidates = _candidates(problem)
        copies = [
            self.learner.start(Problem(np.ascontiguousarray(rows[places]), *_share(problem), problem.stream))
            for rows, places in zip(P, candidates, strict=True)
        ]
        if not is_own(type(copies[0])):
            raise ValueError(f"learner: {type(self.learner).__name__} is not of the package, expected one that is")
        contexts = np.zeros(0, np.int64) if problem.contexts is None else problem.contexts
        n_contexts, n_candidates = candidates.shape
        return ApartMemory(
            stack(copies), contexts, candidates, np.zeros(n_contexts, np.int64), np.zeros(3, np.int64),
            np.empty(n_candidates),
        )  # fmt: skip

    def ticket_width(self, problem: Problem) -> int:
        alone = Problem(problem.P if problem.contexts is None else problem.P[0], *_share(problem), problem.stream)
        return self.learner.ticket_width(alone) + 2


def _share(problem: Problem) -> tuple[int | None, int]:
    """The horizon and the delay of one of equally frequent contexts."""
    n = problem.n_contexts
    return None if problem.horizon is None else -(-problem.horizon // n), -(-problem.delay // n)


def _candidates(problem: Problem) -> Ints:
    """The actions of each context."""
    if problem.available is None:
        return np.tile(np.arange(problem.n_actions), (problem.n_contexts, 1))
    counts = problem.available.sum(axis=1)
    if (counts != counts[0]).any():
        other = int((counts != counts[0]).argmax())
        raise ValueError(
            f"available: context 0 has {counts[0]} actions and context {other} has {counts[other]}, "
            "expected as many in each for Apart"
        )
    return np.ascontiguousarray(np.nonzero(problem.available)[1]).reshape(problem.n_contexts, -1)


class ApartMemory(NamedTuple):
    bank: Any
    """The copies' memories, one a context."""
    contexts: Ints
    candidates: Ints
    """Of each context: its actions, in the order in which its copy numbers them."""
    rounds: Ints
    """How many requests of each context were answered."""
    latest: Ints
    """Of the latest request: its context, its copy's round, and the action as the copy numbers it."""
    x: Floats


def act(memory: Any, t: int, u: float) -> int:
    context = 0 if memory.contexts.size == 0 else memory.contexts[t]
    number = rules.act(pick(memory.bank, context), memory.rounds[context], u)
    memory.latest[0], memory.latest[1], memory.latest[2] = context, memory.rounds[context], number
    memory.rounds[context] += 1
    return memory.candidates[context, number]


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    own, number = memory.latest[1], memory.latest[2]
    rules.observe(pick(memory.bank, memory.latest[0]), own, number, state, ticket[:ROUND])
    ticket[ROUND], ticket[ACTION] = own, number


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    context = 0 if memory.contexts.size == 0 else memory.contexts[t]
    own, number = int(ticket[ROUND]), int(ticket[ACTION])
    rules.update(pick(memory.bank, context), own, number, state, loss, ticket[:ROUND])


def play(memory: Any, t: int, out: Any) -> None:
    context = memory.latest[0]
    rules.play(pick(memory.bank, context), memory.latest[1], memory.x)
    out[:] = 0.0
    for i in range(memory.x.size):
        out[memory.candidates[context, i]] = memory.x[i]


add_rule(ApartMemory, act, observe, update, play)
