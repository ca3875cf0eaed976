"""The contexts that a pool is opened with: tables of rows, one for each context, journaled in pieces."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from statepool.checks import Floats, check_map
from statepool.live.catalogue import Catalogue, check_label, check_labels, check_row
from statepool.live.events import Placed
from statepool.live.fold import Fold

BYTES_AT_ONCE = 1 << 21
"""An event of contexts is no larger than this, or has one context."""

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
    return {name: _table(name, P[name], check_labels(actions, "actions")) for name in names}


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


def placings(tables: Tables, catalogue: Catalogue, at: int) -> list[Placed]:
    """The events that give a pool these contexts: neighbours with the same actions share one."""
    events: list[Placed] = []
    piece: list[tuple[Hashable, Floats]] = []
    numbers: list[int] = []

    def close() -> None:
        if piece:
            rows = np.array([rows for _, rows in piece])
            events.append(Placed(at, [name for name, _ in piece], numbers, rows.tobytes()))
            piece.clear()

    names = [label for label in catalogue.actions if catalogue.is_active(label)]
    for context, table in tables.items():
        given = sorted((catalogue.action(label), row) for label, row in _items(table, names))
        own = [number for number, _ in given]
        rows = np.array([check_row(row, len(catalogue.states), catalogue.actions[number]) for number, row in given])
        if own != numbers or (len(piece) + 1) * rows.nbytes > BYTES_AT_ONCE:
            close()
            numbers = own
        piece.append((context, rows))
    close()
    return events


def changed(placed: list[Placed], fold: Fold) -> list[Placed]:
    """Those of the events that would change something."""
    known = set(fold.catalogue.contexts)

    def differs(event: Placed) -> bool:
        tables = np.frombuffer(event.rows).reshape(len(event.contexts), len(event.actions), -1)
        for label, rows in zip(event.contexts, tables, strict=True):
            if label not in known:
                return True
            numbers, before = fold.catalogue.table(label)
            if numbers.tolist() != event.actions or not np.array_equal(before, rows):
                return True
        return False

    return [event for event in placed if differs(event)]
