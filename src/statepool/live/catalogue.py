"""The actions, states and contexts of a pool, by label, and their rows of P, as of one revision.

Actions and contexts keep their number for ever; states never change. A `Catalogue` is a value: a change makes another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Bools, Floats, Ints, check_map, read_only, shown
from statepool.kernels import columns_of
from statepool.learners.contract import Rows
from statepool.live.errors import Conflict

PLAIN = (str, int, float, bool)


def check_label(label: Any, what: str) -> Hashable:
    """A label that JSON can hold: text, a number, a truth value, or a tuple of these."""
    if type(label) is str and label.isascii() and label.isprintable():
        return label  # nearly all are, and a request may bring thousands
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, list):
        label = tuple(label)
    parts = label if isinstance(label, tuple) else (label,)
    if not parts or not all(isinstance(part, PLAIN) and part == part and _fits(part) for part in parts):
        raise ValueError(f"{what}: {shown(label)} cannot be a label, expected text, a number, or a tuple of these")
    return label


def _fits(part: Any) -> bool:
    """Finite numbers, whole ones of 64 bits, and text that both databases can hold."""
    if isinstance(part, str):
        return not any("\ud800" <= character <= "\udfff" or character == "\0" for character in part)
    return -(2**63) <= part < 2**63 if isinstance(part, int) else abs(part) < float("inf")


def check_labels(labels: Any, what: str) -> list[Hashable]:
    """Different labels, at least one."""
    checked = [check_label(label, what) for label in _listed(labels, what)]
    if not checked:
        raise ValueError(f"{what}: has no labels, expected at least one")
    for label, times in Counter(checked).most_common(1):
        if times > 1:
            raise ValueError(f"{what}: {label!r} is there twice, expected different labels")
    return checked


def _listed(labels: Any, what: str) -> list[Any]:
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise ValueError(f"{what}: is {shown(labels)}, expected a list of labels")
    return list(labels)


def encoded(value: Any) -> str:
    """A label, or whatever else is stored as text, as JSON."""
    return msgspec.json.encode(value).decode()


def as_label(value: Any) -> Any:
    """A label read from JSON, which has lists in place of tuples."""
    return tuple(value) if isinstance(value, list) else value


def decoded(text: str) -> Hashable:
    return as_label(msgspec.json.decode(text))


def check_rows(rows: Sequence[ArrayLike], n_states: int, actions: Sequence[Any]) -> Floats:
    """Rows of P; the sentence about a wrong one names its action."""
    try:
        table = np.array(rows)
        if table.shape == (len(rows), n_states):
            return check_map(table, "row")
    except ValueError:
        pass
    checked = []
    for row, action in zip(rows, actions, strict=True):
        shape = np.shape(row)
        if shape != (n_states,):
            raise ValueError(f"row: that of {action!r} has shape {shape}, expected ({n_states},), one for each state")
        checked.append(check_map(np.asarray(row)[None, :], f"row of {shown(action)}")[0])
    return np.array(checked)


class Offer(NamedTuple):
    """What one request may be answered with."""

    rows: Rows
    context: int | None = None
    labels: tuple[Hashable, ...] | None = None
    """Of candidates that the caller brought."""
    digest: bytes | None = None
    """Of candidates: tells them apart. Their order counts, as it does for the draw."""

    def label_of(self, place: int) -> str | None:
        """The label that is stored with a decision: of a candidate that is not in the catalogue, as JSON."""
        if self.labels is None or self.rows.actions[place] >= 0:
            return None
        return encoded(self.labels[place])


@dataclass(frozen=True)
class Catalogue:
    """One revision of a pool's actions and contexts."""

    states: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    """Of every action by its number, retired ones included."""
    categories: tuple[Any, ...]
    map: Floats
    """P: actions × states, or contexts × actions × states, where rows of actions that a context may not be answered
    with are 0. Retired actions keep their last row."""
    active: Bools
    contexts: tuple[Hashable, ...] = ()

    @cached_property
    def number_of(self) -> dict[Hashable, int]:
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def state_number(self) -> dict[Hashable, int]:
        return {label: number for number, label in enumerate(self.states)}

    @cached_property
    def context_number(self) -> dict[Hashable, int]:
        return {label: number for number, label in enumerate(self.contexts)}

    @cached_property
    def active_numbers(self) -> Ints:
        return np.flatnonzero(self.active)

    @cached_property
    def base(self) -> Offer:
        """Every active action, without a context."""
        numbers = self.active_numbers
        return Offer(Rows(columns_of(self.rows[numbers]), numbers, 0, bool(self.contexts)))

    @cached_property
    def rows(self) -> Floats:
        """One row of P for each action; with contexts the mean of its rows."""
        if not self.contexts:
            return self.map
        total = self.map.sum(axis=0)
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def action(self, label: Any, what: str = "action") -> int:
        """The number of an action, active or not."""
        return _find(label, self.number_of, what)

    def labels_of(self, numbers: Ints) -> list[Hashable]:
        return [self.labels[number] for number in numbers.tolist()]

    def place(self, offer: Offer, label: Any) -> int | None:
        """The place of an action among those on offer; None: it is not."""
        if offer.labels is not None:
            return offer.labels.index(label) if label in offer.labels else None
        found = np.flatnonzero(offer.rows.actions == self.number_of.get(label, -1))
        return int(found[0]) if found.size else None

    def state(self, label: Any) -> int:
        return _find(label, self.state_number, "state")

    def context(self, label: Any) -> int:
        return _find(label, self.context_number, "context")

    def of_context(self, number: int) -> Offer:
        """The active actions that a context may be answered with, with their rows there."""
        numbers = np.flatnonzero(self.map[number].any(axis=1) & self.active)
        if not numbers.size:
            raise ValueError(f"context: {self.contexts[number]!r} has no active action, expected at least one on offer")
        return Offer(Rows(columns_of(self.map[number, numbers]), numbers, number, True), number)

    def of_candidates(self, candidates: Any, context: int | None) -> Offer:
        """What a caller brought, as {action: row}."""
        if not isinstance(candidates, Mapping) or not candidates:
            raise ValueError(f"candidates: is {shown(candidates)}, expected {{action: row}} of at least one")
        labels = [check_label(label, "candidates") for label in candidates]
        return self.of_rows(labels, check_rows(list(candidates.values()), len(self.states), labels), context)

    def of_rows(self, labels: Sequence[Hashable], rows: Floats, context: int | None) -> Offer:
        """Candidates that were brought, now or when they were stored."""
        content = msgspec.json.encode(labels) + rows.tobytes()
        numbers = np.array([self.number_of.get(label, -1) for label in labels], np.int64)
        offered = Rows(columns_of(rows), numbers, context or 0, True, own=True)
        return Offer(offered, context, tuple(labels), blake2b(content, digest_size=16).digest())


def _find(label: Any, number_of: Mapping[Hashable, int], what: str) -> int:
    number = number_of.get(check_label(label, what))
    if number is None:
        some = ", ".join(repr(each) for each in islice(number_of, 8)) + (", …" if len(number_of) > 8 else "")
        expected = f"one of {some}" if number_of else f"none, as this pool was opened without {what}s"
        raise ValueError(f"{what}: {label!r} is not known, expected {expected}")
    return number


def make_catalogue(P: Any, contexts: Any, actions: Any, states: Any, categories: Any) -> Catalogue:
    """The catalogue that a new pool is opened with, everything checked."""
    labels, seen = tuple(check_labels(actions, "actions")), tuple(check_labels(states, "states"))
    kinds = [None] * len(labels) if categories is None else _listed(categories, "categories")
    if len(kinds) != len(labels):
        raise ValueError(f"categories: has {len(kinds)} entries, expected {len(labels)}, one for each action")
    checked = tuple(None if each is None else check_label(each, "categories") for each in kinds)
    active, shape = np.ones(len(labels), np.bool_), (len(labels), len(seen))
    if contexts is None and not isinstance(P, Mapping):
        table = _check_table(np.full(shape, 1 / len(seen)) if P is None else P, "P", shape)
        return Catalogue(seen, labels, checked, table, active)
    tables = _context_tables(P, contexts, labels, len(seen))
    table = np.array(list(tables.values()))
    for missing in np.flatnonzero(~table.any(axis=(0, 2)))[:1]:
        raise ValueError(f"P: has no row of {labels[missing]!r} in any context, expected one in some")
    return Catalogue(seen, labels, checked, read_only(table), active, tuple(tables))


def _check_table(P: Any, what: str, shape: tuple[int, int]) -> Floats:
    table = check_map(P, what)
    if table.shape != shape:
        raise ValueError(f"{what}: has shape {table.shape}, expected {shape}, as actions and states")
    return read_only(table)


def _context_tables(P: Any, contexts: Any, labels: Sequence[Hashable], n_states: int) -> dict[Hashable, Floats]:
    """The rows of every context: of P = {context: rows}, with a row for each action or {action: row} of some."""
    if not isinstance(P, Mapping):
        raise ValueError(f"P: is {type(P).__name__}, expected {{context: rows}} where there are contexts")
    names = check_labels(P if contexts is None else contexts, "contexts")
    given = {check_label(label, "contexts"): rows for label, rows in P.items()}
    if set(names) != set(given):
        raise ValueError(f"P: has tables of {sorted(map(str, given))[:8]}, expected one for each of the contexts")
    number_of = {label: number for number, label in enumerate(labels)}
    return {name: _context_table(name, given[name], number_of, n_states) for name in names}


def _context_table(context: Any, rows: Any, number_of: dict[Hashable, int], n_states: int) -> Floats:
    if not isinstance(rows, Mapping):
        return _check_table(rows, f"P of context {context!r}", (len(number_of), n_states))
    if not rows:
        raise ValueError(f"P: context {context!r} has no action, expected at least one")
    own = [check_label(label, "actions") for label in rows]
    for label in own:
        if label not in number_of:
            raise ValueError(f"P: context {context!r} has a row of {label!r}, which is not among the actions")
    table = np.zeros((len(number_of), n_states))
    table[[number_of[label] for label in own]] = check_rows(list(rows.values()), n_states, own)
    return table


def changed(before: Catalogue, actions: Mapping[Hashable, tuple[Floats | None, Any]]) -> Catalogue:
    """The catalogue of the next revision: {action: (row, category)}, where row None retires."""
    new = [label for label in actions if label not in before.number_of]
    labels, categories = [*before.labels, *new], [*before.categories, *[None] * len(new)]
    more = np.zeros((*before.map.shape[:-2], len(new), len(before.states)))
    table, active = np.concatenate([before.map, more], axis=-2), np.append(before.active, np.zeros(len(new), np.bool_))
    number_of = before.number_of | {label: len(before.labels) + place for place, label in enumerate(new)}
    for label, (row, category) in actions.items():
        number = number_of[label]
        active[number] = row is not None
        if row is not None:
            table[..., number, :], categories[number] = row, category
    if not active.any():
        raise ValueError("action: is the last active one, expected another that stays active")
    return replace(before, labels=tuple(labels), categories=tuple(categories), map=read_only(table), active=active)


def updated(before: Catalogue, given: Catalogue, with_rows: bool, name: str) -> Catalogue:
    """The catalogue of today turned into the one given; `with_rows`: known actions get its rows, too."""
    if given.states != before.states:
        raise Conflict(
            f"states: are {given.states[:8]}, and pool {name!r} has {before.states[:8]}, which cannot be changed: "
            "expected the same, or another name or database"
        )
    if with_rows and bool(given.contexts) != bool(before.contexts):
        raise Conflict(f"contexts: pool {name!r} was opened {'with' if before.contexts else 'without'} contexts")
    actions: dict[Hashable, tuple[Floats | None, Any]] = {
        label: (None, None) for label in before.labels_of(before.active_numbers) if label not in given.number_of
    }
    for label, row, kind in zip(given.labels, given.rows, given.categories, strict=True):
        known = before.number_of.get(label)
        if known is None or not before.active[known]:
            actions[label] = row, kind
        elif with_rows and not before.contexts:
            actions[label] = row, before.categories[known] if kind is None else kind
    after = changed(before, actions)
    if not given.contexts:
        return after
    new = [label for label in given.contexts if label not in before.context_number]
    table = np.concatenate([after.map, np.zeros((len(new), *after.map.shape[1:]))])
    after = replace(after, contexts=(*before.contexts, *new), map=table)
    numbers = [after.number_of[label] for label in given.labels]
    for label, rows in zip(given.contexts, given.map, strict=True):
        table[after.context_number[label], numbers] = rows
    return after


def differing(before: Catalogue | None, after: Catalogue) -> list[int]:
    """The numbers of the actions that differ between two revisions."""
    other = np.ones(len(after.labels), np.bool_)
    if before is not None and before.contexts == after.contexts:
        n = len(before.labels)
        kinds = [one != two for one, two in zip(before.categories, after.categories, strict=False)]
        rows = (before.map != after.map[..., :n, :]).reshape(-1, n, len(after.states)).any(axis=(0, 2))
        other[:n] = (before.active != after.active[:n]) | rows | kinds
    return np.flatnonzero(other).tolist()
