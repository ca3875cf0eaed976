"""PerContext: one copy of any learner for each context, none of which learns from another.

Each copy answers the requests of its context as if there were no others, and counts its own rounds. It is started with
the horizon and the delay that it has if contexts are equally frequent.

    PerContext()               action-level EXP3 for each context: neither states nor contexts are shared
    PerContext(SelfTuned())    pooled through the states, within a context only

Source: ours, to compare with: what sharing nothing costs. A context must always be answered with the same actions, and
a learner of interleaved copies is refused.
"""

from __future__ import annotations

import operator
from dataclasses import field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from statepool.checks import Floats, Ints, shown
from statepool.learners import contract
from statepool.learners.action_exp3 import ActionEXP3
from statepool.learners.contract import Learner, Played, Problem, Rows, add_rule, is_own
from statepool.learners.parts import settled

ROUND, CHOICE = -2, -1
"""Behind what a copy saves: the copy's round, and the position of the action."""


@settled
class PerContext(Learner):
    """One copy of a learner for each context, none of which learns from another.

    >>> import statepool as sp
    >>> sp.PerContext(sp.StateEXP3()).learner.copies
    1
    """

    learner: Learner = field(default_factory=ActionEXP3)
    knows_contexts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.learner, Learner) or isinstance(self.learner, PerContext) or self.learner.reads_losses:
            raise ValueError(
                f"learner: is {shown(self.learner)}, expected a learner that learns from outcomes, such as StateEXP3()"
            )
        if getattr(self.learner, "copies", 1) != 1:
            raise ValueError(f"learner: is {shown(self.learner)}, expected one without interleaved copies")

    @property
    def exposure(self) -> bool:  # type: ignore[override]
        return self.learner.exposure

    def check_policy(self) -> None:
        self.learner.check_policy()

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        by_state, by_decision = self.learner.saved_width(_one_context(problem, _maps(problem)[0]))
        return by_state, by_decision + 2

    def start(self, problem: Problem) -> PerContextMemory:
        maps = _maps(problem)
        copies = [self.learner.start(_one_context(problem, np.ascontiguousarray(P))) for P in maps]
        if not is_own(type(copies[0])):
            raise ValueError(f"learner: {type(self.learner).__name__} is not of the package, expected one that is")
        return PerContextMemory(
            stack(copies), np.zeros(len(maps), np.int64), np.empty((len(maps), problem.n_actions)),
            np.arange(problem.n_actions), np.zeros(1),
        )  # fmt: skip


def _maps(problem: Problem) -> Floats:
    return problem.P if problem.P.ndim == 3 else problem.P[None]


def _one_context(problem: Problem, P: Floats) -> Problem:
    """The problem of one of equally frequent contexts."""
    n = problem.n_contexts
    horizon = None if problem.horizon is None else -(-problem.horizon // n)
    delay = -(-problem.delay // n)
    return replace(problem, P=P, horizon=horizon, delay=delay, instance=None, has_contexts=False)


class PerContextMemory(NamedTuple):
    copies: Any
    """The copies' memories side by side: each array has an axis more."""
    rounds: Ints
    """How many requests of each context were answered."""
    policies: Floats
    """The latest policy of each context."""
    positions: Ints
    """0 to K - 1: a copy knows its actions by their position."""
    now: Floats


def stack(memories: list[Any]) -> Any:
    """Memories of one shape side by side: each number becomes an array, each array gets an axis more."""
    first = memories[0]
    if isinstance(first, tuple):
        fields = [stack(list(each)) for each in zip(*memories, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
    return first if isinstance(first, np.random.Generator) else np.stack([np.asarray(each) for each in memories])


def _picked(typing: Any, kind: Any) -> Any:
    """The type of one memory, of that of all side by side."""
    if isinstance(kind, types.Array):
        return _getitem(typing, kind).return_type
    if isinstance(kind, types.BaseTuple):
        parts = [_picked(typing, part) for part in kind.types]
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return kind


def _getitem(typing: Any, kind: Any) -> Any:
    return typing.resolve_function_type(operator.getitem, (kind, types.intp), {})


@intrinsic
def pick(typing, memories, index):  # type: ignore[no-untyped-def]
    """The memory of this number, as views, so that its rule is found by its type (compiled code only)."""

    def build(context: Any, builder: Any, kind: Any, value: Any, number: Any) -> Any:
        if isinstance(kind, types.Array):
            return context.get_function(operator.getitem, _getitem(typing, kind))(builder, (value, number))
        if isinstance(kind, types.BaseTuple):
            values = [builder.extract_value(value, i) for i in range(len(kind.types))]
            parts = [build(context, builder, *part, number) for part in zip(kind.types, values, strict=True)]
            return context.make_tuple(builder, _picked(typing, kind), parts)
        return value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return build(context, builder, signature.args[0], *arguments)

    return _picked(typing, memories)(memories, types.intp), generate


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    own, own_t = pick(memory.copies, rows.context), memory.rounds[rows.context]
    latest = memory.policies[rows.context, : out.size]
    contract.advance(own, own_t, memory.now[0])
    contract.policy(own, Rows(rows.columns, memory.positions[: out.size], 0, False, False), own_t, latest)
    for a in range(out.size):
        out[a] = latest[a]


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    own_rows = Rows(rows.columns, memory.positions[: policy.size], 0, False, False)
    contract.remember(pick(memory.copies, rows.context), own_rows, policy, choice, state, saved[:ROUND])
    saved[ROUND], saved[CHOICE] = memory.rounds[rows.context], choice


def see(memory: Any, played: Any, saved: Any) -> None:
    memory.rounds[played.context] += 1
    own = Played(int(saved[ROUND]), played.time, int(saved[CHOICE]), played.state, 0, played.wait)
    contract.see(pick(memory.copies, played.context), own, saved[:ROUND])


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    own = Played(int(saved[ROUND]), played.time, int(saved[CHOICE]), played.state, 0, played.wait)
    contract.learn(pick(memory.copies, played.context), own, loss, saved[:ROUND], sign)


def advance(memory: Any, t: int, now: float) -> None:
    memory.now[0] = now


add_rule(PerContextMemory, policy, remember, learn, see, advance)
