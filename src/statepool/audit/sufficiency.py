"""Do outcomes depend on the action beyond the state? A test for each state, by permutation within stretches of time.

The rows of a state, in order of decision, are cut into stretches of `STRETCH` rows or a few more. If the state is all
that matters, the outcomes of a stretch are exchangeable among its actions, whatever the means did before and after and
whichever actions were frequent then: drift is not mistaken for an effect. With r the outcome less its stretch's mean,

    U(a) = sum of r over the rows of a          C(a) = sum over stretches of n(a) (1 - n(a)/n)
    T = sum_a (U(a) / (1 + M² C(a)))²           the score for effects with standard deviation M = `MATTERS` of the noise

T is compared with its values under shuffling within stretches, until `COUNTED` of them are larger (Besag and Clifford's
sequential test). Tails beyond most shuffles are those of a gamma distribution with their mean and variance. Holm's
correction over states; the smallest is that of the whole log.

Whether something happens and how much it brings are different things: purchases depend on the state, amounts on the
product's price. Amounts, if they differ at all, are tested beside the states, in the strata of all of them.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import gamma

from statepool.audit.counts import Rows
from statepool.checks import Floats, Ints

STRETCH = 32
"""Rows of a state compared with each other: few, so that means hardly move; 1/32 of the evidence is the price."""
MATTERS = 0.1
SHUFFLES, WORK = (200, 2_000), 4e6
"""The least and the most shuffles; between them as many as shuffle `WORK` rows in all."""
COUNTED = 20
"""With so many larger shuffles the p-value is their share, and no more are drawn."""


@dataclass(frozen=True, eq=False)
class StateTest:
    """One state: the test, and the sums it rests on."""

    p: float
    rows: int
    variance: float
    """sigma², of outcomes around their stretch's mean."""
    sums: Floats = field(repr=False)
    """U, C, and the variance of U under shuffling, exactly: one column for each action."""


@dataclass(frozen=True, eq=False)
class Amounts:
    """How much events bring, as the loss beyond that of nothing happening."""

    p: float
    """That it does not depend on the action; 1 where all bring the same."""
    mean: float
    own: Floats
    """Mean of each action's events beyond what is usual in their states, 0 where there is none."""
    events: Ints
    variance: float
    """Of amounts within an action."""
    differ: bool


@dataclass(frozen=True, eq=False)
class Sufficiency:
    states: list[StateTest]
    happens: Floats = field(repr=False)
    """The sums of whether something happens, 0 or 1."""
    amounts: Amounts
    base: float
    """The loss if nothing happens."""
    corrected: list[float]
    """Holm's p-values of the states."""
    p: float
    """Of the whole log: that nothing has direct effects."""

    @property
    def noise(self) -> float:
        """The variance of one outcome around its state and moment."""
        rows = np.array([test.rows for test in self.states], dtype=np.float64)
        return float(np.average([test.variance for test in self.states], weights=np.maximum(rows, 1e-9)))


def sufficiency_test(rows: Rows, n_actions: int, n_states: int, seed: int = 0, base: float = 0.0) -> Sufficiency:
    """The test, from the sample with final outcomes; `base` is the loss if nothing happens."""
    parts = by_state(rows, n_states)
    tests = [
        examine([(rows.action[part], rows.loss[part])], n_actions, seed * 1_000_003 + s) for s, part in enumerate(parts)
    ]
    happens = np.zeros((3, n_actions))
    for part in parts:
        happens += _sums(*stretches(rows.action[part], (rows.loss[part] != base) * 1.0), n_actions)
    amounts = _amounts(rows, [part[rows.loss[part] != base] for part in parts], base, n_actions, seed)
    ps = [test.p for test in tests]
    everything = holm([*ps, amounts.p] if amounts.differ else ps)
    return Sufficiency(tests, happens, amounts, base, holm(ps), min(everything, default=1.0))


def _amounts(rows: Rows, events: list[Ints], base: float, n_actions: int, seed: int) -> Amounts:
    test = examine([(rows.action[part], rows.loss[part]) for part in events], n_actions, seed * 1_000_003 + len(events))
    every = np.concatenate(events)
    usual = np.concatenate([np.full(part.size, rows.loss[part].mean() if part.size else 0.0) for part in events])
    action, beyond = rows.action[every], rows.loss[every] - usual
    n = np.bincount(action, minlength=n_actions)
    own = np.bincount(action, beyond, n_actions) / np.maximum(n, 1)
    within = float(((beyond - own[action]) ** 2).sum()) / max(every.size - int((n > 0).sum()), 1)
    mean = float(rows.loss[every].mean()) - base if every.size else 1.0
    return Amounts(test.p, mean, own, n, within, test.variance > 0)


def by_state(rows: Rows, n_states: int) -> list[Ints]:
    """The rows of each state that have an outcome, in order of decision."""
    known = np.flatnonzero(np.isfinite(rows.loss))
    ordered = known[np.argsort(rows.state[known], kind="stable")]
    return np.split(ordered, np.bincount(rows.state[known], minlength=n_states).cumsum()[:-1])


def examine(strata: list[tuple[Ints, Floats]], n_actions: int, seed: int) -> StateTest:
    """The test for one state, or for several as one, from the actions and losses of each in order of decision."""
    cut = [stretches(action, loss) for action, loss in strata]
    sums = np.zeros((3, n_actions))
    for action, residuals in cut:
        sums += _sums(action, residuals, n_actions)
    U, C, _ = sums
    n = sum(loss.size for _, loss in strata)
    squares, groups = sum(float((r**2).sum()) for _, r in cut), sum(len(r) for _, r in cut)
    variance = squares / max(n - groups, 1)
    if (C > 0).sum() < 2 or variance <= 1e-15:
        return StateTest(1.0, n, variance if variance > 1e-15 else 0.0, sums)
    weights = 1 / (1 + MATTERS**2 * C) ** 2 * (C > 0)
    statistic = float((weights * U**2).sum())
    # A hair's breadth for rounding: shuffles that undo themselves are equal, not smaller.
    least, larger = statistic * (1 - 1e-12), 0
    rng = np.random.default_rng((seed, 11))
    drawn: list[float] = []
    while larger < COUNTED and len(drawn) < np.clip(WORK / n, *SHUFFLES):
        shuffled = [np.bincount(a.ravel(), rng.permuted(r, axis=1).ravel(), n_actions) for a, r in cut]
        drawn.append(float((weights * np.sum(shuffled, axis=0) ** 2).sum()))
        larger += drawn[-1] >= least
    return StateTest(p_value(statistic, np.array(drawn), larger), n, variance, sums)


def stretches(action: Ints, loss: Floats) -> tuple[Ints, Floats]:
    """Actions, and outcomes less the mean of their stretch: one row for each stretch, all of one length.

    What does not come out even is left out at the start: less than one row for each stretch.
    """
    count = max(loss.size // STRETCH, 1)
    used = loss.size - loss.size % count
    actions, losses = action[loss.size - used :].reshape(count, -1), loss[loss.size - used :].reshape(count, -1)
    return actions, losses - losses.mean(axis=1, keepdims=True) if used else losses


def _sums(action: Ints, residuals: Floats, n_actions: int) -> Floats:
    length = residuals.shape[1]
    pairs, n = np.unique(np.arange(len(action))[:, None] * n_actions + action, return_counts=True)
    where, who = pairs // n_actions, pairs % n_actions
    spread = n * (1 - n / max(length, 1))
    squares = ((residuals**2).sum(axis=1) / max(length - 1, 1))[where]
    flat = residuals.ravel()
    parts = ((action.ravel(), flat), (who, spread), (who, spread * squares))
    return np.array([np.bincount(at, values, n_actions) for at, values in parts], dtype=np.float64)


def p_value(statistic: float, drawn: Floats, larger: int) -> float:
    """The share of shuffles at least as large; by a gamma tail where these are fewer than `COUNTED`."""
    if larger >= COUNTED:
        return larger / drawn.size
    mean, variance = float(drawn.mean()), float(drawn.var())
    if variance <= 0:
        return (larger + 1) / (drawn.size + 1)
    return max(float(gamma.sf(statistic, mean**2 / variance, scale=variance / mean)), 1e-300)


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(np.array(p)[order] * np.arange(len(p), 0, -1), 1.0)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(steps)
    return corrected.tolist()
