"""Refuse bad input with one sentence: what was given, what was expected, and where."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Array = TypeVar("Array", bound=NDArray[Any])

ROW_TOLERANCE = 1e-9

LARGEST_COUNT = 2**62
"""Twice as many still fit into 64 bits with a sign."""

LENGTHS = {"s sec second": 1.0, "m min minute": 60.0, "h hour": 3_600.0, "d day": 86_400.0, "w week": 604_800.0}
SECONDS = {word: length for words, length in LENGTHS.items() for word in words.split()}


def shown(value: object) -> str:
    """What was given, on one line of limited length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:76]} …"


def check_map(P: ArrayLike, name: str = "P") -> Floats:
    """An action-to-state map: finite, non-negative, rows summing to 1."""
    table = _check_entries(P, name, "one row per action, one column per state")
    sums = table.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > ROW_TOLERANCE)
    if wrong.size:
        which = f"{name}:" if len(sums) == 1 and not name.isidentifier() else f"{name}: row {wrong[0]}"
        given = f"{which} sums to {sums[wrong[0]]:.12g}, expected 1 within {ROW_TOLERANCE}"
        scaled = f"; {name} / {name}.sum(axis=1, keepdims=True) scales every row of an array"
        raise ValueError(given + (scaled if name.isidentifier() and (sums > 0).all() else ""))
    return table


def check_maps(P: ArrayLike, available: ArrayLike | None = None) -> tuple[Floats, Bools]:
    """A map for each context, and which actions each may be answered with; rows of the others are 0 or are made so."""
    table = _check_entries(P, "P", "a map for each context: contexts, actions, states", n_axes=3)
    offered = check_available(available, table.shape[:2])
    sums = table.sum(axis=2)
    wrong = np.argwhere((np.abs(sums - 1) > ROW_TOLERANCE) & (offered | (sums > 0)))
    if wrong.size:
        context, action = wrong[0]
        wanted = f"1 within {ROW_TOLERANCE}" if offered[context, action] else "1, or 0 where it is not available"
        raise ValueError(f"P: context {context}, row {action} sums to {sums[context, action]:.12g}, expected {wanted}")
    table[~offered] = 0
    return table, offered


def _check_entries(P: ArrayLike, name: str, meaning: str, n_axes: int = 2) -> Floats:
    table = check_table(P, name, meaning, n_axes)
    _refuse_first(~np.isfinite(table), table, name, "finite entries")
    _refuse_first(table < 0, table, name, "entries that are not negative")
    return table


def check_given_map(given_map: ArrayLike, table: Floats, offered: Bools) -> Floats:
    """The map that learners get: it must hold everything that can happen, and all actions at all times."""
    checked = check_map(given_map, "given_map")
    if checked.shape != table.shape[1:]:
        raise ValueError(f"given_map: has shape {checked.shape}, expected {table.shape[1:]}, as the map of one context")
    if not offered.all():
        raise ValueError("given_map: some actions are not available, expected all of them in every context")
    wrong = np.argwhere((table > 0).any(axis=0) & (checked == 0))
    if wrong.size:
        action, state = wrong[0]
        raise ValueError(
            f"given_map: entry ({action}, {state}) is 0, expected more, since the action can lead to that state"
        )
    return checked


def has_contexts(P: ArrayLike) -> bool:
    """Whether this has three axes, as maps of contexts have; what is no array at all is refused elsewhere."""
    try:
        return np.ndim(P) == 3
    except ValueError:
        return False


def check_available(available: ArrayLike | None, shape: tuple[int, int]) -> Bools:
    """Which actions each context may be answered with: at least one; all of them where nothing is said."""
    if available is None:
        return np.ones(shape, dtype=np.bool_)
    given = _as_array(available, "available")
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise ValueError("available: holds other values, expected true or false (or 1 and 0) for each action")
    if given.shape != shape:
        raise ValueError(
            f"available: has shape {given.shape}, expected {shape}, one row per context, one column per action"
        )
    offered = np.array(given, dtype=np.bool_, order="C")
    empty = np.flatnonzero(~offered.any(axis=1))
    if empty.size:
        raise ValueError(f"available: context {empty[0]} has no action, expected at least one for each context")
    return offered


def check_contexts(contexts: ArrayLike, n_contexts: int, horizon: int) -> Ints:
    """The context of each round: whole numbers below their number."""
    labels = _as_array(contexts, "contexts")
    if labels.shape != (horizon,):
        raise ValueError(f"contexts: has shape {labels.shape}, expected ({horizon},), one per round of theta")
    _refuse_labels(labels, "contexts")
    wrong = np.flatnonzero(labels >= n_contexts)
    if wrong.size:
        raise ValueError(
            f"contexts: entry {wrong[0]} is {labels[wrong[0]]}, expected 0 to {n_contexts - 1}, as P has {n_contexts}"
        )
    return labels.astype(np.int64)


def check_means(theta: ArrayLike, n_states: int, name: str = "theta") -> Floats:
    """State-loss means: one row per round, entries in [0, 1]."""
    table = check_table(theta, name, "one row per round, one column per state")
    if table.shape[1] != n_states:
        raise ValueError(f"{name}: has {table.shape[1]} columns, expected {n_states}, one for each state of P")
    _refuse_first(~((table >= 0) & (table <= 1)), table, name, "entries in [0, 1]")
    return table


def check_table(values: ArrayLike, name: str, meaning: str, n_axes: int = 2) -> Floats:
    """A non-empty float array of so many axes, contiguous, and a copy: what the caller does next changes nothing."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"it holds {given.dtype}")
        table = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: is not a table of numbers ({error}), expected {meaning}") from None
    if table.ndim != n_axes or 0 in table.shape:
        raise ValueError(f"{name}: has shape {table.shape}, expected a non-empty table, {meaning}")
    return table


def read_only(table: Array) -> Array:
    """The same array, made read-only."""
    table.flags.writeable = False
    return table


def _refuse_first(wrong: NDArray[np.bool_], table: Floats, name: str, expected: str) -> None:
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(f"{name}: entry {place} is {table[place]}, expected {expected}")


def check_effects(effects: ArrayLike, theta: Floats, shape: tuple[int, ...], offered: Bools | None = None) -> Floats:
    """Direct effects of actions on outcomes: theta plus effects must stay in [0, 1].

    With contexts (`offered` says which actions each has) they may be those of all contexts, or one table for each.
    """
    given = _as_array(effects, "effects")
    if offered is not None and given.shape == shape[1:]:
        given = np.broadcast_to(given, shape)
    table = check_table(given, "effects", "one row per action, one column per state", n_axes=len(shape))
    if table.shape != shape:
        raise ValueError(f"effects: has shape {table.shape}, expected {shape}, as P")
    if offered is not None:
        table[~offered] = 0
    _refuse_first(~np.isfinite(table), table, "effects", "finite entries")
    low, high = theta.min(axis=0), theta.max(axis=0)
    wrong = (table + low < 0) | (table + high > 1)
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(
            f"effects: entry {place} is {table[place]}, which takes theta + effects out of [0, 1] "
            f"(theta runs from {low[place[-1]]} to {high[place[-1]]} in that state)"
        )
    return table


def check_gains(gains: ArrayLike, P: Floats, theta: Floats, effects: Floats | None) -> Floats:
    """What a purchase brings on average: at most 2/3, and enough for the mean losses."""
    try:
        table = np.broadcast_to(_as_array(gains, "gains").astype(float), P.shape).copy()
    except ValueError:
        raise ValueError(f"gains: has shape {np.shape(gains)}, expected {P.shape}, as P") from None
    _refuse_first(~((table > 0) & (table <= 2 / 3)), table, "gains", "entries in (0, 2/3]")
    needed = 1 - theta.min(axis=0) - (0 if effects is None else effects)
    _refuse_first(table < np.broadcast_to(needed, P.shape) - 1e-12, table, "gains", "at least 1 - theta - effects")
    return table


def check_whole(value: Any, name: str) -> int:
    """A whole number of at least 0, of any size."""
    if not _is_whole(value):
        raise ValueError(f"{name}: is {shown(value)}, expected a whole number of at least 0")
    return int(value)


def check_span(given: Any, name: str, most: float = 1e10) -> float:
    """The seconds of a length of time such as 30d, 12h or 90min; a number without a unit is taken as it is."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e\+?[0-9]+)?)\s*([a-z]*)", str(given).strip().lower())
    number, unit = (float(found[1]), found[2]) if found else (inf, "")
    unit = unit.removesuffix("s") if len(unit) > 1 else unit
    seconds = number * SECONDS.get(unit, 1.0) if unit in {"", *SECONDS} else inf
    if seconds > most:
        raise ValueError(f"{name}: is {shown(given)}, expected a length of time such as 30d, 12h or 90min")
    return seconds


def check_count(value: Any, name: str, lowest: int = 1) -> int:
    """A whole number, at least `lowest`, that fits where it is counted with."""
    if not _is_whole(value, lowest):
        raise ValueError(f"{name}: is {shown(value)}, expected a whole number of at least {lowest}")
    if int(value) > LARGEST_COUNT:
        raise ValueError(f"{name}: is {shown(value)}, expected a whole number of at most {LARGEST_COUNT}")
    return int(value)


def check_number(value: Any, name: str, low: float, high: float, open_low: bool = False) -> float:
    """A finite number in a range."""
    if not _is_finite(value) or not low <= value <= high or (open_low and value == low):
        raise ValueError(
            f"{name}: is {shown(value)}, expected a finite number in {'(' if open_low else '['}{low}, {high}]"
        )
    return float(value)


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return isfinite(float(value))
    except OverflowError:  # a whole number too large for a float
        return False


def check_rate(rate: Any) -> float | None:
    """None (the default rule), or a positive finite number."""
    return None if rate is None else check_number(rate, "rate", 0, inf, open_low=True)


def check_delay(delay: Any, horizon: int) -> int | Ints:
    """A whole number of rounds, or an array of one such number per round; anything past the horizon never arrives."""
    if hasattr(delay, "to_numpy"):  # a Series of pandas or polars
        delay = delay.to_numpy()
    if not isinstance(delay, list | tuple | np.ndarray) or (isinstance(delay, np.ndarray) and delay.ndim == 0):
        value = delay.item() if isinstance(delay, np.ndarray) else delay
        return min(check_whole(value, "delay"), horizon)
    delays = _as_array(delay, "delay")
    if delays.shape != (horizon,):
        raise ValueError(f"delay: has shape {delays.shape}, expected one number or ({horizon},), one per round")
    _refuse_labels(delays, "delay")
    # Clipping keeps round + delay + 1 inside 64 bits, however "never" is written.
    return np.minimum(delays, horizon).astype(np.int64)


def check_groups(groups: ArrayLike, n_states: int | None = None) -> Ints:
    """One group index per state (as many as there are, where that is known), using 0, 1, … without a gap."""
    labels = _as_array(groups, "groups")
    if labels.ndim != 1 or labels.size != (n_states or max(labels.size, 1)):
        raise ValueError(f"groups: has shape {labels.shape}, expected ({n_states or 'states'},), one group per state")
    _refuse_labels(labels, "groups")
    used = np.unique(labels)
    missing = np.flatnonzero(used != np.arange(used.size))
    if missing.size:
        raise ValueError(f"groups: index {missing[0]} is skipped, expected every index from 0 to {labels.max()}")
    return labels.astype(np.int64)


def _as_array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name}: is not an array of numbers ({error})") from None


def _refuse_labels(values: NDArray[Any], name: str) -> None:
    """Refuse anything but whole numbers of at least 0."""
    if values.dtype.kind in "iu":
        wrong = np.flatnonzero(values < 0)
    elif values.dtype.kind == "f":
        wrong = np.append(np.flatnonzero(values != np.floor(values)), 0)
    else:
        wrong = np.flatnonzero([not _is_whole(value) for value in values.tolist()])
    if wrong.size:
        entry = values.tolist()[wrong[0]]
        raise ValueError(f"{name}: entry {wrong[0]} is {shown(entry)}, expected a whole number of at least 0")


def _is_whole(value: Any, lowest: int = 0) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= lowest


def unknown_name(kind: str, given: object, known: Iterable[str]) -> str:
    """The sentence for a name that a registry does not hold."""
    names = sorted(known)
    near = get_close_matches(str(given), names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{kind}: {shown(given)} is not known{hint} (known: {', '.join(names) or 'none'})"


def check_name(kind: str, given: Any, known: Iterable[str]) -> str:
    """One of the names that are known."""
    if not isinstance(given, str) or given not in known:
        raise ValueError(unknown_name(kind, given, known))
    return given
