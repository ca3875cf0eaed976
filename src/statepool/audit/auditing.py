"""From a log to an answer: read, count, estimate, test, fit, try, advise.

log ─▶ counts ─▶ map, means          ─▶ dimension
    └▶ sample ─▶ sufficiency, delays, drift ─▶ effects ─▶ fitted instance ─▶ advice
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from statepool.audit.advice import Advice, advise
from statepool.audit.columns import Columns
from statepool.audit.counts import Counts, count_log
from statepool.audit.drift import Drift, measure_drift
from statepool.audit.effects import Effects, estimate_effects
from statepool.audit.fitting import Fitted, default_horizon, fit_instance
from statepool.audit.lateness import Lateness, measure_lateness
from statepool.audit.mapping import Map, estimate_map
from statepool.audit.propensities import Propensities, check_propensities
from statepool.audit.reading import open_log
from statepool.audit.sample import Rows, draw_rows
from statepool.audit.states import States, look_at_states
from statepool.audit.sufficiency import Sufficiency, sufficiency_test
from statepool.audit.width import Width, measure_width
from statepool.checks import check_count, check_number


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything the audit found. `document` is all of it as plain data, `write` makes the report."""

    name: str
    columns: Columns
    counts: Counts
    rows: Rows = field(repr=False)
    map: Map = field(repr=False)
    width: Width
    sufficiency: Sufficiency = field(repr=False)
    effects: Effects = field(repr=False)
    lateness: Lateness = field(repr=False)
    drift: Drift = field(repr=False)
    states: States
    propensities: Propensities | None
    fitted: Fitted = field(repr=False)
    advice: Advice
    seconds: bool
    """Whether times are in seconds."""

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
    propensity: str | None = None, group: str | None = None, ticket: str | None = None, reward: bool = False,
    rescale: bool = False, delay: int | None = None, horizon: int | None = None, level: float = 0.95,
    seconds: float = 5.0, seed: int = 0,
) -> Audit:  # fmt: skip
    """Audit a log: a file (CSV, Parquet, JSON lines), or a pandas or polars frame.

    Columns are named, or found by name. `reward` says that larger outcomes are better; `rescale` maps outcomes to
    [0, 1]; `delay` is that in decisions where the log has no outcome times; `horizon` the decisions to simulate;
    `level` that of the map's intervals; `seconds` the time allowed for the dimension's bracket.
    """
    _check(delay, horizon, level, seconds, seed)
    given = {
        "action": action, "state": state, "outcome": outcome, "decided": decided, "observed": observed,
        "resolved": resolved, "propensity": propensity, "group": group, "ticket": ticket,
    }  # fmt: skip
    opened = open_log(log, given, reward)
    try:
        counts = count_log(opened, rescale)
        rows = draw_rows(opened, counts, seed)
    finally:
        opened.connection.close()
    map_ = estimate_map(counts, level)
    found = sufficiency_test(rows, counts.n_actions, counts.n_states, seed)
    effects = estimate_effects(counts, map_, found, seed)
    lateness = measure_lateness(rows, int((counts.n - counts.k).sum()), delay)
    typical = float(lateness.decisions[1]) if np.isfinite(lateness.decisions[1]) else 0.0
    drift = measure_drift(rows, map_.P, counts.state_means, typical)
    rounds = horizon or default_horizon(counts)
    fitted = fit_instance(counts, map_, drift, effects, lateness, rounds)
    return Audit(
        opened.name, opened.columns, counts, rows, map_, measure_width(counts, map_, seconds, seed), found, effects,
        lateness, drift, look_at_states(counts, map_, rows, rounds, int(typical), seed),
        check_propensities(counts, effects.pooled), fitted,
        advise(counts, found, effects, lateness, fitted, seed), opened.seconds,
    )  # fmt: skip


def _check(delay: int | None, horizon: int | None, level: float, seconds: float, seed: int) -> None:
    if delay is not None:
        check_count(delay, "delay", lowest=0)
    if horizon is not None:
        check_count(horizon, "horizon")
    check_number(level, "level", 0.5, 0.9999)
    check_number(seconds, "seconds", 0, 1e6, open_low=True)
    check_count(seed, "seed", lowest=0)
