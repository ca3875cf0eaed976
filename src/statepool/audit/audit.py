"""From a log to an answer: read, count, estimate, test, fit, try, advise.

log ─▶ sample ─▶ window ─▶ counts ─▶ map, means      ─▶ dimension
                       └▶ sufficiency, delays, drift ─▶ effects ─▶ verdict, fitted instance ─▶ advice
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from statepool.audit.advice import Advice, advise
from statepool.audit.columns import Columns
from statepool.audit.counts import Counts
from statepool.audit.delays import Lateness, measure_lateness
from statepool.audit.dimension import Width, measure_width
from statepool.audit.drift import Drift, measure_drift
from statepool.audit.effects import ActionEffects, estimate_effects
from statepool.audit.first_look import Looked, look
from statepool.audit.fit import Fitted, default_horizon, fit_instance
from statepool.audit.log import Log
from statepool.audit.map import Map, estimate_map
from statepool.audit.maturity import Maturity, read_missing
from statepool.audit.personal import Personal, personalise
from statepool.audit.propensities import Propensities, check_propensities
from statepool.audit.ranking import Ranking, rank_actions
from statepool.audit.sample import Rows
from statepool.audit.sources import open_log
from statepool.audit.states import States, look_at_states
from statepool.audit.sufficiency import Sufficiency, sufficiency_test
from statepool.audit.units import Unit
from statepool.audit.verdict import judge
from statepool.checks import check_count, check_number, check_whole

SINCE_1970 = (5e8, 5e9)
"""Times that are numbers between these are taken for seconds since 1970 when lengths of time are told."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Everything the audit found. `document` is all of it as plain data, `write` makes the report."""

    name: str
    columns: Columns
    unit: Unit
    counts: Counts
    rows: Rows = field(repr=False)
    """The rows looked at in time, with the outcomes of those that are mature."""
    map: Map = field(repr=False)
    width: Width
    sufficiency: Sufficiency = field(repr=False)
    effects: ActionEffects = field(repr=False)
    lateness: Lateness = field(repr=False)
    maturity: Maturity
    drift: Drift = field(repr=False)
    states: States
    propensities: Propensities | None
    fitted: Fitted = field(repr=False)
    advice: Advice
    seconds: bool
    """Whether times are in seconds."""
    ranking: Ranking = field(repr=False)
    """The order of the actions in `AUDIT.json`: a pool starts on the first."""
    personal: Personal | None = field(repr=False, default=None)
    """What contexts add, where they were asked about."""

    def __repr__(self) -> str:
        sizes = f"{int(self.counts.n.sum())} rows, {self.counts.n_actions} actions, {self.counts.n_states} states"
        return f"Audit({self.name}: {sizes}: {self.advice.verdict}, learner {self.advice.learner})"

    @cached_property
    def document(self) -> dict[str, Any]:
        """The audit as plain data, with the map to load under `actions`, `states`, `P`, `learner` and `settings`."""
        from statepool.audit.document import document_of

        return document_of(self)

    def write(self, out: Path | str) -> Path:
        """Write the report to a folder (or to an .html file) and `AUDIT.json` beside it; the report's path."""
        from statepool.audit.report import write_audit

        return write_audit(self, Path(out))


def audit_log(
    log: Any, *, action: str | None = None, state: str | None = None, outcome: str | None = None,
    decided: str | None = None, observed: str | None = None, resolved: str | None = None,
    propensity: str | None = None, group: str | None = None, ticket: str | None = None, holdout: str | None = None,
    context: str | Sequence[str] | None = None, table: str | None = None, reward: bool | None = None,
    rescale: bool = False, window: Any = None, missing: Any = None, delay: int | None = None,
    horizon: int | None = None, level: float = 0.95, seconds: float = 5.0, seed: int = 0,
) -> Audit:  # fmt: skip
    """Audit a log: a file or folder (CSV, Parquet, JSON lines), a frame, or a database's address and its `table`.

    Columns are named, or found by name; `context` names one or several that say who is asking. `reward` says that
    larger outcomes are better (None: the outcome's name does); `rescale` maps outcomes to [0, 1]; `window` is how long
    after its decision an outcome is what it is ("30d", or a bare number where times are numbers; 0: there is none;
    None: looked for); `missing` what a blank outcome means (a number, or "drop"); `delay` that
    in decisions where the log has no outcome times; `horizon` the decisions to simulate; `level` that of intervals;
    `seconds` the time allowed for the dimension's bracket. Raises ValueError, in one sentence, for a log that cannot be
    read so.

    >>> import pandas as pd
    >>> import statepool as sp
    >>> rows = [(a, s, (a + s + i) % 2) for i in range(200) for a in range(3) for s in range(2)]
    >>> log = pd.DataFrame(rows, columns=["action", "state", "loss"])
    >>> found = sp.audit_log(log, horizon=100)
    >>> found
    Audit(pandas frame: 1200 rows, 3 actions, 2 states: ...)
    """
    _check(delay, horizon, level, seconds, seed)
    blank = read_missing(missing)
    given = {
        "action": action, "state": state, "outcome": outcome, "decided": decided, "observed": observed,
        "resolved": resolved, "propensity": propensity, "group": group, "ticket": ticket, "holdout": holdout,
        "context": context,
    }  # fmt: skip
    opened = open_log(log, given, reward, blank if isinstance(blank, float) else None, table)
    try:
        looked = look(opened, window, blank is not None, rescale, seed)
    finally:
        opened.engine.close()
    return weigh_up(opened, looked, delay, horizon, level, seconds, seed)


def weigh_up(
    opened: Log, looked: Looked, delay: int | None, horizon: int | None, level: float, seconds: float, seed: int
) -> Audit:
    """Estimate, test, fit, try and advise, from what was counted and sampled."""
    counts, rows, maturity = looked.counts, looked.rows, looked.maturity
    map_ = estimate_map(counts, level)
    found = sufficiency_test(rows, counts.n_actions, counts.n_states, seed)
    effects = estimate_effects(counts, map_, found, seed)
    lateness = measure_lateness(looked.recorded, int((counts.n - counts.k).sum()), maturity, delay)
    typical = float(lateness.decisions[1]) if np.isfinite(lateness.decisions[1]) else 0.0
    drift = measure_drift(rows, map_.P, counts.state_means, typical)
    rounds = horizon or default_horizon(counts)
    fitted = fit_instance(counts, map_, drift, effects, lateness, rounds)
    personal = None
    if looked.contexts is not None:
        personal = personalise(looked.contexts, counts, rows, map_, effects, level, seconds, seed)
    verdict = judge(counts, found, effects, maturity, personal.least_worth if personal is not None else 0.0)
    advice = advise(verdict, fitted, seed)
    return Audit(
        opened.name, opened.columns, looked.unit, counts, rows, map_, measure_width(counts, map_, seconds, seed), found,
        effects, lateness, maturity, drift, look_at_states(counts, map_, rows, rounds, int(typical), seed),
        check_propensities(counts, effects.pooled, looked.held), fitted, advice,
        opened.seconds or SINCE_1970[0] < rows.latest < SINCE_1970[1],
        rank_actions(verdict.verdict, counts, map_), personal,
    )  # fmt: skip


def _check(delay: int | None, horizon: int | None, level: float, seconds: float, seed: int) -> None:
    if delay is not None:
        check_count(delay, "delay", lowest=0)
    if horizon is not None:
        check_count(horizon, "horizon")
    check_number(level, "level", 0.5, 0.9999)
    check_number(seconds, "seconds", 0, 1e6, open_low=True)
    check_whole(seed, "seed")
