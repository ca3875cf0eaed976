"""What a learner knows, as named sums, and how what it is told is added to them.

A learner that is *additive* declares its sums (`Learner.sums`). Each has one row or several, a number a state, an
action, each pair of these, or one for all; it fades with the round played, and is told of one kind of thing: a state
seen, an outcome, the age of an outcome, or a request that brought rows of its own. What one outcome adds is a *lesson*,
one number a row, computed from what travelled with the decision alone. So lessons commute, and can be taken back.

    at round `now`   sum = Σ over rounds r of  lesson(r) · exp(log_factor · (now - r))

A simulation keeps the sums as floats, in `flat`, faded a round at a time; a live pool keeps them exactly, and writes
them into `flat` when it makes a version. The rule reads them by name, and does not know which.
"""

from math import exp as math_exp
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import LOWEST_EXPONENT, exp

Kind = Literal["state", "outcome", "age", "request"]
Over = Literal["one", "states", "actions", "cells"]


class Sum(NamedTuple):
    """A named sum of one row for each of `logs`, the logarithms of what is kept of it each round."""

    name: str
    told_by: Kind
    over: Over = "states"
    logs: tuple[float, ...] = (0.0,)
    anew: bool = False
    """Whether only rounds since the learner's latest start count."""


LOG_WINDOW_OF_REQUESTS = log(1 - 1 / 32)
REQUESTS = (
    Sum("reached", told_by="request", logs=(LOG_WINDOW_OF_REQUESTS,)),
    Sum("requests", told_by="request", over="one", logs=(LOG_WINDOW_OF_REQUESTS,)),
)
"""The q of the latest requests, as they were played, and how many: on average they are as old as the last 64 are."""


PLACE = np.dtype(
    [("first", np.int64), ("by_state", np.int64), ("by_action", np.int64), ("log", float), ("anew", np.bool_)],
    align=True,
)


class Slots(NamedTuple):
    """Where the numbers of one kind of lesson go: first + by_state · state + by_action · action."""

    lesson: Floats
    places: Any
    """An array of PLACE, one for each number."""


STRETCH = np.dtype([("first", np.int64), ("last", np.int64), ("kept", float)], align=True)
"""Places from first up to last, and what is kept of them each round."""


class Sums(NamedTuple):
    """All sums of a learner, one after another in `flat`."""

    flat: Floats
    seen: Slots
    outcome: Slots
    age: Slots
    fading: Any
    """An array of STRETCH: what fades."""
    now: Ints
    reached: Floats
    """The sums of REQUESTS, where they are kept: a number a state, and a count."""
    registers: Floats
    """What is set when the sums that start `anew` do, and stays until then."""


CLOCK = np.dtype([("start", np.int64)])
"""What the simplest additive learner keeps besides its sums: it has started once, in round 0."""


def start_clock() -> Any:
    return np.zeros(1, CLOCK)[0]


class Newcomers(NamedTuple):
    """Of each action, what it is charged for states that no play could reach before it came, when it came, and the
    number that it keeps while others come and go."""

    handicap: Floats
    came: Ints
    number: Ints


def start_newcomers(n_actions: int) -> Newcomers:
    """All were there from the start."""
    return Newcomers(np.zeros(n_actions), np.zeros(n_actions, np.int64), np.arange(n_actions))


class Views(NamedTuple):
    """The sums, and a named view of each: one row a log, one column a state (or one, or a table of cells)."""

    sums: Sums
    of: dict[str, Floats]


def lay_out(declared: tuple[Sum, ...], n_states: int, n_actions: int, n_registers: int = 0) -> Views:
    """Room for the sums, all zero."""
    widths = {"one": 1, "states": n_states, "actions": n_actions, "cells": n_states * n_actions}
    flat = np.zeros(sum(len(each.logs) * widths[each.over] for each in declared))
    of: dict[str, Floats] = {}
    rows: dict[str, list[tuple[int, Sum, float]]] = {"state": [], "outcome": [], "age": [], "request": []}
    stretches: list[tuple[int, int, float]] = []
    place = 0
    for each in declared:
        width = widths[each.over]
        size = len(each.logs) * width
        shape = (n_states, n_actions) if each.over == "cells" else (len(each.logs), width)
        of[each.name] = flat[place : place + size].reshape(shape)
        for log_factor in each.logs:
            rows[each.told_by].append((place, each, log_factor))
            if log_factor < 0 and stretches and stretches[-1][1:] == (place, log_factor):
                stretches[-1] = stretches[-1][0], place + width, log_factor  # one loop for neighbours that fade alike
            elif log_factor < 0:
                stretches.append((place, place + width, log_factor))
            place += width
    fading = np.array([(first, last, math_exp(log_factor)) for first, last, log_factor in stretches], STRETCH)
    slots = {kind: _slots(rows[kind], n_actions) for kind in ("state", "outcome", "age")}
    slots["state"].lesson[:] = slots["age"].lesson[:] = 1.0
    now, registers = np.zeros(1, np.int64), np.zeros(n_registers)
    first = rows["request"][0][0] if rows["request"] else 0
    reached = flat[first : first + n_states + 1] if rows["request"] else np.zeros(0)
    told = slots["state"], slots["outcome"], slots["age"]
    return Views(Sums(flat, *told, fading, now, reached, registers), of)


def _slots(rows: list[tuple[int, Sum, float]], n_actions: int) -> Slots:
    by_state = {"states": 1, "cells": n_actions}
    places = [
        (place, by_state.get(each.over, 0), each.over in ("actions", "cells"), log_factor, each.anew)
        for place, each, log_factor in rows
    ]
    return Slots(np.zeros(len(rows)), np.array(places, PLACE))


@compiled
def fade(sums: Any, t: int) -> None:
    """Round t begins."""
    sums.now[0] = t
    for i in range(sums.fading.size):
        stretch = sums.fading[i]
        for place in range(stretch.first, stretch.last):
            sums.flat[place] *= stretch.kept


@compiled
def add(sums: Any, slots: Any, t: int, start: int, action: int, state: int) -> None:
    """The lesson in `slots`, of round t; `start`: of sums that have started anew since, nothing is kept."""
    age = sums.now[0] - t
    for i in range(slots.lesson.size):
        place = slots.places[i]
        if place.anew and t < start:
            continue
        kept = exp(max(place.log * age, LOWEST_EXPONENT)) if place.log < 0.0 else 1.0
        sums.flat[place.first + place.by_state * state + place.by_action * action] += kept * slots.lesson[i]


@compiled
def marginal(sums: Any, state: int, own: float) -> float:
    """The q of a state averaged over the latest requests and this one, whose own q is `own`.

    Contexts may reach different states. A charge by the q of its own context says nothing of a state to contexts that
    could reach it, and is unbiased for none of them; by the average it is unbiased for all.
    """
    if sums.reached.size == 0:
        return own
    return (sums.reached[state] + own) / (sums.reached[sums.reached.size - 1] + 1.0)
