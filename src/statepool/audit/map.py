"""The map from counts: shrunk rows to load, and an interval for every entry.

    P_hat(a) = (n(a) + kappa · prior) / (n(a) + kappa)      prior: the row of the action's group, or of all actions

kappa is read off the counts: with rho = 1/(kappa + 1) the share of the variance that lies between actions, Pearson's
statistic of the table has mean (K-1)(S-1) times 1 + rho (n0 - 1). Alike rows give a large kappa and rare actions
lean on the prior; rows that truly differ give a small one. Rows of groups are shrunk to the overall row likewise.
Intervals are Wilson's, of the plain proportions: they do not lean on other actions. With propensities rows count by
1/propensity, as many as they are worth.
"""

from dataclasses import dataclass

import numpy as np

from statepool.audit.counts import Counts
from statepool.audit.intervals import wilson
from statepool.checks import Floats

LEAST_SHARE = 1e-4
"""Rows are never taken to be more alike than this share of variance between them: kappa stays below 10 000."""


@dataclass(frozen=True, eq=False)
class Map:
    """P_hat, and for each entry the ends of an interval at `level`."""

    P: Floats
    lower: Floats
    upper: Floats
    level: float
    strength: float
    """kappa: how many rows the prior counts as."""
    prior: Floats
    """The row that each action is shrunk to."""


def estimate_map(counts: Counts, level: float = 0.95) -> Map:
    n = effective_counts(counts)
    overall = (n.sum(axis=0) + 1e-9) / (n.sum() + 1e-9 * counts.n_states)
    prior = np.tile(overall, (counts.n_actions, 1))
    if counts.groups is not None:
        prior = _rows_of_groups(n, counts.groups, overall)
    strength = shrinkage(n, prior)
    visits = n.sum(axis=1, keepdims=True)
    P = (n + strength * prior) / (visits + strength)
    lower, upper = wilson(n, visits, level)
    return Map(P / P.sum(axis=1, keepdims=True), lower, upper, level, strength, prior)


def effective_counts(counts: Counts) -> Floats:
    """Rows by action and state; with propensities weighted, and as many as the weighted rows are worth (Kish)."""
    if counts.weighted is None:
        return counts.n
    weights = counts.weighted.n
    totals = weights.sum(axis=1, keepdims=True)
    scale = counts.weighted.effective_rows[:, None] / np.maximum(totals, 1e-300)
    # Actions without a usable propensity keep their plain rows.
    return np.where(totals > 0, weights * scale, counts.n)


def _rows_of_groups(n: Floats, groups: tuple[str, ...], overall: Floats) -> Floats:
    names, place = np.unique(np.array(groups), return_inverse=True)
    tables = np.zeros((names.size, overall.size))
    np.add.at(tables, place, n)
    strength = shrinkage(tables, np.tile(overall, (names.size, 1)))
    rows = (tables + strength * overall) / (tables.sum(axis=1, keepdims=True) + strength)
    return np.asarray(rows[place])


def shrinkage(n: Floats, prior: Floats, own: Floats | None = None) -> float:
    """kappa, by the mean of Pearson's statistic; `own` is each row's part in its prior, by default its part of all."""
    visits = n.sum(axis=1)
    seen = (prior > 1e-8).sum(axis=1).max()
    if n.shape[0] < 2 or seen < 2:
        return 1.0
    expected = visits[:, None] * prior
    # The prior was made from the same rows: each takes out as much as it put in.
    own = np.where(visits > 0, visits / visits.sum() if own is None else own, 1.0)
    counted = (prior > 1e-8) & (expected > 0)
    pearson = float((np.divide((n - expected) ** 2, expected, out=np.zeros_like(n), where=counted)).sum())
    freedom = float((1 - own).sum()) * (seen - 1)
    growth = float(((1 - own) * (visits - 1)).sum()) * (seen - 1)
    share = (pearson - freedom) / growth if growth > 0 else LEAST_SHARE
    share = min(max(share, LEAST_SHARE), 0.5)
    return 1 / share - 1
