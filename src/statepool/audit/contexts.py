"""Who is asking: rows counted by context, action and state, whole and in four parts that share no outcome.

Parts are drawn row by row where the sample holds the whole log. Of a longer one with decision times the engine splits
all rows by a pseudo-random number of their moment; without times the sample is split.
"""

from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts, places
from statepool.audit.engines import Answer
from statepool.audit.log import JOINT, Log
from statepool.audit.sample import Rows
from statepool.checks import Floats

MOST_CONTEXTS = 1_000
MOST_ENTRIES = 2_000_000
SHOWN_JOINT = " / "
PARTS = 4
UNEVEN = 0.15
"""If a part has a smaller share of the rows than this, moments are too few to split by."""

# As the sample's: products and floors, the same to the bit in every engine; other constants, so that they are apart.
TURN, SPIN = 0.7548776662466927, 1234.567
_TURNED = f"SELECT *, decided * {TURN!r} - floor(decided * {TURN!r}) AS turn FROM rows WHERE context IS NOT NULL"
_SPUN = f"SELECT *, turn * (turn + 1.0) * {SPIN!r} AS spun FROM ({_TURNED}) AS turned"
_SPLIT = f"(SELECT *, floor({PARTS}.0 * (spun - floor(spun))) AS part FROM ({_SPUN}) AS spinning) AS split"
_WHOLE = "(SELECT *, 0.0 AS part FROM rows WHERE context IS NOT NULL) AS whole"


@dataclass(frozen=True, eq=False)
class ContextTable:
    """Rows by context, action and state, as many as they are worth; outcomes and losses of each state."""

    n: Floats
    k: Floats
    loss: Floats
    usual: Floats
    """The mean of a state that has no outcome here."""

    def __add__(self, other: "ContextTable") -> "ContextTable":
        return ContextTable(self.n + other.n, self.k + other.k, self.loss + other.loss, self.usual)

    @property
    def means(self) -> Floats:
        return np.where(self.k > 0, self.loss / np.maximum(self.k, 1e-300), self.usual)


@dataclass(frozen=True, eq=False)
class Contexts:
    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: Floats
    """Rows of each context."""
    blank: int
    """Rows without a context: they enter everything but what is said about contexts."""
    whole: ContextTable = field(repr=False)
    parts: tuple[ContextTable, ...] = field(repr=False)
    part: NDArray[np.int64] = field(repr=False)
    """The part of each row of the sample."""
    judged: float
    """Rows that the parts hold together."""

    def others(self, part: int) -> ContextTable:
        """All parts but one."""
        return reduce(add, (table for i, table in enumerate(self.parts) if i != part))

    @property
    def title(self) -> str:
        return " and ".join(self.columns)


def context_labels(log: Log, counts: Counts) -> tuple[str, ...]:
    """The contexts of the log, sorted; refuses too many, and joint ones that look alike."""
    found = log.engine.fetch("SELECT context, count(*) AS n FROM rows WHERE context IS NOT NULL GROUP BY context")
    names = sorted({str(label) for label in found["context"].tolist()})
    told = " and ".join(log.columns.context)
    if not names:
        raise ValueError(f"context: column {told} is blank in every row, expected who is asking")
    entries = len(names) * counts.n_actions * counts.n_states
    if len(names) > MOST_CONTEXTS or entries > MOST_ENTRIES:
        raise ValueError(
            f"context: {told} has {len(names)} different values for {counts.n_actions} actions and {counts.n_states} "
            f"states, expected at most {MOST_CONTEXTS} and maps of at most {MOST_ENTRIES} entries in all: coarser "
            "classes, or another column"
        )
    if len({_shown(name) for name in names}) < len(names):
        raise ValueError(f"context: values of {told} hold {SHOWN_JOINT!r}, expected labels that can be joined by it")
    return tuple(names)


def _shown(name: str) -> str:
    return name.replace(JOINT, SHOWN_JOINT)


def count_contexts(log: Log, counts: Counts, labels: tuple[str, ...], rows: Rows, seed: int) -> Contexts:
    """Count `rows` by context, action and state."""
    split_there = rows.timed and rows.population > rows.action.size
    weighted = counts.weighted is not None
    found = Cells.of_answer(log.engine.fetch(_query(split_there, weighted)), counts, labels)
    part, parts = parts_of(rows, split_there, seed), found
    if not split_there or np.bincount(found.part, found.n, PARTS).min() < UNEVEN * found.n.sum():
        part = parts_of(rows, False, seed)
        parts = Cells.of_rows(rows, part, weighted)
    return tables_of(log.columns.context, tuple(map(_shown, labels)), counts, found, parts, part)


def tables_of(
    columns: tuple[str, ...], names: tuple[str, ...], counts: Counts, whole: "Cells", parts: "Cells",
    part: NDArray[np.int64],
) -> Contexts:  # fmt: skip
    shape, means = (len(names), counts.n_actions, counts.n_states), counts.state_means
    split = tuple(parts.only(parts.part == i).table(shape, means) for i in range(PARTS))
    rows = _sums(whole.context, whole.n, len(names))
    blank = max(counts.rows - int(rows.sum()), 0)
    return Contexts(columns, names, rows, blank, whole.table(shape, means), split, part, float(parts.n.sum()))


def parts_of(rows: Rows, by_moment: bool, seed: int) -> NDArray[np.int64]:
    if not by_moment:
        return np.random.default_rng((seed, 17)).integers(PARTS, size=rows.action.size)
    turn = rows.decided * TURN - np.floor(rows.decided * TURN)
    spun = turn * (turn + 1.0) * SPIN
    return np.floor(PARTS * (spun - np.floor(spun))).astype(np.int64)


def _query(split: bool, weighted: bool) -> str:
    wanted = "count(*) AS n, count(loss) AS k, sum(loss) AS loss"
    source = _SPLIT if split else _WHOLE
    if weighted:
        source = (
            "(SELECT *, CASE WHEN propensity > 0 AND propensity <= 1 THEN 1 / propensity END AS w "
            f"FROM {source}) AS weighing"
        )
        wanted = (
            "count(*) AS n, sum(CASE WHEN loss IS NOT NULL THEN w END) AS k, sum(w * loss) AS loss, sum(w) AS w, "
            "sum(w * w) AS ww"
        )
    return f"SELECT context, action, state, part, {wanted} FROM {source} GROUP BY context, action, state, part"


@dataclass(frozen=True, eq=False)
class Cells:
    """One entry a cell, or a row; `k` and `loss` weighted where there are propensities, `w` and `ww` then given."""

    context: NDArray[np.int64]
    action: NDArray[np.int64]
    state: NDArray[np.int64]
    part: NDArray[np.int64]
    n: Floats
    k: Floats
    loss: Floats
    w: Floats | None = None
    ww: Floats | None = None

    @classmethod
    def of_answer(cls, found: Answer, counts: Counts, labels: tuple[str, ...]) -> "Cells":
        names = (("context", labels), ("action", counts.actions), ("state", counts.states))
        coded = [places(found[part], known) for part, known in names]
        numbers: dict[str, Any] = {
            part: np.nan_to_num(found[part].astype(np.float64))
            for part in ("part", "n", "k", "loss", "w", "ww")
            if part in found
        }
        made = cls(coded[0], coded[1], coded[2], numbers.pop("part").astype(np.int64), **numbers)
        return made.only(np.all([part >= 0 for part in coded], axis=0))

    @classmethod
    def of_rows(cls, rows: Rows, part: NDArray[np.int64], weighted: bool = False) -> "Cells":
        assert rows.context is not None
        known, ones = np.isfinite(rows.loss), np.ones(rows.loss.size)
        loss = np.nan_to_num(rows.loss)
        if not weighted or rows.propensity is None:
            made = cls(rows.context, rows.action, rows.state, part, ones, known * ones, loss)
        else:
            usable = (rows.propensity > 0) & (rows.propensity <= 1)
            w = np.divide(1.0, rows.propensity, out=np.zeros(rows.loss.size), where=usable)
            made = cls(rows.context, rows.action, rows.state, part, ones, w * known, w * loss, w, w**2)
        return made.only(rows.context >= 0)

    def only(self, kept: NDArray[np.bool_]) -> "Cells":
        columns: dict[str, Any] = {name: None if each is None else each[kept] for name, each in vars(self).items()}
        return Cells(**columns)

    def table(self, shape: tuple[int, int, int], means: Floats) -> ContextTable:
        C, K, S = shape
        place, pair = (self.context * K + self.action) * S + self.state, self.context * K + self.action
        n = _sums(place, self.n, C * K * S).reshape(shape)
        if self.w is not None and self.ww is not None:
            w = _sums(place, self.w, C * K * S).reshape(shape)
            total, squares = _sums(pair, self.w, C * K), _sums(pair, self.ww, C * K)
            # As many rows as the weighted ones are worth (Kish); pairs without a usable propensity keep their own.
            scale = np.divide(total, squares, out=np.zeros(C * K), where=squares > 0).reshape(C, K, 1)
            n = np.where(scale > 0, w * scale, n)
        k, loss = _sums(self.state, self.k, S), _sums(self.state, self.loss, S)
        return ContextTable(n, k, loss, means)


def _sums(place: NDArray[np.int64], values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(place, values, size), dtype=np.float64)
