"""The rows that are looked at one by one, in time: all of a log, or an even sample of a large one.

Which rows are taken follows from a hash of what they hold, so the same log gives the same sample.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts
from statepool.audit.reading import Log
from statepool.checks import Floats

MOST_ROWS = 400_000


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
    def has_delays(self) -> bool:
        return bool(self.timed and np.isfinite(self.resolved).any())


def draw_rows(log: Log, counts: Counts, seed: int = 0) -> Rows:
    """Fetch the sample, sorted by time; rows of the same moment in random order."""
    every = ceil(counts.rows / MOST_ROWS)
    taken = "" if every == 1 else f"WHERE hash(decided, resolved, action, state, loss, ticket) % {every} = 0"
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
    latest = log.connection.execute("SELECT greatest(max(decided), max(observed), max(resolved)) FROM rows").fetchone()[
        0
    ]
    waits = found["waited"][np.isfinite(found["waited"])]
    return Rows(
        found["action"][order], found["state"][order], found["loss"][order].astype(np.float64),
        found["decided"][order].astype(np.float64), found["resolved"][order].astype(np.float64), counts.rows, timed,
        float("nan") if latest is None else float(latest), float(np.median(waits)) if waits.size else float("nan"),
    )  # fmt: skip
