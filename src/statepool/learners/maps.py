"""The rows of P that a request brings: those of one map for all, or of the map of its context.

What a pooled learner knows is about states, so all that a context changes is which rows its play is computed through,
and which actions it may be answered with. Contexts whose rows are the same are one.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Bools, Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import block_sums


class Maps(NamedTuple):
    columns: Floats
    """[map, state, action], of the contexts that differ; columns[now[0]] are those of the request being answered."""
    barred: Bools
    """[map, action]: which actions must not be played; empty where all may be."""
    contexts: Ints
    """Of each round, as the caller numbers them; empty where there are none."""
    map_of: Ints
    """Of each context, its map; empty where requests bring the same rows, whatever their context."""
    now: Ints
    """The map of the request being answered."""

    @property
    def vary(self) -> bool:
        """Whether requests bring different rows, or bar actions."""
        return self.map_of.size > 0


def start_maps(columns: Floats, contexts: Ints | None = None, available: Bools | None = None) -> Maps:
    """The maps of a problem, copies of one another merged."""
    none = np.zeros(0, np.int64)
    if contexts is None:
        return Maps(columns[None], np.zeros((0, 0), np.bool_), none, none, np.zeros(1, np.int64))
    barred = np.zeros((len(columns), 0), np.bool_) if available is None or available.all() else ~available
    map_of, kept = _merge_copies(columns, barred)
    if len(kept) == 1 and not barred.any():
        return start_maps(columns[0])
    if len(kept) < len(columns):
        columns, barred = columns[kept], barred[kept]
    return Maps(columns, barred, contexts, map_of, np.zeros(1, np.int64))


def _merge_copies(columns: Floats, barred: Bools) -> tuple[Ints, list[int]]:
    """Of each context, the number of its map; and of each map, the first context that has it."""
    map_of, kept = np.empty(len(columns), np.int64), list[int]()
    by_first_state: dict[bytes, int] = {}
    by_content: dict[tuple[bytes, bytes], int] = {}

    def content(context: int) -> tuple[bytes, bytes]:
        return columns[context].tobytes(), barred[context].tobytes()

    for context, rows in enumerate(columns):
        number = len(kept)
        # Most that differ do so in the first state: to read all of every map would take as long as a thousand rounds.
        first = by_first_state.setdefault(rows[0].tobytes(), context)
        if first != context:
            by_content.setdefault(content(first), int(map_of[first]))
            number = by_content.setdefault(content(context), number)
        map_of[context] = number
        if number == len(kept):
            kept.append(context)
    return map_of, kept


def start_even_maps(shape: tuple[int, ...], contexts: Ints, available: Bools | None) -> Maps:
    """Maps that are still to be learnt, one a context: each row is even. `shape` is (contexts, actions, states)."""
    n_contexts, n_actions, n_states = shape
    barred = np.zeros((n_contexts, 0), np.bool_) if available is None or available.all() else ~available
    columns = np.full((n_contexts, n_states, n_actions), 1 / n_states)
    return Maps(columns, barred, contexts, np.arange(n_contexts), np.zeros(1, np.int64))


@compiled
def varies(maps: Any) -> bool:
    """`Maps.vary`, in compiled code."""
    return maps.map_of.size > 0


@compiled
def turn_to_context(maps: Any, context: int) -> None:
    """A request of this context is being answered."""
    maps.now[0] = maps.map_of[context]


@compiled
def bar_values(maps: Any, values: Any) -> None:
    """Actions that must not be played are never the lowest."""
    if maps.barred.size > 0:
        barred = maps.barred[maps.now[0]]
        for a in range(values.size):
            if barred[a]:
                values[a] = np.inf


@compiled
def bar_weights(maps: Any, weights: Any) -> None:
    """Actions that must not be played get no weight (`weights`: of one copy)."""
    if maps.barred.size > 0:
        barred, row = maps.barred[maps.now[0]], weights.weights[0]
        for a in range(row.size):
            if barred[a]:
                row[a] = 0.0
        weights.sums[0] = block_sums(row, weights.blocks[0])


@compiled
def spread_evenly(maps: Any, share: float, out: Any) -> None:
    """`share` over all actions that may be played, into `out`."""
    if maps.barred.size == 0:
        out[:] = share / out.size
        return
    barred, count = maps.barred[maps.now[0]], 0
    for a in range(out.size):
        count += not barred[a]
    for a in range(out.size):
        out[a] = 0.0 if barred[a] else share / count


@compiled
def draw_evenly(maps: Any, u: float, room: Any) -> int:
    """One of the actions that may be played, each as likely as the others; `room` has a place for each action."""
    if maps.barred.size == 0:
        return min(int(u * room.size), room.size - 1)
    spread_evenly(maps, 1.0, room)
    return draw_cumulative(room, u)


@compiled
def draw_cumulative(play: Any, u: float) -> int:
    """The first action whose cumulative probability passes u."""
    total, last = 0.0, 0
    for a in range(play.size):
        if play[a] > 0.0:
            total += play[a]
            last = a
            if u < total:
                return a
    return last
