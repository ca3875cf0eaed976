"""How often each action led to each state, and what came of it: all rows, counted by duckdb in one pass.

Every row that is left out is counted under its reason. Duplicated tickets keep one row, one with an outcome if there
is one. Time is looked at elsewhere, on the rows of `sample`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from statepool.audit.reading import Log
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
    weights: Floats = field(repr=False)
    """Sums of 1/propensity, of its square, and of loss/propensity, one row an action; empty without propensities."""

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
    def state_means(self) -> Floats:
        """The mean loss of each state; of all rows where the state was never seen with an outcome."""
        k, loss = self.k.sum(axis=0), self.loss.sum(axis=0)
        return np.where(k > 0, loss / np.maximum(k, 1), loss.sum() / max(k.sum(), 1))


def count_log(log: Log, rescale: bool = False) -> Counts:
    """Count the log, and leave in duckdb the tables `action_codes`, `state_codes` and the view `rows` of what is kept."""
    duplicated = _drop_duplicates(log)
    low, scale = _range_of_losses(log, rescale)
    timed = "decided IS NOT NULL AND isfinite(decided)" if log.columns.decided else "true"
    log.connection.execute(
        f"CREATE TEMP VIEW rows AS SELECT * REPLACE ((loss - {low!r}) * {scale!r} AS loss) FROM deduplicated"
        f" WHERE {timed} AND NOT unreadable"
    )
    cells = log.connection.execute(_CELLS.format(timed=timed, low=repr(low), scale=repr(scale))).fetchnumpy()
    return _tabulate(log, cells, duplicated)


_VALID = "isfinite(propensity) AND propensity > 0 AND propensity <= 1"
_CELLS = f"""
    SELECT action, state, count(*) AS every,
        count(*) FILTER (NOT ({{timed}})) AS untimed,
        count(*) FILTER (({{timed}}) AND unreadable) AS unreadable,
        count(*) FILTER (ok) AS n, count(x) FILTER (ok) AS k,
        sum(x) FILTER (ok) AS loss, sum(x * x) FILTER (ok) AS square, min(grouping) AS grouping,
        count(*) FILTER (ok AND resolved < decided) AS backwards,
        count(*) FILTER (ok AND propensity IS NOT NULL AND NOT ({_VALID})) AS unlikely,
        sum(1 / propensity) FILTER (ok AND x IS NOT NULL AND {_VALID}) AS w,
        sum(1 / (propensity * propensity)) FILTER (ok AND x IS NOT NULL AND {_VALID}) AS ww,
        sum(x / propensity) FILTER (ok AND {_VALID}) AS wx
    FROM (SELECT *, ({{timed}}) AND NOT unreadable AS ok,
        CASE WHEN isnan(loss) THEN NULL ELSE (loss - {{low}}) * {{scale}} END AS x FROM deduplicated)
    GROUP BY action, state
"""


def _drop_duplicates(log: Log) -> int:
    """Make `deduplicated`, the log with one row a ticket; how many rows that left out."""
    run = log.connection.execute
    if log.columns.ticket:
        tickets, distinct = run("SELECT count(ticket), count(DISTINCT ticket) FROM log").fetchone()
        if tickets > distinct:
            order = "PARTITION BY ticket ORDER BY loss IS NULL, decided, resolved, action, state"
            run(
                "CREATE TEMP TABLE deduplicated AS SELECT * FROM log"
                f" QUALIFY ticket IS NULL OR row_number() OVER ({order}) = 1"
            )
            return int(tickets - distinct)
    run("CREATE TEMP VIEW deduplicated AS SELECT * FROM log")
    return 0


def _range_of_losses(log: Log, rescale: bool) -> tuple[float, float]:
    """What to take off and to multiply by, so that losses lie in [0, 1]; nothing unless asked for."""
    query = (
        "SELECT min(loss), max(loss), count(*) FILTER (loss < 0 OR loss > 1), count(loss) FROM deduplicated"
        " WHERE isfinite(loss)"
    )
    low, high, outside, known = log.connection.execute(query).fetchone()
    if not known:
        raise ValueError(f"outcome: column {log.columns.outcome!r} holds no number, expected losses in [0, 1]")
    if not rescale and outside:
        raise ValueError(
            f"outcome: {outside} of {known} losses lie outside [0, 1] (they run from {low:g} to {high:g}), expected "
            "losses in [0, 1]; --rescale maps their range to it"
        )
    return (float(low), 1 / (high - low)) if rescale and high > low else (0.0, 1.0)


def _tabulate(log: Log, cells: dict[str, Any], duplicated: int) -> Counts:
    filled = {name: np.ma.filled(values, 0) for name, values in cells.items() if values.dtype.kind != "O"}
    actions, states = (_labels(cells[part]) for part in ("action", "state"))
    named = np.array([a != "" and s != "" for a, s in zip(actions, states, strict=True)], dtype=bool)
    dropped = {
        "line cannot be read": log.unread,
        "ticket seen before": duplicated,
        "no action": int(filled["every"][[a == "" for a in actions]].sum()),
        "no state": int(filled["every"][[a != "" and s == "" for a, s in zip(actions, states, strict=True)]].sum()),
        "no decision time": int(filled["untimed"][named].sum()),
        "outcome is not a number": int(filled["unreadable"][named].sum()),
    }
    kept = named & (filled["n"] > 0)
    if not kept.any():
        raise ValueError(
            f"{log.name}: no row is left, expected rows with an action, a state and a time ({_said(dropped)})"
        )
    notes = {
        "outcome before its decision": int(filled["backwards"][kept].sum()),
        "propensity outside (0, 1]": int(filled["unlikely"][kept].sum()),
    }
    tables = _Tables(actions, states, filled, kept)
    _leave_codes(log, tables)
    return Counts(
        tables.actions, tables.states, tables.groups(cells["grouping"]) if log.columns.group else None,
        tables.of("n"), tables.of("k"), tables.of("loss"), tables.of("square"),
        int(filled["every"].sum()) + duplicated + log.unread, {why: n for why, n in dropped.items() if n},
        {why: n for why, n in notes.items() if n}, tables.weights() if log.columns.propensity else np.empty((0, 3)),
    )  # fmt: skip


class _Tables:
    """Dense tables from the cells that were kept, with labels sorted and states in order of their mean loss."""

    def __init__(self, actions: list[str], states: list[str], cells: dict[str, Any], kept: Any) -> None:
        self.cells = {name: values[kept] for name, values in cells.items()}
        self.kept = kept
        self.actions, self._row = _coded([a for a, keep in zip(actions, kept, strict=True) if keep])
        names, column = _coded([s for s, keep in zip(states, kept, strict=True) if keep])
        self._refuse_wide(len(names))
        order = self._by_loss(column, len(names))
        self.states = tuple(names[i] for i in order)
        self._column = np.argsort(order)[column]

    def _refuse_wide(self, n_states: int) -> None:
        if n_states > MOST_STATES or n_states * len(self.actions) > MOST_ENTRIES:
            raise ValueError(
                f"state: has {n_states} different values for {len(self.actions)} actions, expected at most "
                f"{MOST_STATES} and a map of at most {MOST_ENTRIES} entries: is it the right column?"
            )

    def _by_loss(self, column: Ints, n_states: int) -> Ints:
        k, loss = (np.bincount(column, self.cells[name], n_states) for name in ("k", "loss"))
        return np.argsort(np.where(k > 0, loss / np.maximum(k, 1), np.inf), kind="stable")

    def of(self, name: str) -> Floats:
        table = np.zeros((len(self.actions), len(self.states)))
        np.add.at(table, (self._row, self._column), self.cells[name].astype(np.float64))
        return table

    def weights(self) -> Floats:
        sums = [np.bincount(self._row, self.cells[name], len(self.actions)) for name in ("w", "ww", "wx")]
        return np.column_stack(sums)

    def groups(self, labels: Any) -> tuple[str, ...]:
        found = [""] * len(self.actions)
        for row, label in zip(self._row, np.array(_labels(labels), dtype=object)[self.kept], strict=True):
            found[row] = min(found[row] or label, label or found[row])
        return tuple(found)


def _leave_codes(log: Log, tables: _Tables) -> None:
    """Tables in duckdb from a label, as it stands in the log, to its place here."""
    for part, labels in (("action", tables.actions), ("state", tables.states)):
        columns = {"label": np.array(labels, dtype=object), "code": np.arange(len(labels))}
        log.connection.register(f"{part}_arrays", columns)
        log.connection.execute(
            f"CREATE TEMP TABLE {part}_codes AS SELECT label::VARCHAR AS label, code FROM {part}_arrays"
        )


def _labels(values: Any) -> list[str]:
    return ["" if label is None else str(label).strip() for label in np.ma.filled(values, None).tolist()]


def _coded(labels: list[str]) -> tuple[tuple[str, ...], Ints]:
    names = sorted(set(labels))
    place = {name: i for i, name in enumerate(names)}
    return tuple(names), np.array([place[label] for label in labels], dtype=np.int64)


def _said(dropped: dict[str, int]) -> str:
    return ", ".join(f"{n} dropped: {why}" for why, n in dropped.items() if n) or "the log has no rows"
