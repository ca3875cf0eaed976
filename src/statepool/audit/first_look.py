"""One look at a log: facts, counts and sample, and which outcomes are old enough to be one.

The counts of all rows come first, then the sample, in which a window may show; if rows turn out to be immature, means
are counted again without them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from statepool.audit.contexts import Contexts, context_labels, count_contexts
from statepool.audit.counts import Counts, count_log, define_rows
from statepool.audit.delays import measure_lateness, settling_age
from statepool.audit.facts import Facts, unit_of
from statepool.audit.log import Log
from statepool.audit.maturity import FOUND, GIVEN, NONE, SETTLING, Maturity, read_window
from statepool.audit.sample import Rows, draw_rows
from statepool.audit.units import Unit
from statepool.audit.windows import find_window

LEAST_HELD = 2_000
"""Outcomes of a holdout from which on means and effects rest on it alone."""


@dataclass(frozen=True, eq=False)
class Looked:
    unit: Unit
    counts: Counts
    recorded: Rows
    """The sample with outcomes as recorded."""
    rows: Rows
    """The sample with the outcomes of mature rows only."""
    maturity: Maturity
    held: bool
    contexts: Contexts | None


def look(log: Log, window: Any, missing_told: bool, rescale: bool, seed: int) -> Looked:
    length = read_window(window, log.seconds)
    facts = Facts.of(log)
    unit = unit_of(log, facts, rescale, missing_told)
    define_rows(log, facts, unit)
    counts = count_log(log, facts)
    labels = context_labels(log, counts) if log.columns.context else None
    recorded = draw_rows(log, counts, facts, seed, labels)
    maturity = _maturity(log, recorded, length)
    held = recorded.held is not None and bool(
        (np.isfinite(recorded.loss) & (recorded.held == 1)).mean() * counts.rows >= LEAST_HELD
    )
    if maturity.window is not None or held:
        define_rows(log, facts, unit, maturity, held)
        before, counts = counts.states, count_log(log, facts)
        place = np.array([counts.states.index(name) for name in before])
        recorded = replace(recorded, state=place[recorded.state])
    rows = recorded.matured(maturity)
    if held:
        rows = replace(rows, loss=np.where(recorded.held == 1, rows.loss, np.nan))
    contexts = None if labels is None else count_contexts(log, counts, labels, rows, seed)
    return Looked(unit, counts, recorded, rows, maturity, held, contexts)


def _maturity(log: Log, rows: Rows, window: float | None) -> Maturity:
    """The window given, the one that the log shows, or the age at which its outcomes have settled."""
    if window is not None and window > 0 and not rows.timed:
        raise ValueError("window: needs decision times to tell which rows are old enough, expected --decided")
    if not rows.timed or window == 0:
        return Maturity(None, NONE, rows.latest)
    shown = find_window(rows)
    if window is not None:
        default, closing = (None, None) if shown is None else (shown.default, shown.closing)
        return Maturity(window, GIVEN, rows.latest, default, closing)
    if shown is not None:
        found = Maturity(shown.window, FOUND, rows.latest, shown.default, shown.closing, shown.why)
        # A window that leaves no row out changes nothing, and is not worth a word.
        return found if (rows.decided > found.cut).any() else Maturity(None, NONE, rows.latest)
    age = settling_age(rows, measure_lateness(rows, 0, Maturity(None, NONE, rows.latest)))
    return Maturity(None, NONE, rows.latest) if age is None else Maturity(age, SETTLING, rows.latest)
