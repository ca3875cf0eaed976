"""From a log to an answer.

log ─▶ sample ─▶ window ─▶ counts ─▶ map, means ─┬▶ sufficiency ─▶ effects ─┬▶ advice
                                                 └▶ delays, drift, contexts ─┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from statepool.audit.advice import Advice, Evidence, advise
from statepool.audit.contexts import Contexts, context_names, examine_contexts
from statepool.audit.counts import Counts, count_log, count_mature, draw_rows
from statepool.audit.delays import find_maturity, measure_lateness, read_missing, read_window
from statepool.audit.document import document_of, write_report
from statepool.audit.effects import estimate_effects, sufficiency_test
from statepool.audit.estimates import estimate_map, measure_drift
from statepool.audit.evaluate import WhatIf, evaluate
from statepool.audit.log import Log, open_log
from statepool.checks import check_count, check_number, check_whole

SINCE_1970 = (5e8, 5e9)
"""Times that are numbers between these are taken for seconds since 1970 when lengths of time are shown."""
LEAST_HELD = 2_000
"""Outcomes of a holdout from which means and effects rest on it alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Evidence):
    """Everything the audit found. `document` is all of it as plain data; `write` makes the report."""

    log: Log
    held: bool
    """Whether means and effects rest on the rows of a holdout alone."""
    level: float
    advice: Advice
    contexts: Contexts | None
    by_context: list[Counts] = field(repr=False)

    def __repr__(self) -> str:
        sizes = f"{self.counts.rows} rows, {self.counts.n_actions} actions, {self.counts.n_states} states"
        learner = f", learner {self.advice.learner}" if self.advice.learner else ""
        return f"Audit({self.log.name}: {sizes}: {self.advice.verdict}{learner})"

    @property
    def seconds(self) -> bool:
        """Whether times are in seconds."""
        return self.log.seconds or SINCE_1970[0] < self.rows.latest < SINCE_1970[1]

    @cached_property
    def document(self) -> dict[str, Any]:
        """The audit as plain data, with the pool to start: what `AUDIT.json` holds."""
        return document_of(self)

    def write(self, out: Path | str) -> Path:
        """Write the report to a folder (or to an .html file) and `AUDIT.json` beside it; return the report's path."""
        return write_report(self, Path(out))


def audit_log(
    log: Any, *, action: str | None = None, state: str | None = None, outcome: str | None = None,
    decided: str | None = None, resolved: str | None = None, propensity: str | None = None,
    ticket: str | None = None, holdout: str | None = None, context: str | Sequence[str] | None = None,
    table: str | None = None, reward: bool | None = None, window: Any = None, missing: Any = None,
    delay: int | None = None, horizon: int | None = None, level: float = 0.95, seed: int = 0,
) -> Audit:  # fmt: skip
    """Audit a log of decisions: should you pool, and how would a pool start?

    Parameters
    ----------
    log : path, frame, Ibis table or str
        A file, folder or pattern (CSV, Parquet, JSON lines), a pandas or polars frame, an Ibis table, a database's
        address with `table`, or the address of a pool's store.
    action, state, outcome, decided, resolved, propensity, ticket, holdout : str, optional
        Names of columns; found by name when not given.
    context : str or sequence of str, optional
        Columns that say who is asking.
    reward : bool, optional
        Whether larger outcomes are better; by default the outcome's name decides.
    window : str, number or timedelta, optional
        How long after a decision its outcome is final ("30d", or a number where times are numbers; 0: all are final).
        By default it is found in the log.
    missing : number or "drop", optional
        What a blank outcome means.
    delay : int, optional
        Delay in decisions where the log has no outcome times.
    horizon : int, optional
        Decisions to simulate.
    level : float
        Level of intervals.

    Raises
    ------
    ValueError
        In one sentence, if the log cannot be read or a question has to be answered first.

    Examples
    --------
    >>> import pandas as pd
    >>> import statepool as sp
    >>> rows = [(a, s, (a + s + i) % 2) for i in range(200) for a in range(3) for s in range(2)]
    >>> sp.audit_log(pd.DataFrame(rows, columns=["action", "state", "loss"]), horizon=100)
    Audit(pandas frame: 1200 rows, 3 actions, 2 states: ...)
    """
    columns = {
        "action": action, "state": state, "outcome": outcome, "decided": decided, "resolved": resolved,
        "propensity": propensity, "ticket": ticket, "holdout": holdout, "context": context,
    }  # fmt: skip
    with open_log(log, columns, reward, read_missing(missing), table, window is not None) as opened:
        return _examine(opened, window, delay, horizon, level, seed)


def what_if(
    log: Any, policies: Sequence[str], *, columns: dict[str, Any] | None = None, table: str | None = None,
    reward: bool | None = None, window: Any = None, missing: Any = None, level: float = 0.95, seed: int = 0,
) -> list[WhatIf]:  # fmt: skip
    """Estimate what the log would have been worth under each policy (see `evaluate`).

    `columns` names columns by their part, contexts, tickets and holdouts included; the rest is as in `audit_log`.
    """
    if not policies:
        raise ValueError("policy: none is named, expected an action, best, uniform, logged, or a pool's address")
    with open_log(log, columns or {}, reward, read_missing(missing), table, window is not None) as opened:
        audit = _examine(opened, window, None, 1, level, seed)
        if not audit.counts.has_outcomes:
            raise ValueError("log: has no final outcome, expected some to estimate from")
        return [evaluate(audit, policy, level) for policy in policies]


def _examine(log: Log, window: Any, delay: int | None, horizon: int | None, level: float, seed: int) -> Audit:
    check_number(level, "level", 0.5, 0.9999)
    check_whole(seed, "seed")
    if delay is not None:
        check_count(delay, "delay", lowest=0)
    if horizon is not None:
        check_count(horizon, "horizon")
    length = log.window if window is None else read_window(window, log.seconds)
    counts, unit = count_log(log)
    names = context_names(log, counts)
    recorded = draw_rows(log, counts, unit, seed)
    odd = {
        "outcome before its decision": recorded.resolved < recorded.decided,  # kept without their delay
        "time far after all others": np.fmax(recorded.decided, recorded.resolved) > recorded.latest,
    }
    found = {why: round(float(rows.mean()) * counts.rows) for why, rows in odd.items() if rows.any()}
    counts = replace(counts, notes=counts.notes | found)
    maturity = find_maturity(recorded, length)
    held = bool((np.isfinite(recorded.loss) & (recorded.held == 1)).mean() * counts.rows >= LEAST_HELD)
    by_context: list[Counts] = []
    if maturity.window is not None or held or names:
        before = counts.states
        counts, *by_context = count_mature(log, counts, unit, maturity, held, names)
        place = np.array([counts.states.index(name) for name in before])
        recorded = replace(recorded, state=place[recorded.state])
    rows = maturity.matured(recorded)
    if held:
        rows = replace(rows, loss=np.where(recorded.held == 1, rows.loss, np.nan))
    base = unit.loss(log.missing if isinstance(log.missing, float) else 0.0)
    base = base if maturity.default is None else maturity.default
    map_ = estimate_map(counts)
    test = sufficiency_test(rows, counts.n_actions, counts.n_states, seed, base)
    effects = estimate_effects(counts, map_, test, seed)
    lateness = measure_lateness(recorded, maturity, delay)
    drift = measure_drift(rows, counts.state_means)
    contexts = None
    if names:
        contexts = examine_contexts(log.columns.context, names, by_context, counts, map_, effects, level)
    seen = Evidence(counts, unit, map_, test, effects, rows, maturity, lateness, drift)
    advice = advise(seen, horizon, level, seed, 0.0 if contexts is None else max(contexts.gain.lower, 0.0))
    return Audit(**vars(seen), log=log, held=held, level=level, advice=advice, contexts=contexts, by_context=by_context)
