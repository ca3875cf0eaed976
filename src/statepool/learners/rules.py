"""How a learner's rule reaches the compiled loop: chosen by the type of its memory.

A learner is a frozen dataclass (its settings) that starts a memory (a NamedTuple of arrays), and four plain
functions on that memory:

    act(memory, t, u)                                  the action of round t, from one uniform
    observe(memory, t, action, state, ticket)          write what the update will need into the ticket, a row of numbers
    update(memory, t, action, state, loss, ticket)     round t's outcome has come
    play(memory, t, out)                               the distribution of round t, into `out` (after `act`); None
                                                       where the learner does not tell it (`tells_play` is False)

A learner that knows contexts keeps `contexts` in its memory and answers the request `contexts[t]`; a fifth function
says what any context would be answered with:

    play_for(memory, t, context, out)                  the distribution that a request of `context` would get in round t

`add_rule` ties them to the memory's type. Compiled code calls the names below and Numba picks the functions,
which gives one loop for all learners that caches on disk; plain Python calls the `step_*` names.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import chosen_by_type, compiled


class Rule(NamedTuple):
    """The functions of one memory type."""

    act: Callable[..., int]
    observe: Callable[..., None]
    update: Callable[..., None]
    play: Callable[..., None] | None
    play_for: Callable[..., None] | None = None


_RULES: dict[type, Rule] = {}


def add_rule(memory: type, act: Any, observe: Any, update: Any, play: Any | None, play_for: Any | None = None) -> None:
    """Tie the functions of a rule to the type of its memory.

    act(memory, t, u)                               gives the number of round t's action, from the uniform u in [0, 1)
    observe(memory, t, action, state, ticket)       may write into `ticket`, numbers of this decision's own, what the
                                                    update will need
    update(memory, t, action, state, loss, ticket)  the outcome of round t has come, a loss in [0, 1]
    play(memory, t, out)                            writes the distribution that `act` drew from into `out`; None where
                                                    the learner does not tell it (`tells_play` is False)
    play_for(memory, t, context, out)               the same for a request of any context, where it knows contexts
    """
    _RULES[memory] = Rule(act, observe, update, play, play_for)


def rule_of(memory: type) -> Rule | None:
    """The rule of a memory type, if it has one."""
    return _RULES.get(memory)


def is_own(memory: type) -> bool:
    """Whether a memory type is the package's, whose rules make no arrays and keep inside theirs."""
    return memory.__module__.partition(".")[0] == __name__.partition(".")[0]


def _leave_untold(memory: Any, t: int, out: Any) -> None:
    """The play of a rule that has none: nobody asks, since faces look at `tells_play` first."""


def _part(name: str, otherwise: Any = None) -> Callable[..., Any]:
    """What the loop calls by this name: the function that the rule of its memory has there."""

    def find(memory: type, own: bool) -> Any:
        rule = _RULES.get(memory) if is_own(memory) is own else None
        return rule and (getattr(rule, name) or otherwise)

    return chosen_by_type(partial(find, own=True), partial(find, own=False))


act, observe, update = _part("act"), _part("observe"), _part("update")
play, play_for = _part("play", _leave_untold), _part("play_for")


ACT, OBSERVE, UPDATE, PLAY = range(4)
_NO_ROW = np.empty(0)


@compiled
def step(memory: Any, what: int, t: int, action: int, state: int, number: float, row: Any) -> int:
    """One of the four functions, by its place above: together they are compiled once, not four times."""
    if what == ACT:
        return act(memory, t, number)
    if what == OBSERVE:
        observe(memory, t, action, state, row)
    elif what == UPDATE:
        update(memory, t, action, state, number, row)
    else:
        play(memory, t, row)
    return 0


def step_act(memory: Any, t: int, u: float, step: Any = step) -> int:
    """The action of round t."""
    return int(step(memory, ACT, t, 0, 0, u, _NO_ROW))


def step_observe(memory: Any, t: int, action: int, state: int, ticket: Floats, step: Any = step) -> None:
    """Fill the ticket of round t."""
    step(memory, OBSERVE, t, action, state, 0.0, ticket)


def step_update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Floats, step: Any = step) -> None:
    """Learn from the outcome of round t."""
    step(memory, UPDATE, t, action, state, loss, ticket)


def step_play(memory: Any, t: int, out: Floats, step: Any = step) -> None:
    """The play distribution of round t, valid between its `act` and the next update."""
    step(memory, PLAY, t, 0, 0, 0.0, out)
