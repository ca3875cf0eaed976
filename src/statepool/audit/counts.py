"""How often each action led to each state, and what came of it: all rows, counted by duckdb in one pass.

Every row that is left out is counted under its reason. Duplicated tickets keep one row, one with an outcome if there
is one. Time is looked at elsewhere, on the rows of `sample`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statepool.audit.facts import Facts, timed_condition
from statepool.audit.intervals import student, wilson
from statepool.audit.log import Log
from statepool.audit.maturity import Maturity
from statepool.audit.units import Unit
from statepool.checks import Floats, Ints

MOST_STATES = 1_000
MOST_ENTRIES = 50_000_000


@dataclass(frozen=True, eq=False)
class Counts:
    """Tables of one row an action and one column a state; states in order of their mean loss."""

    actions: tuple[str, ...]
    states: tuple[str, ...]
    groups: tuple[str, ...] | None
    """The group of each action, where the log has them."""
    n: Floats
    """Rows."""
    k: Floats
    """Rows with an outcome."""
    loss: Floats
    square: Floats
    """Sums of the losses and of their squares."""
    total: int
    """Rows of the log, dropped ones included."""
    dropped: dict[str, int]
    """Rows left out, by reason."""
    notes: dict[str, int]
    """Rows kept with something odd about them."""
    weighted: "Weighted | None" = field(repr=False, default=None)
    """The same sums with every row weighted by 1/propensity, where the log has propensities."""

    @property
    def n_actions(self) -> int:
        return len(self.actions)

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def rows(self) -> int:
        return int(self.n.sum())

    @property
    def has_outcomes(self) -> bool:
        """Whether there are any to find something in."""
        return bool(self.k.sum() >= 2)

    @property
    def state_means(self) -> Floats:
        """The mean loss of each state; of all rows where the state was never seen with an outcome."""
        k, loss = self.k.sum(axis=0), self.loss.sum(axis=0)
        if self.weighted is not None:
            k, loss = self.weighted.k.sum(axis=0), self.weighted.loss.sum(axis=0)
        return np.where(k > 0, loss / np.maximum(k, 1e-300), loss.sum() / k.sum() if k.sum() else 0.5)

    @property
    def state_errors(self) -> Floats:
        """The standard error of each state's mean; infinite where fewer than two outcomes are known."""
        k, loss, square = (table.sum(axis=0) for table in (self.k, self.loss, self.square))
        enough = np.maximum(k, 2)
        variance = np.maximum(square / enough - (loss / enough) ** 2, 0) * enough / (enough - 1)
        return np.where(k > 1, np.sqrt(variance / np.maximum(self._worth, 1)), np.inf)

    @property
    def _worth(self) -> Floats:
        """As many outcomes as those of each state are worth."""
        k = self.k.sum(axis=0)
        return k if self.weighted is None else np.minimum(k, self.weighted.effective_outcomes)

    def state_intervals(self, level: float) -> tuple[Floats, Floats]:
        """Ends of an interval for each state's mean: Wilson's for outcomes of 0 and 1, Student's for others."""
        if not np.allclose(self.loss, self.square):
            return student(self.state_means, self.state_errors, self.k.sum(axis=0), level)
        rows = np.maximum(self._worth, 1)
        return wilson(self.state_means * rows, rows, level)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Sums of weights 1/propensity: one row an action, one column a state."""

    n: Floats
    nn: Floats
    """Of all rows: the weights, and their squares."""
    k: Floats
    kk: Floats
    loss: Floats
    square: Floats
    """Of rows with an outcome: weights, their squares, and weighted losses and squares of losses."""
    loss_twice: Floats
    square_twice: Floats
    """The same of losses with squared weights."""

    @property
    def effective_rows(self) -> Floats:
        """How many evenly weighted rows each action's are worth."""
        return _kish(self.n.sum(axis=1), self.nn.sum(axis=1))

    @property
    def effective_outcomes(self) -> Floats:
        """The same of each state's outcomes."""
        return _kish(self.k.sum(axis=0), self.kk.sum(axis=0))

    @property
    def share_effective(self) -> float:
        return float(_kish(self.n.sum(), self.nn.sum()))


def _kish(total: Any, squares: Any) -> Any:
    return np.divide(total**2, squares, out=np.zeros_like(np.asarray(total, float)), where=np.asarray(squares) > 0)


def define_rows(log: Log, facts: Facts, unit: Unit, maturity: Maturity | None = None, held_only: bool = False) -> None:
    """Let the engine know `rows`: what is kept of the log, with losses in [0, 1] of those old enough to have one."""
    loss = unit.loss_expression("outcome")
    kept = "" if facts.clean else f"WHERE {timed_condition(log)} AND NOT unreadable"
    if not facts.clean:
        loss = f"CASE WHEN outcome BETWEEN -1e308 AND 1e308 THEN {loss} END"
    if maturity is not None:
        loss = maturity.loss_expression(loss)
    if held_only:
        loss = f"CASE WHEN held = 1 THEN {loss} END"
    columns = "action, state, grouping, decided, observed, resolved, propensity, held, context"
    log.engine.define("rows", f"SELECT {columns}, {loss} AS loss FROM deduplicated {kept}")


def count_log(log: Log, facts: Facts) -> Counts:
    """Count `rows` by action and state."""
    return _tabulate(log, log.engine.fetch(_cells(log)), facts)


def _cells(log: Log) -> str:
    wanted = "action, state, count(*) AS n, count(loss) AS k, sum(loss) AS loss, sum(loss * loss) AS square"
    if log.columns.group:
        wanted += ", min(grouping) AS grouping"
    source = "rows"
    if log.columns.propensity:
        valid = "propensity > 0 AND propensity <= 1"
        source = f"(SELECT *, CASE WHEN {valid} THEN 1 / propensity END AS w FROM rows) AS weighing"
        known = "CASE WHEN loss IS NOT NULL THEN w END"
        wanted += f""", sum(w) AS wn, sum(w * w) AS wnn, sum({known}) AS wk, sum(w * {known}) AS wkk,
            sum(w * loss) AS wloss, sum(w * loss * loss) AS wsquare, sum(w * w * loss) AS wwloss,
            sum(w * w * loss * loss) AS wwsquare, count(*) - count(w) AS unlikely,
            sum(CASE WHEN propensity IS NULL THEN 1 ELSE 0 END) AS untold"""
    return f"SELECT {wanted} FROM {source} GROUP BY action, state"


def _tabulate(log: Log, cells: dict[str, Any], facts: Facts) -> Counts:
    filled = {
        name: np.nan_to_num(values.astype(np.float64)) for name, values in cells.items() if values.dtype.kind != "O"
    }
    actions, states = (_labels(cells[part]) for part in ("action", "state"))
    nameless = np.array([a == "" for a in actions], dtype=bool)
    stateless = np.array([s == "" for s in states], dtype=bool) & ~nameless
    dropped = {
        "line cannot be read": log.unread,
        "ticket seen before": facts.duplicated,
        "no decision time": facts.untimed,
        "outcome is not a number": facts.unreadable,
        "no action": int(filled["n"][nameless].sum()),
        "no state": int(filled["n"][stateless].sum()),
    }
    kept = ~nameless & ~stateless
    if not kept.any():
        raise ValueError(
            f"{log.name}: no row is left, expected rows with an action, a state, an outcome and a time "
            f"({_said(dropped)})"
        )
    tables = _Tables(actions, states, filled, kept)
    return Counts(
        tables.actions, tables.states, tables.groups(cells["grouping"]) if log.columns.group else None,
        tables.of("n"), tables.of("k"), tables.of("loss"), tables.of("square"),
        facts.total + facts.duplicated + log.unread, {why: n for why, n in dropped.items() if n},
        *_propensities(log, tables),
    )  # fmt: skip


def _propensities(log: Log, tables: "_Tables") -> tuple[dict[str, int], Weighted | None]:
    """What is odd about propensities, and the weighted sums; none if over a tenth of the rows have no usable one."""
    if not log.columns.propensity:
        return {}, None
    unlikely, untold = (int(tables.cells[name].sum()) for name in ("unlikely", "untold"))
    notes = {"propensity outside (0, 1]": unlikely - untold, "no propensity": untold}
    usable = unlikely <= 0.1 * tables.cells["n"].sum()
    weighted = Weighted(
        *(tables.of(name) for name in ("wn", "wnn", "wk", "wkk", "wloss", "wsquare", "wwloss", "wwsquare"))
    )
    return {why: n for why, n in notes.items() if n}, weighted if usable else None


class _Tables:
    """Dense tables from the cells that were kept, with labels sorted and states in order of their mean loss."""

    def __init__(self, actions: list[str], states: list[str], cells: dict[str, Any], kept: Any) -> None:
        self.cells = {name: values[kept] for name, values in cells.items()}
        self.kept = kept
        self.actions, self._row = _coded([a for a, keep in zip(actions, kept, strict=True) if keep])
        names, column = _coded([s for s, keep in zip(states, kept, strict=True) if keep])
        self._refuse_wide(len(names))
        k, loss = (np.bincount(column, self.cells[name], len(names)) for name in ("k", "loss"))
        order = np.argsort(np.where(k > 0, loss / np.maximum(k, 1), np.inf), kind="stable")
        self.states = tuple(names[i] for i in order)
        self._column = np.argsort(order)[column]

    def _refuse_wide(self, n_states: int) -> None:
        if n_states > MOST_STATES or n_states * len(self.actions) > MOST_ENTRIES:
            raise ValueError(
                f"state: has {n_states} different values for {len(self.actions)} actions, expected at most "
                f"{MOST_STATES} and a map of at most {MOST_ENTRIES} entries: is it the right column?"
            )

    def of(self, name: str) -> Floats:
        table = np.zeros((len(self.actions), len(self.states)))
        np.add.at(table, (self._row, self._column), self.cells[name].astype(np.float64))
        return table

    def groups(self, labels: Any) -> tuple[str, ...]:
        found = [""] * len(self.actions)
        for row, label in zip(self._row, np.array(_labels(labels), dtype=object)[self.kept], strict=True):
            found[row] = min(found[row] or label, label or found[row])
        return tuple(found)


def _labels(values: Any) -> list[str]:
    return ["" if label is None else str(label).strip() for label in values.tolist()]


def _coded(labels: list[str]) -> tuple[tuple[str, ...], Ints]:
    names = sorted(set(labels))
    place = {name: i for i, name in enumerate(names)}
    return tuple(names), np.array([place[label] for label in labels], dtype=np.int64)


def places(labels: NDArray[Any], names: tuple[str, ...]) -> NDArray[np.int64]:
    """The number of each label among the names; -1 for those that are missing or not among them."""
    place: dict[Any, int] = {name: i for i, name in enumerate(names)}
    # Each spelling of a label is stripped once.
    known = {label: place.get(str(label).strip(), -1) if label is not None else -1 for label in set(labels.tolist())}
    return np.array([known[label] for label in labels.tolist()], dtype=np.int64)


def _said(dropped: dict[str, int]) -> str:
    return ", ".join(f"{n} dropped: {why}" for why, n in dropped.items() if n) or "the log has no rows"
