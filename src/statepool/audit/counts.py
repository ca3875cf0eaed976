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
    """Count the log; leaves in duckdb `rows`, what is kept of it, and tables of the codes of actions and states."""
    facts = Facts.of(log)
    low, scale = _scale_of_losses(log, facts, rescale)
    loss = "loss" if (low, scale) == (0.0, 1.0) else f"(loss - {low!r}) * {scale!r} AS loss"
    # Conditions cost time on every row: they are left out where the facts say that they hold.
    kept = "" if facts.clean else f"WHERE {_timed(log)} AND NOT unreadable"
    if not facts.clean:
        loss = f"CASE WHEN isfinite(loss) THEN {loss.removesuffix(' AS loss')} END AS loss"
    log.connection.execute(f"CREATE TEMP VIEW rows AS SELECT * EXCLUDE (loss), {loss} FROM deduplicated {kept}")
    cells = log.connection.execute(_cells(log)).fetchnumpy()
    return _tabulate(log, cells, facts)


def _cells(log: Log) -> str:
    wanted = "action, state, count(*) AS n, count(loss) AS k, sum(loss) AS loss, sum(loss * loss) AS square"
    if log.columns.group:
        wanted += ", min(grouping) AS grouping"
    if log.columns.propensity:
        valid = "isfinite(propensity) AND propensity > 0 AND propensity <= 1"
        counted = f"loss IS NOT NULL AND {valid}"
        wanted += f""", sum(1 / propensity) FILTER ({counted}) AS w, sum(1 / propensity**2) FILTER ({counted}) AS ww,
            sum(loss / propensity) FILTER ({counted}) AS wx,
            count(*) FILTER (propensity IS NOT NULL AND NOT ({valid})) AS unlikely"""
    return f"SELECT {wanted} FROM rows GROUP BY action, state"


def _timed(log: Log) -> str:
    return "coalesce(isfinite(decided), false)" if log.columns.decided else "true"


@dataclass(frozen=True)
class Facts:
    """What the whole log says at a glance, and whether any row has to be left out."""

    total: int
    duplicated: int
    untimed: int
    unreadable: int
    known: int
    low: float
    high: float
    outside: int
    """Losses: how many, their range, and how many of them lie outside [0, 1]."""
    clean: bool

    @classmethod
    def of(cls, log: Log) -> "Facts":
        duplicated = _drop_duplicates(log)
        quick = _QUICK if not log.textual else None
        if quick:
            # Parquet files answer this without reading a row.
            total, timed, first, last, known, low, high = log.connection.execute(quick).fetchone()
            numbers = [number for number in (first, last, low, high) if number is not None]
            times_fit = timed == total or not log.columns.decided
            if known and times_fit and np.isfinite(numbers).all() and low >= 0 and high <= 1:
                return cls(total, duplicated, 0, 0, known, low, high, 0, True)
        found = log.connection.execute(_CAREFUL.format(timed=_timed(log))).fetchone()
        # Labels are counted so that they are read: a line that is no text is then no row here either.
        total, untimed, unreadable, known, low, high, outside = found[:7]
        return cls(total, duplicated, untimed, unreadable, known, low or 0.0, high or 0.0, outside, False)


_QUICK = (
    "SELECT count(*), count(decided), min(decided), max(decided), count(loss), min(loss), max(loss) FROM deduplicated"
)
_CAREFUL = """
    SELECT count(*), count(*) FILTER (NOT {timed}), count(*) FILTER ({timed} AND unreadable), count(x), min(x), max(x),
        count(*) FILTER (x < 0 OR x > 1), count(action), count(state), count(grouping),
        count(propensity)
    FROM (SELECT *, CASE WHEN isfinite(loss) THEN loss END AS x FROM deduplicated)
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


def _scale_of_losses(log: Log, facts: Facts, rescale: bool) -> tuple[float, float]:
    """What to take off and to multiply by, so that losses lie in [0, 1]; nothing unless asked for."""
    if not facts.total:
        raise ValueError(f"{log.name}: has no rows, expected one for each decision")
    if not facts.known:
        raise ValueError(f"outcome: column {log.columns.outcome!r} holds no number, expected losses in [0, 1]")
    if not rescale and facts.outside:
        raise ValueError(
            f"outcome: {facts.outside} of {facts.known} losses lie outside [0, 1] (they run from {facts.low:g} to "
            f"{facts.high:g}), expected losses in [0, 1]; --rescale maps their range to it"
        )
    spread = facts.high - facts.low
    if rescale and ((spread == 0 and facts.outside) or not np.isfinite(spread)):
        raise ValueError(
            f"outcome: losses run from {facts.low:g} to {facts.high:g}, expected a finite range that can be rescaled"
        )
    return (float(facts.low), 1 / spread) if rescale and spread > 0 else (0.0, 1.0)


def _tabulate(log: Log, cells: dict[str, Any], facts: Facts) -> Counts:
    filled = {name: np.ma.filled(values, 0) for name, values in cells.items() if values.dtype.kind != "O"}
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
    if not kept.any() or not filled["k"][kept].sum():
        raise ValueError(
            f"{log.name}: no row with an outcome is left, expected rows with an action, a state, an outcome and a time "
            f"({_said(dropped)})"
        )
    unlikely = int(filled["unlikely"][kept].sum()) if "unlikely" in filled else 0
    tables = _Tables(actions, states, filled, kept)
    _leave_codes(log, tables)
    return Counts(
        tables.actions, tables.states, tables.groups(cells["grouping"]) if log.columns.group else None,
        tables.of("n"), tables.of("k"), tables.of("loss"), tables.of("square"),
        facts.total + facts.duplicated + log.unread, {why: n for why, n in dropped.items() if n},
        {"propensity outside (0, 1]": unlikely} if unlikely else {},
        tables.weights() if log.columns.propensity else np.empty((0, 3)),
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
    return ["" if label is None else str(label).strip() for label in values.tolist()]


def _coded(labels: list[str]) -> tuple[tuple[str, ...], Ints]:
    names = sorted(set(labels))
    place = {name: i for i, name in enumerate(names)}
    return tuple(names), np.array([place[label] for label in labels], dtype=np.int64)


def _said(dropped: dict[str, int]) -> str:
    return ", ".join(f"{n} dropped: {why}" for why, n in dropped.items() if n) or "the log has no rows"
