"""What the whole log says at a glance: how many rows, which cannot be used, the range of outcomes and of times."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from statepool.audit.log import Log
from statepool.audit.units import Unit

LARGEST = 1e308
"""Numbers beyond are no numbers; the comparison is false for NaN in every engine."""


@dataclass(frozen=True)
class Facts:
    """Facts of the log with one row a ticket, which the engine knows as `deduplicated`."""

    total: int
    duplicated: int
    untimed: int
    unreadable: int
    known: int
    low: float
    high: float
    """Outcomes: how many, and their range in the log's own unit."""
    outside: int
    """How many of them lie outside [0, 1]."""
    first: float
    last: float
    """The first and the last decision; NaN without times."""
    latest: float
    """The last moment that any time of the log names."""
    clean: bool
    """Whether no row has to be left out: conditions cost time on every row."""

    @classmethod
    def of(cls, log: Log) -> "Facts":
        duplicated = _drop_duplicates(log)
        return (None if log.textual else _at_a_glance(log, duplicated)) or _with_care(log, duplicated)


_TIMES = "min(decided), max(decided), max(observed), max(resolved)"
_QUICK = f"""
    SELECT count(*), count(decided), count(outcome), min(outcome), max(outcome), {_TIMES} FROM deduplicated
"""
_FINITE = "CASE WHEN {0} BETWEEN -1e308 AND 1e308 THEN {0} END AS {0}"
# Labels are counted so that they are read: a line that is no text is then no row here either.
_CAREFUL = f"""
    SELECT count(*), sum(CASE WHEN {{timed}} THEN 0 ELSE 1 END),
        sum(CASE WHEN {{timed}} AND unreadable THEN 1 ELSE 0 END),
        count(outcome), min(outcome), max(outcome), sum(CASE WHEN outcome < 0 OR outcome > 1 THEN 1 ELSE 0 END),
        {_TIMES}, count(action), count(state), count(grouping), count(propensity)
    FROM (SELECT action, state, grouping, propensity, unreadable,
        {", ".join(_FINITE.format(name) for name in ("outcome", "decided", "observed", "resolved"))}
        FROM deduplicated) AS finite
"""


def _at_a_glance(log: Log, duplicated: int) -> "Facts | None":
    """What Parquet files answer without reading a row; None where that does not settle it."""
    total, timed, known, low, high, *times = log.engine.one(_QUICK)
    numbers = [number for number in (low, high, *times) if number is not None]
    if not known or (log.columns.decided and timed < total) or not np.isfinite(np.array(numbers, float)).all():
        return None
    if low < 0 or high > 1:
        return None
    return Facts(total, duplicated, 0, 0, known, low, high, 0, *_moments(times), True)


def _with_care(log: Log, duplicated: int) -> Facts:
    found = log.engine.one(_CAREFUL.format(timed=timed_condition(log)))
    total, untimed, unreadable, known, low, high, outside = (number or 0 for number in found[:7])
    counts = (int(total), duplicated, int(untimed), int(unreadable), int(known))
    return Facts(*counts, float(low), float(high), int(outside), *_moments(list(found[7:11])), False)


def _moments(times: list[Any]) -> tuple[float, float, float]:
    first, last = (float("nan") if time is None else float(time) for time in times[:2])
    return first, last, max((float(time) for time in times[1:] if time is not None), default=float("nan"))


def timed_condition(log: Log) -> str:
    """SQL for a row having a decision time, where the log has them."""
    return "coalesce(decided BETWEEN -1e308 AND 1e308, false)" if log.columns.decided else "true"


def _drop_duplicates(log: Log) -> int:
    """Let the engine know `deduplicated`, the log with one row a ticket; how many rows that left out."""
    if log.columns.ticket:
        tickets, distinct = log.engine.one("SELECT count(ticket), count(DISTINCT ticket) FROM log")
        if tickets > distinct:
            order = (
                "PARTITION BY ticket ORDER BY CASE WHEN outcome IS NULL THEN 1 ELSE 0 END, decided, resolved, action, "
                "state"
            )
            log.engine.keep(
                "deduplicated",
                f"SELECT * FROM (SELECT *, row_number() OVER ({order}) AS copy FROM log) AS copies"
                " WHERE ticket IS NULL OR copy = 1",
            )
            return int(tickets - distinct)
    log.engine.define("deduplicated", "SELECT * FROM log")
    return 0


def unit_of(log: Log, facts: Facts, rescale: bool, missing_told: bool) -> Unit:
    """The unit of the log's outcomes; refuses outcomes that are none, all the same beside blanks, or out of range."""
    column, is_reward = log.columns.outcome, log.columns.is_reward
    kind = "rewards" if is_reward else "losses"
    if not facts.total:
        raise ValueError(f"{log.name}: has no rows, expected one for each decision")
    if not facts.known:
        raise ValueError(f"outcome: column {column!r} holds no number, expected {kind} in [0, 1]")
    blank = facts.total - facts.untimed - facts.unreadable - facts.known
    if facts.low == facts.high and blank > 0 and not missing_told:
        raise ValueError(
            f"outcome: every recorded {column!r} is {facts.low:g} and {blank} of {facts.total} rows are blank, "
            f"expected to be told what a blank is: --missing {0 if facts.low else 1} if nothing happened, "
            f"--missing {facts.low:g} for the same outcome, --missing drop if it is not known"
        )
    if not rescale and facts.outside:
        raise ValueError(
            f"outcome: {facts.outside} of {facts.known} {kind} lie outside [0, 1] (they run from {facts.low:g} to "
            f"{facts.high:g}), expected {kind} in [0, 1]; --rescale maps their range to it"
        )
    spread = facts.high - facts.low
    if rescale and ((spread == 0 and facts.outside) or not np.isfinite(spread)):
        raise ValueError(
            f"outcome: {kind} run from {facts.low:g} to {facts.high:g}, expected a finite range that can be rescaled"
        )
    low, high = (float(facts.low), float(facts.high)) if rescale and spread > 0 else (0.0, 1.0)
    return Unit(column, is_reward, low, high)
