"""The rows of P that requests bring, for all contexts: what the loop and `Player` hand to a rule."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from statepool.checks import Bools, Floats, Ints
from statepool.kernels import columns_of
from statepool.learners.contract import Rows


class RowTables(NamedTuple):
    """The columns of every context one after another, for the actions that it may be answered with."""

    columns: Floats
    actions: Ints
    starts: Ints
    """Where the actions of each context begin, and where the last ones end."""
    n_states: int
    vary: bool


def make_tables(P: Floats, available: Bools | None = None) -> RowTables:
    """The tables of one map, or of a map for each context."""
    maps = P if P.ndim == 3 else P[None]
    n_contexts, n_actions, n_states = maps.shape
    if available is None or available.all():
        actions, starts = np.tile(np.arange(n_actions), n_contexts), n_actions * np.arange(n_contexts + 1)
        return RowTables(columns_of(maps).ravel(), actions, starts, n_states, P.ndim == 3)
    columns = np.concatenate([columns_of(rows[on]).ravel() for rows, on in zip(maps, available, strict=True)])
    actions = np.concatenate([np.flatnonzero(on) for on in available])
    starts = np.concatenate([[0], available.sum(axis=1).cumsum()])
    return RowTables(columns, actions, starts, n_states, P.ndim == 3)


@njit(inline="always")  # type: ignore[untyped-decorator]  # inlined, its arrays are counted as its caller counts
def rows_at(tables: Any, context: int) -> Any:
    """The rows of a context; it is ignored where there is one map for all."""
    number = context if tables.vary else 0
    first, last = tables.starts[number], tables.starts[number + 1]
    columns = tables.columns[tables.n_states * first : tables.n_states * last].reshape(tables.n_states, last - first)
    return Rows(columns, tables.actions[first:last], number, tables.vary, False)
