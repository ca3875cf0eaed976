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
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

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


def _own(memory: Any) -> Rule | None:
    """Of a memory's Numba type."""
    kind = memory.instance_class if isinstance(memory, types.BaseNamedTuple) else None
    return _RULES.get(kind) if kind is not None and is_own(kind) else None


def _others(memory: Any) -> Rule | None:
    kind = memory.instance_class if isinstance(memory, types.BaseNamedTuple) else None
    return _RULES.get(kind) if kind is not None and not is_own(kind) else None


# Compiled code calls what is chosen for these below. Plain Python runs their bodies: slowly, but it knows every line.


def act(memory: Any, t: int, u: float) -> int:
    """For the loop; from outside see `step_act`."""
    return _RULES[type(memory)].act(memory, t, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    """For the loop; from outside see `step_observe`."""
    _RULES[type(memory)].observe(memory, t, action, state, ticket)


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    """For the loop; from outside see `step_update`."""
    _RULES[type(memory)].update(memory, t, action, state, loss, ticket)


def play(memory: Any, t: int, out: Any) -> None:
    """For the loop; from outside see `step_play`."""
    (_RULES[type(memory)].play or _leave_untold)(memory, t, out)


def _leave_untold(memory: Any, t: int, out: Any) -> None:
    """The play of a rule that has none: nobody asks, since faces look at `tells_play` first."""


def play_for(memory: Any, t: int, context: int, out: Any) -> None:
    """Compiled code only."""
    raise NotImplementedError


@chosen_by_type(act)
def _act(memory, t, u):  # type: ignore[no-untyped-def]
    rule = _own(memory)
    return rule and rule.act


@chosen_by_type(observe)
def _observe(memory, t, action, state, ticket):  # type: ignore[no-untyped-def]
    rule = _own(memory)
    return rule and rule.observe


@chosen_by_type(update)
def _update(memory, t, action, state, loss, ticket):  # type: ignore[no-untyped-def]
    rule = _own(memory)
    return rule and rule.update


@chosen_by_type(play)
def _play(memory, t, out):  # type: ignore[no-untyped-def]
    rule = _own(memory)
    return rule and (rule.play or _leave_untold)


_CHECKED = {"boundscheck": True}


@overload(act, strict=False, jit_options=_CHECKED)
def _act_of_others(memory, t, u):  # type: ignore[no-untyped-def]
    rule = _others(memory)
    return rule and rule.act


@overload(observe, strict=False, jit_options=_CHECKED)
def _observe_of_others(memory, t, action, state, ticket):  # type: ignore[no-untyped-def]
    rule = _others(memory)
    return rule and rule.observe


@overload(update, strict=False, jit_options=_CHECKED)
def _update_of_others(memory, t, action, state, loss, ticket):  # type: ignore[no-untyped-def]
    rule = _others(memory)
    return rule and rule.update


@overload(play, strict=False, jit_options=_CHECKED)
def _play_of_others(memory, t, out):  # type: ignore[no-untyped-def]
    rule = _others(memory)
    return rule and (rule.play or _leave_untold)


@chosen_by_type(play_for)
def _play_for(memory, t, context, out):  # type: ignore[no-untyped-def]
    rule = _own(memory)
    return rule and rule.play_for


@overload(play_for, strict=False, jit_options=_CHECKED)
def _play_for_of_others(memory, t, context, out):  # type: ignore[no-untyped-def]
    rule = _others(memory)
    return rule and rule.play_for


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
