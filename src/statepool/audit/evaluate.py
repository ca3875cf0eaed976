"""What a log would have been worth under another policy x: three estimators, each with its interval.

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
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from statepool.audit.counts import Counts, Unit
from statepool.audit.log import open_pool
from statepool.checks import Floats, unknown_name

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

NAMED = ("best", "uniform", "logged")


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


def evaluate(audit: Audit, policy: str, level: float = 0.95) -> WhatIf:
    """What the audited log would have been worth under a policy.

    Parameters
    ----------
    policy : str
        An action (or `fixed:ACTION`), `best` (the action that the advice starts on; with contexts the best of each),
        `uniform`, `logged`, or the address of a pool such as `sqlite:///pool.db#home`.
    """
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
    biased = bool(audit.sufficiency.p < 0.05 and most > pooled.error)
    outcomes = sum(int(counts.k.sum()) for counts in tables)
    return WhatIf(name, float(share @ logged), pooled, plain, robust, most, biased, tables[0].weighted, outcomes)


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
    # Without propensities the actions' shares stand in for them, and every weight of the counts is 1.
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
        return _policy_of_pool(text, actions)
    label = text.removeprefix("fixed:")
    place = actions.index(label) if label in actions else None
    if text == "best":
        place = best
    if place is not None:
        return np.eye(len(actions))[place]
    if text == "uniform":
        tried = ~counts.is_new
        return np.asarray(tried / tried.sum())
    if text == "logged":
        return np.asarray(counts.k.sum(axis=1) / counts.k.sum())
    raise ValueError(unknown_name("policy", text, [*NAMED, *actions[:20]]))


def _policy_of_pool(address: str, actions: tuple[str, ...]) -> Floats:
    """What a pool would do now."""
    with open_pool(address) as pool:
        shares = {str(label): float(share) for label, share in pool.policy().items()}
    missing = [label for label, share in shares.items() if label not in actions and share > 1e-6]
    if missing:
        raise ValueError(f"policy: the pool chooses {missing[0]!r}, expected actions that the log tried")
    x = np.array([shares.get(action, 0.0) for action in actions])
    return np.asarray(x / x.sum())
