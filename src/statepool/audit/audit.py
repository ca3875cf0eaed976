"""From a log to an answer.

log ─▶ sample ─▶ window ─▶ counts ─▶ map, means ─┬▶ sufficiency ─▶ effects ─┬▶ advice
                                                 └▶ delays, drift, contexts ─┘

**What if.** What a log would have been worth under another policy x: three estimators, each with its interval.

    pooled    sum_s q_x(s) m(s) = mean of q_x(S)/q_log(S) · Y      q_x = sum_a x(a) P(·|a), m(s) the mean of the state
    plain     mean of w Y,  w = x(A) / propensity(A)                inverse propensity weighting
    robust    sum_a x(a) c(a) + mean of w (Y - c(A)),  c(a) = sum_s P(s|a) m(s)      doubly robust

The pooled one has by far the smallest variance (weights with second moment v, the map's effective dimension, in place
of K) and is right if the state is all that matters; its bias otherwise is sum_a x(a) D(a), D the direct effects, which
is bounded here by what the log leaves possible of them. Without propensities the actions' shares in the log stand in
for them. With contexts each is estimated within contexts and summed by their shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from statepool.arguments import pool_arguments
from statepool.audit.advice import Advice, Evidence, advise
from statepool.audit.contexts import Contexts, context_names, examine_contexts
from statepool.audit.counts import Counts, Unit, count_log, count_mature, draw_rows
from statepool.audit.delays import find_maturity, measure_lateness, read_missing, read_window
from statepool.audit.document import document_of, write_report
from statepool.audit.estimates import ABSENT, estimate_effects, estimate_map, measure_drift, sufficiency_test
from statepool.audit.log import Log, open_log, open_pool
from statepool.checks import Floats, check_count, check_number, check_whole, unknown_name

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

    @property
    def pool(self) -> dict[str, Any]:
        """Keyword arguments of `Pool.open` for the advised pool; a ValueError if the log cannot tell."""
        return pool_arguments(self.document)

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
    """Audit a log of decisions: should you pool, and how would a pool start? An open question is a ValueError.

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
    """Estimate what the log would have been worth under each policy.

    A policy is an action (or `fixed:ACTION`), `best` (the best by the audit's estimate; with contexts the best of
    each), `uniform`, `logged`, or a pool (`sqlite:///pool.db#home`). `columns` names columns by their part.
    """
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
    maturity = find_maturity(recorded, length)
    last, timed = np.fmax(recorded.decided, recorded.resolved), maturity.default is not None and log.columns.resolved
    undated = np.isfinite(recorded.loss) & ~np.isfinite(recorded.resolved) & (recorded.loss != maturity.default)
    odd = {  # kept, without their delay
        "outcome without a time of its own": undated & bool(timed),
        "outcome before its decision": recorded.resolved < recorded.decided,
        "time far from all others": (last > recorded.latest) | (recorded.decided < recorded.first),
    }  # fmt: skip
    found = {why: round(float(rows.mean()) * counts.rows) for why, rows in odd.items() if rows.any()}
    counts = replace(counts, notes=counts.notes | found)
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
    advice = advise(seen, contexts, horizon, level, seed)
    return Audit(**vars(seen), log=log, held=held, level=level, advice=advice, contexts=contexts, by_context=by_context)


@dataclass(frozen=True)
class Estimate:
    value: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True)
class WhatIf:
    """The worth of a decision under a policy, in the log's own unit."""

    policy: str
    logged: float
    """What the log's own mix was worth."""
    pooled: Estimate
    plain: Estimate
    robust: Estimate
    bias: float
    """The most that direct effects may bias the pooled estimate, at 95 %."""
    biased: bool
    """Whether they were found, and may bias it by more than its error: then the robust one is to be believed."""
    exact: bool
    """Whether propensities were logged; otherwise they are the actions' shares."""
    outcomes: int
    unit: str


def evaluate(audit: Audit, policy: str, level: float = 0.95) -> WhatIf:
    """What the audited log would have been worth under a policy."""
    contexts, tables, share = audit.contexts, [audit.counts], np.ones(1)
    best = [audit.advice.ranking.order[0]]
    if contexts is not None:  # those without a final outcome say nothing
        known = [c for c, counts in enumerate(audit.by_context) if counts.has_outcomes]
        if not known:
            raise ValueError("context: none has a final outcome, expected some to estimate from")
        tables, share = [audit.by_context[c] for c in known], contexts.rows[known] / contexts.rows[known].sum()
        best = contexts.best[known].tolist() if contexts.pays else best * len(known)
    policies = [read_policy(policy, counts, a) for counts, a in zip(tables, best, strict=True)]
    return estimate_policy(audit, tables, share, policies, policy, level)


def estimate_policy(
    audit: Any, tables: Sequence[Counts], share: Floats, policies: Sequence[Floats], name: str, level: float = 0.95
) -> WhatIf:
    """The worth of a policy on these counts, one table and one probability for each action in each context.

    `audit` has `unit`, `effects` and `sufficiency`; `share` is how frequent each context is.
    """
    unit: Unit = audit.unit
    values, errors, logged, bias = [], [], [], []
    for counts, x in zip(tables, policies, strict=True):
        untried = np.flatnonzero((x > 0) & counts.is_new)
        if untried.size:
            label = counts.actions[untried[0]]
            raise ValueError(f"policy: the log has no final outcome of {label!r}, expected actions that it tried")
        rows = counts.w["n"] / np.maximum(counts.w["n"].sum(axis=1, keepdims=True), 1e-300)
        k = counts.k.sum(axis=0)
        h = np.where(k > 0, counts.loss.sum(axis=0) / np.maximum(k, 1e-300), counts.mean)
        nothing = np.full(len(rows), unit.loss(0.0))
        found = _pooled(counts, rows, h, x), _weighted(counts, x, nothing), _weighted(counts, x, rows @ h)
        values.append([float(unit.outcome(loss)) for loss, _ in found])
        errors.append([error * unit.scale for _, error in found])
        D = audit.effects.open
        bias.append(unit.scale * float(abs(x @ D.mean) + 1.645 * (x**2 @ D.variance) ** 0.5))
        logged.append(float(unit.outcome(counts.mean)))
    z, value, error = NormalDist().inv_cdf(0.5 + level / 2), share @ values, (share**2 @ np.square(errors)) ** 0.5
    ends = zip(value, error, value - z * error, value + z * error, strict=True)
    pooled, plain, robust = (Estimate(*map(float, four)) for four in ends)
    most = float(share @ bias)
    biased = audit.sufficiency.effects != ABSENT and most > pooled.error
    outcomes = round(sum(float(counts.k.sum()) for counts in tables))
    logged_mean, exact = float(share @ logged), tables[0].weighted
    return WhatIf(name, logged_mean, pooled, plain, robust, most, biased, exact, outcomes, unit.name)


def _pooled(counts: Counts, rows: Floats, h: Floats, x: Floats) -> tuple[float, float]:
    """Mean and error; state means and rows come from the same log, and their errors are uncorrelated."""
    q, k = x @ rows, counts.k.sum(axis=0)
    variance = np.maximum(counts.square.sum(axis=0) / np.maximum(k, 1) - h**2, 0) / np.maximum(k - 1, 1)
    spread = np.maximum(rows @ h**2 - (rows @ h) ** 2, 0) / np.maximum(counts.effective_rows, 1)
    variance += (h - counts.base) ** 2 * counts.waiting
    return float(q @ h), float((q**2 @ variance + x**2 @ spread) ** 0.5)


def _weighted(counts: Counts, x: Floats, model: Floats) -> tuple[float, float]:
    """Mean and error of x·model + w (Y - model)."""
    n, k = float(counts.k.sum()), counts.k.sum(axis=1)
    w, ww, wx, wwx, wwxx = (counts.w[name].sum(axis=1) for name in ("k", "kk", "loss", "wloss", "wsquare"))
    # Without propensities every weight of the counts is 1.
    x_w = x if counts.weighted else x * np.divide(n, k, out=np.zeros_like(k), where=k > 0)
    base = float(x @ model)
    value = base + float((x_w * (wx - model * w)).sum()) / n
    # Shares take out what the actions' own numbers of rows vary by: rows spread around their action's mean.
    centre = model if counts.weighted else wx / np.maximum(w, 1e-300)
    squares = x_w**2 * (centre**2 * ww - 2 * centre * wwx + wwxx)
    mean = value - base if counts.weighted else 0.0
    variance = max(float(squares.sum()) / n - mean**2, 0.0)
    return value, (variance / n) ** 0.5


def read_policy(text: str, counts: Counts, best: int) -> Floats:
    """The policy that the text names, one probability for each action of the log."""
    actions = counts.actions
    if "://" in text:
        with open_pool(text) as pool:
            shares = {str(label): float(share) for label, share in pool.policy().items()}
        missing = [label for label, share in shares.items() if label not in actions and share > 1e-6]
        if missing:
            raise ValueError(f"policy: the pool chooses {missing[0]!r}, expected actions that the log tried")
        x = np.array([shares.get(action, 0.0) for action in actions])
        return np.asarray(x / x.sum())
    label = actions[best] if text == "best" else text.removeprefix("fixed:")
    if label in actions:
        return np.eye(len(actions))[actions.index(label)]
    if text == "uniform":
        tried = ~counts.is_new
        return np.asarray(tried / tried.sum())
    if text == "logged":
        return np.asarray(counts.k.sum(axis=1) / counts.k.sum())
    raise ValueError(unknown_name("policy", text, ["best", "uniform", "logged", *actions[:20]]))
