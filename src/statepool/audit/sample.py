"""The rows that are looked at one by one, in time: all of a log, or an even sample of a large one.

Which rows are taken follows from what the log holds, not from how it is stored: one file or forty, sorted or shuffled,
in duckdb or elsewhere, the same rows are taken.

    moments    where few decisions share a moment: every moment is in or out by a pseudo-random number of its time
    cells      otherwise: rows alike in all that is looked at are counted, the cells are put in order of time, state,
               action and outcome, and every `step`-th row of that order is taken. Each (action, state) cell and each
               stretch of time is then seen as often as in the log, to within one row.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from statepool.audit.counts import Counts, places
from statepool.audit.engines import Answer
from statepool.audit.facts import Facts
from statepool.audit.log import Log
from statepool.audit.maturity import Maturity
from statepool.checks import Floats

MOST_ROWS = 400_000
SAMPLED = 120_000
"""Logs up to the first are taken whole; of longer ones about as many rows as the second."""

CROWDED = 1.5
"""Mean number of rows that share a moment, from which moments would be taken or left as whole crowds."""

# Golden ratio, then a quadratic: plain products and floors, which every engine computes to the same bit.
_TURN = "SELECT *, decided * 0.6180339887498949 - floor(decided * 0.6180339887498949) AS turn FROM rows"
_LUCK = f"SELECT *, turn * (turn + 1.0) * 4321.987 AS spun FROM ({_TURN}) AS turned"
LABELS = ("action", "state", "context")
_CONTENT = "action, state, loss, decided, resolved, propensity, held"


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
    propensity: Floats | None = None
    held: Floats | None = None
    context: NDArray[np.int64] | None = None
    """Who asked, where contexts are looked at; -1 where that is blank."""

    @property
    def backwards(self) -> int:
        """About how many outcomes of the log come before their decision: their delay is not used."""
        return self._in_the_log(self.resolved < self.decided)

    @property
    def untold(self) -> int:
        """About how many outcomes of the log come without a time."""
        return self._in_the_log(np.isfinite(self.loss) & ~np.isfinite(self.resolved))

    def _in_the_log(self, odd: NDArray[np.bool_]) -> int:
        return round(int(odd.sum()) * self.population / max(self.decided.size, 1))

    @property
    def age(self) -> Floats:
        """How long before the end of the log each decision was made."""
        return self.latest - self.decided

    def matured(self, maturity: Maturity) -> "Rows":
        """The same rows, with the outcomes of those that are old enough to have one."""
        return replace(self, loss=maturity.losses(self.loss, self.decided, self.resolved))


def draw_rows(log: Log, counts: Counts, facts: Facts, seed: int = 0, contexts: tuple[str, ...] | None = None) -> Rows:
    """Fetch the sample, sorted by time; rows of the same moment in random order."""
    timed = log.columns.decided is not None
    found = _fetch(log, counts.rows, timed)
    kept, action, state = _code(found, counts)
    context = np.zeros(0, np.int64) if contexts is None else places(found["context"], contexts)[kept]
    found = {name: values[kept] for name, values in found.items() if name not in LABELS}
    rng = np.random.default_rng((seed, 10))
    # The order in which several threads hand rows over is not fixed: sort by all there is before breaking ties.
    known = (found["loss"], found["resolved"], state, action, found["decided"])
    first = np.lexsort(known if contexts is None else (context, *known))
    ties = rng.permutation(first.size)
    order = first[np.lexsort((ties, found["decided"][first] if timed else ties))]
    waits = found["waited"][np.isfinite(found["waited"])]
    return Rows(
        action[order], state[order], found["loss"][order], found["decided"][order], found["resolved"][order],
        counts.rows, timed, facts.latest, float(np.median(waits)) if waits.size else float("nan"),
        found["propensity"][order] if log.columns.propensity else None,
        found["held"][order] if log.columns.holdout else None,
        None if contexts is None else context[order],
    )  # fmt: skip


def _fetch(log: Log, population: int, timed: bool) -> Answer:
    content = _CONTENT + (", context" if log.columns.context else "")
    looked_at = f"{content}, observed - decided AS waited"
    if population <= MOST_ROWS:
        return _floats(log.engine.fetch(f"SELECT {looked_at} FROM rows"))
    if timed:
        share, most = SAMPLED / population, 4 * SAMPLED
        taken = f"spun - floor(spun) < {share!r}"
        found = _floats(log.engine.fetch(f"SELECT {looked_at} FROM ({_LUCK}) AS spun WHERE {taken} LIMIT {most}"))
        crowd = np.unique(found["decided"], return_counts=True)[1]
        if SAMPLED / 2 < found["decided"].size < most and (crowd**2).sum() <= CROWDED * crowd.sum():
            return found
    return _systematic(log, population, content)


def _systematic(log: Log, population: int, content: str) -> Answer:
    step = population / SAMPLED
    cells = f"SELECT {content}, observed - decided AS waited, count(*) AS m FROM rows GROUP BY {content}, waited"
    last = ", context" if log.columns.context else ""
    summed = (
        f"SELECT *, sum(m) OVER (ORDER BY decided, state, action, loss, resolved, propensity, held, waited{last} "
        f"ROWS UNBOUNDED PRECEDING) AS upto FROM ({cells}) AS cells"
    )
    takes = f"floor(upto / {step!r} + 0.5) - floor((upto - m) / {step!r} + 0.5)"
    found = _floats(
        log.engine.fetch(
            f"SELECT * FROM (SELECT {content}, waited, {takes} AS taken FROM ({summed}) AS summed) AS all_cells "
            "WHERE taken > 0"
        )
    )
    times = found.pop("taken").astype(np.int64)
    return {name: np.repeat(values, times) for name, values in found.items()}


def _floats(found: Answer) -> Answer:
    return {name: values if name in LABELS else values.astype(np.float64) for name, values in found.items()}


def _code(found: Answer, counts: Counts) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Which rows have both labels, and the places of these labels."""
    coded = [places(found[part], labels) for part, labels in (("action", counts.actions), ("state", counts.states))]
    kept = (coded[0] >= 0) & (coded[1] >= 0)
    return kept, coded[0][kept], coded[1][kept]
