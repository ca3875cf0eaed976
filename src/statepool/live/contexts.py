"""The contexts that a pool is opened with: tables of rows, one for each context, journaled in pieces."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from statepool.checks import Floats, check_map, check_maps
from statepool.live.catalogue import Catalogue, check_label, check_labels, check_row, check_rows
from statepool.live.events import Placed
from statepool.live.pool_state import PoolState

BYTES_AT_ONCE = 1 << 16
"""An event of contexts is no larger than this, or has one context: SQLite reads a whole row to compare its key, so that
large events slow down whatever is looked up beside them."""

Tables = dict[Hashable, dict[Hashable, Floats] | Floats]
"""Of each context: a row for each action, or {action: row} of those that it may be answered with."""


def context_tables(P: Any, contexts: Any, actions: Any) -> Tables:
    """The tables of `P`, checked as far as they can be without the states."""
    if not isinstance(P, Mapping):
        if contexts is not None and P is None:
            raise ValueError("contexts: are given without P, expected P as {context: rows}")
        raise ValueError(f"P: is {type(P).__name__}, expected {{context: rows}} where there are contexts")
    names = check_labels(P if contexts is None else contexts, "contexts")
    if set(names) != {check_label(label, "contexts") for label in P}:
        raise ValueError(f"P: has tables of {sorted(map(str, P))[:8]}, expected one for each of the contexts")
    if actions is None:
        raise ValueError("actions: are missing, expected the actions that the rows of each context are of")
    known = check_labels(actions, "actions")
    at_once = _tables_at_once([P[name] for name in names], len(known))
    if at_once is not None:
        return dict(zip(names, at_once, strict=True))
    return {name: _table(name, P[name], known) for name in names}


def _tables_at_once(tables: list[Any], n_actions: int) -> Floats | None:
    """All tables as one, if they have a row for every action and nothing is wrong with them: else none."""
    if any(isinstance(table, Mapping) for table in tables):
        return None
    try:
        whole = check_maps(np.array(tables))[0]
    except ValueError:
        return None
    return whole if whole.shape[1] == n_actions and bool((whole.sum(axis=2) > 0).all()) else None


def _table(context: Any, rows: Any, actions: list[Hashable]) -> dict[Hashable, Floats] | Floats:
    if not isinstance(rows, Mapping):
        table = check_map(rows, f"P of context {context!r}")
        if len(table) != len(actions):
            raise ValueError(f"P: of context {context!r} has {len(table)} rows, expected {len(actions)}, one an action")
        return table
    given = {check_label(label, "actions"): row for label, row in rows.items()}
    if not given:
        raise ValueError(f"P: of context {context!r} has no action, expected one that it may be answered with")
    for label in given:
        if label not in actions:
            raise ValueError(f"P: of context {context!r} has a row of {label!r}, which is not among the actions")
    return {label: np.asarray(row) for label, row in given.items()}


def base_rows(tables: Tables, actions: Any, states: Any) -> Floats | None:
    """A row for each action without a context: the mean of its rows."""
    if states is None:
        return None
    size, names = len(check_labels(states, "states")), check_labels(actions, "actions")
    whole = [table for table in tables.values() if not isinstance(table, dict)]
    if len(whole) == len(tables):
        shapes = {table.shape for table in whole}
        if shapes != {(len(names), size)}:
            raise ValueError(f"P: has tables of shape {sorted(shapes)}, expected {(len(names), size)} in each context")
        total = np.sum(whole, axis=0)
        return np.asarray(total / total.sum(axis=1, keepdims=True))
    rows = {label: np.zeros(size) for label in names}
    for table in tables.values():
        for label, row in _items(table, names):
            rows[label] += check_row(row, size, label)
    missing = [label for label, row in rows.items() if not row.any()]
    if missing:
        raise ValueError(f"P: has no row of {missing[0]!r} in any context, expected one in some")
    return np.array([row / row.sum() for row in rows.values()])


def _items(table: dict[Hashable, Floats] | Floats, names: Sequence[Hashable]) -> Iterator[tuple[Hashable, Floats]]:
    yield from table.items() if isinstance(table, dict) else zip(names, table, strict=True)


def placings(tables: Tables, actions: Any, catalogue: Catalogue, at: int) -> list[Placed]:
    """The events that give a pool these contexts: neighbours with the same actions share one.

    `actions` are those that the rows of whole tables are of, in the order in which the caller named them.
    """
    events: list[Placed] = []
    piece: list[tuple[Hashable, Floats]] = []
    numbers: list[int] = []
    names, n_states = check_labels(actions, "actions"), len(catalogue.states)

    def close() -> None:
        if piece:
            rows = np.array([rows for _, rows in piece])
            events.append(Placed(at, [name for name, _ in piece], numbers, rows.tobytes()))
            piece.clear()

    every = sorted((catalogue.action(label), place) for place, label in enumerate(names))
    all_numbers, order = [number for number, _ in every], [place for _, place in every]
    for context, table in tables.items():
        if isinstance(table, dict):
            own, labels = map(list, zip(*sorted((catalogue.action(label), label) for label in table), strict=True))
            rows = check_rows([table[label] for label in labels], n_states, labels)
        elif table.shape[1] == n_states:
            own, rows = all_numbers, table[order]
        else:
            raise ValueError(f"P: of context {context!r} has rows of {table.shape[1]} entries, expected {n_states}")
        if own != numbers or (len(piece) + 1) * rows.nbytes > BYTES_AT_ONCE:
            close()
            numbers = own
        piece.append((context, rows))
    close()
    return events


def changed(placed: list[Placed], pool_state: PoolState) -> list[Placed]:
    """Those of the events that would change something."""
    known = set(pool_state.catalogue.contexts)

    def differs(event: Placed) -> bool:
        tables = np.frombuffer(event.rows).reshape(len(event.contexts), len(event.actions), -1)
        for label, rows in zip(event.contexts, tables, strict=True):
            if label not in known:
                return True
            numbers, before = pool_state.catalogue.table(label)
            if numbers.tolist() != event.actions or not np.array_equal(before, rows):
                return True
        return False

    return [event for event in placed if differs(event)]
