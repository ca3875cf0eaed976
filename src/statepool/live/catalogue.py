"""The actions and states of a pool, by label, and the rows of P; actions come and go, states stay."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Floats, Ints, check_map, shown
from statepool.live.events import Added, Opened, Placed, Retired, Reweighted

PLAIN = (str, int, float, bool)
LONGEST_LABEL = 1_000
MOST_PARTS = 16
MOST_LABELS = 5_000_000

Table = tuple[Ints, Floats]
"""Numbers of actions, and a row of P for each."""


def check_label(label: Any, what: str) -> Hashable:
    """A label that a journal can hold: text, a number, a truth value, or a tuple of these."""
    if type(label) is str and label.isascii() and len(label) <= LONGEST_LABEL:
        return label  # nearly all are, and a request may bring thousands
    if type(label) is int and _fits(label):
        return label
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, list):
        label = tuple(label)
    parts = label if isinstance(label, tuple) else (label,)
    if not all(isinstance(part, PLAIN) and part == part and _fits(part) for part in parts):
        raise ValueError(f"{what}: {shown(label)} cannot be a label, expected text, a number, or a tuple of these")
    if len(parts) > MOST_PARTS or sum(len(part) for part in parts if isinstance(part, str)) > LONGEST_LABEL:
        most = f"at most {LONGEST_LABEL} characters in {MOST_PARTS} parts"
        raise ValueError(f"{what}: {str(label)[:40]!r}… is too long, expected {most}")
    return label


def _fits(part: Any) -> bool:
    """Whole numbers of 64 bits, and text that has an encoding."""
    if isinstance(part, str):
        return not any("\ud800" <= character <= "\udfff" for character in part)
    return not isinstance(part, int) or -(2**63) <= part < 2**63


def check_labels(labels: Any, what: str) -> list[Hashable]:
    """Different labels, at least one."""
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise ValueError(f"{what}: is {shown(labels)}, expected a list of labels")
    checked = [check_label(label, what) for label in labels]
    if not checked:
        raise ValueError(f"{what}: is empty, expected at least one label")
    if len(checked) > MOST_LABELS:
        raise ValueError(f"{what}: are {len(checked)}, expected at most {MOST_LABELS}")
    seen: set[Hashable] = set()
    for label in checked:
        if label in seen:
            raise ValueError(f"{what}: {label!r} is there twice, expected different labels")
        seen.add(label)
    return checked


def check_row(row: ArrayLike, n_states: int, action: Any) -> Floats:
    """One row of P; of a wrong one it is said whose it is."""
    values = np.asarray(row)
    if values.shape != (n_states,):
        raise ValueError(f"row: of {action!r} has shape {values.shape}, expected ({n_states},), one number a state")
    return check_map(values[None, :], f"row of {shown(action)}")[0]


def check_rows(rows: Sequence[ArrayLike], n_states: int, actions: Sequence[Any]) -> Floats:
    """Rows of P, a thousand of them as fast as a few; of the first wrong one it is said whose it is."""
    try:
        table = np.array(rows)
        if table.shape == (len(rows), n_states):
            return check_map(table, "row")
    except ValueError:
        pass
    return np.array([check_row(row, n_states, action) for row, action in zip(rows, actions, strict=True)])


class Catalogue:
    """Actions keep their number for ever; retired ones are not played."""

    def __init__(self, opened: Opened) -> None:
        self.actions = [check_label(label, "actions") for label in opened.actions]
        self.states = [check_label(label, "states") for label in opened.states]
        self.categories = list(opened.categories)
        self._n_first = len(self.actions)
        """Actions of this number and above came later."""
        self.number_of_action = {label: number for number, label in enumerate(self.actions)}
        self.number_of_state = {label: number for number, label in enumerate(self.states)}
        self._rows = np.frombuffer(opened.rows).reshape(len(self.actions), len(self.states)).copy()
        self._handicaps = np.zeros(len(self.actions))
        self._added = np.zeros(len(self.actions), np.int64)
        self._active = np.ones(len(self.actions), np.bool_)
        self._replaced: dict[int, list[tuple[int, Floats]]] = {}
        """Of actions that have had other rows: each one, and the event that replaced it."""
        self.n_active = len(self.actions)
        self._tables: dict[Hashable, Table] = {}

    @property
    def contexts(self) -> list[Hashable]:
        return list(self._tables)

    @property
    def tables(self) -> dict[Hashable, Table]:
        """Of each context: the numbers of the actions that have rows of their own there, and these rows."""
        return dict(self._tables)

    @property
    def n_first(self) -> int:
        """Actions of this number and above came after the contexts were given."""
        return self._n_first

    def place(self, event: Placed) -> None:
        """Rows of contexts, from now on."""
        numbers = np.array(event.actions, np.int64)
        tables = np.frombuffer(event.rows).reshape(len(event.contexts), len(numbers), len(self.states))
        for label, rows in zip(event.contexts, tables, strict=True):
            context = check_label(label, "contexts")
            self._tables[context] = numbers, rows

    def table(self, context: Any) -> Table:
        """The actions that have rows of their own in a context, and these rows."""
        return table_of(self._tables, context)

    @classmethod
    def of(cls, events: Iterator[Any]) -> "Catalogue":
        """After all the events of a catalogue, for its labels: what its rows were before is not kept."""
        catalogue = cls(next(events))
        for event in events:
            if isinstance(event, Added | Retired | Reweighted):
                catalogue.apply(event, 0)
        return catalogue

    def apply(self, event: Added | Retired | Reweighted, seq: int) -> None:
        """The event `seq`; an action that was retired may be added again and keeps its number."""
        label = check_label(event.action, "action")
        if isinstance(event, Retired):
            self._set_active(self.number_of_action[label], False)
            return
        if label not in self.number_of_action:
            self._grow(label)
        number, row = self.number_of_action[label], np.frombuffer(event.row)
        if self._added[number] >= 0 and not np.array_equal(row, self._rows[number]):
            self._replaced.setdefault(number, []).append((seq, self._rows[number].copy()))
        self._rows[number] = row
        self._handicaps[number], self._added[number] = event.handicap, event.decisions
        if isinstance(event, Added):
            self.categories[number] = event.category
            self._set_active(number, True)

    def _set_active(self, number: int, active: bool) -> None:
        self.n_active += int(active) - int(self._active[number])
        self._active[number] = active

    def _grow(self, label: Hashable) -> None:
        if len(self.actions) == len(self._active):
            arrays = self._rows, self._handicaps, self._added, self._active
            self._rows, self._handicaps, self._added, self._active = map(_with_room, arrays)
        number = self.number_of_action[label] = len(self.actions)
        self._added[number] = -1  # it has had no row yet
        self.actions.append(label)
        self.categories.append(None)

    def active(self) -> tuple[Floats, Ints, Floats, Ints]:
        """What a live learner wants: rows, numbers in growing order, handicaps, and when they were given."""
        numbers = self.active_numbers()
        return self._rows[numbers], numbers, self._handicaps[numbers], self._added[numbers]

    def active_numbers(self) -> Ints:
        return np.flatnonzero(self._active)

    def is_active(self, label: Hashable) -> bool:
        number = self.number_of_action.get(label)
        return number is not None and bool(self._active[number])

    def row(self, number: int) -> Floats:
        return self._rows[number]

    def rows(self) -> Floats:
        """Of all actions, retired ones included."""
        return self._rows[: len(self.actions)]

    def row_at(self, number: int, seq: int) -> Floats:
        """The row that an action had when the event `seq` happened."""
        for replaced_at, row in self._replaced.get(number, ()):
            if seq < replaced_at:
                return row
        return self._rows[number]

    def action(self, label: Any) -> int:
        """The number of an action, active or not."""
        number = self.number_of_action.get(check_label(label, "action"))
        if number is None:
            raise ValueError(f"action: {label!r} is not in the catalogue")
        return number

    def state(self, label: Any) -> int:
        """The number of a state."""
        number = self.number_of_state.get(check_label(label, "state"))
        if number is None:
            known = ", ".join(map(repr, self.states[:8])) + (", …" if len(self.states) > 8 else "")
            raise ValueError(f"state: {label!r} is not known, expected one of {known}")
        return number

    def of_category(self, category: Any) -> list[int]:
        """The numbers of the actions of a category."""
        return [number for number, each in enumerate(self.categories) if each == category and category is not None]


def table_of(tables: Mapping[Hashable, Table], context: Any) -> Table:
    """The table of a context; one that is not known is refused."""
    known = tables.get(check_label(context, "context"))
    if known is None:
        names = ", ".join(map(repr, list(tables)[:8])) + (", …" if len(tables) > 8 else "")
        expected = f"one of {names}" if names else "none, as this pool was opened without contexts"
        raise ValueError(f"context: {context!r} is not known, expected {expected}")
    return known


def offered(table: Table, active: Ints, n_first: int, rows: Floats) -> Table:
    """What a context may be answered with: active actions that its table has, and those that came after all tables."""
    numbers, own = table
    if len(numbers) == len(active) and np.array_equal(numbers, active):
        return active, own
    given = dict(zip(numbers.tolist(), own, strict=True))
    kept = np.array([n for n in active.tolist() if n in given or n >= n_first], np.int64)
    return kept, np.array([given.get(n, rows[n]) for n in kept.tolist()])


def _with_room(values: Any) -> Any:
    """An eighth more, so that the cost of growing is shared by many who come after."""
    return np.concatenate([values, np.zeros_like(values, shape=(len(values) // 8 + 16, *values.shape[1:]))])


def catalogue_rows(
    P: ArrayLike | None, actions: Sequence[Any], states: Sequence[Any], learns_map: bool
) -> tuple[list[Hashable], list[Hashable], Floats]:
    """Labels and map of a new pool, checked against each other."""
    names, seen = check_labels(actions, "actions"), check_labels(states, "states")
    if P is None:
        if not learns_map:
            raise ValueError("P: is missing, expected one row an action (or a learner that learns the map)")
        P = np.full((len(names), len(seen)), 1 / len(seen))
    table = check_map(P)
    if table.shape != (len(names), len(seen)):
        raise ValueError(f"P: has shape {table.shape}, expected {(len(names), len(seen))}, as actions and states")
    return names, seen, table
