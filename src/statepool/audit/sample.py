"""The rows that are looked at one by one, in time: all of a log, or an even sample of a large one.

Which rows are taken follows from a hash of what they hold, so the same log gives the same sample.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts
from statepool.audit.reading import Log
from statepool.checks import Floats

MOST_ROWS = 400_000
SAMPLED = 120_000
"""Logs up to the first are taken whole; of longer ones about as many rows as the second."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One entry a row, in order of decision; NaN where there is no outcome, or no time."""

    action: NDArray[np.int64]
    state: NDArray[np.int64]
    loss: Floats
    decided: Floats
    resolved: Floats
    population: int
    """How many rows of the log these stand for."""
    timed: bool
    """Without a decision time the order is random, and nothing about time can be said."""
    latest: float
    """The last moment in the log: what has not come by then may still come."""
    observed: float
    """The median time from decision to state, NaN where unknown."""

    @property
    def backwards(self) -> int:
        """About how many outcomes of the log come before their decision: their delay is not used."""
        odd = int((self.resolved < self.decided).sum())
        return round(odd * self.population / max(self.decided.size, 1))

    @property
    def untold(self) -> int:
        """About how many outcomes of the log come without a time."""
        odd = int((np.isfinite(self.loss) & ~np.isfinite(self.resolved)).sum())
        return round(odd * self.population / max(self.decided.size, 1))


def draw_rows(log: Log, counts: Counts, seed: int = 0) -> Rows:
    """Fetch the sample, sorted by time; rows of the same moment in random order."""
    every = 1 if counts.rows <= MOST_ROWS else ceil(counts.rows / SAMPLED)
    taken = "" if every == 1 else f"WHERE hash(decided, action, state) % {every} = 0"
    query = f"""
        SELECT a.code AS action, s.code AS state, loss, decided, resolved, observed - decided AS waited
        FROM (SELECT * FROM rows {taken}) JOIN action_codes a ON trim(action) = a.label
        JOIN state_codes s ON trim(state) = s.label
    """
    found = {name: np.ma.filled(values, np.nan) if values.dtype.kind == "f" else np.asarray(values)
             for name, values in log.connection.execute(query).fetchnumpy().items()}  # fmt: skip
    timed = log.columns.decided is not None
    rng = np.random.default_rng((seed, 10))
    # The order in which several threads hand rows over is not fixed: sort by all there is before breaking ties.
    parts = [found[name] for name in ("loss", "resolved", "state", "action", "decided")]
    first = np.lexsort(parts)
    ties = rng.permutation(first.size)
    order = first[np.lexsort((ties, found["decided"][first] if timed else ties))]
    waits = found["waited"][np.isfinite(found["waited"])]
    return Rows(
        found["action"][order], found["state"][order], found["loss"][order].astype(np.float64),
        found["decided"][order].astype(np.float64), found["resolved"][order].astype(np.float64), counts.rows, timed,
        _latest(log) if every == 1 else _latest_of(found), float(np.median(waits)) if waits.size else float("nan"),
    )  # fmt: skip


def _latest_of(found: dict[str, Any]) -> float:
    """The same by the sample, which misses the end of a long log by about a row of the sample."""
    times = np.concatenate([found["decided"], found["resolved"], found["decided"] + found["waited"]]).astype(np.float64)
    times = times[np.isfinite(times)]
    return float(times.max()) if times.size else float("nan")


def _latest(log: Log) -> float:
    """The last moment that any time of the log names."""
    times = log.connection.execute("SELECT max(decided), max(observed), max(resolved) FROM rows").fetchone()
    if not all(time is None or np.isfinite(time) for time in times):
        wanted = ", ".join(f"max({part}) FILTER (isfinite({part}))" for part in ("decided", "observed", "resolved"))
        times = log.connection.execute(f"SELECT {wanted} FROM rows").fetchone()
    return max((float(time) for time in times if time is not None), default=float("nan"))
