"""Do outcomes depend on the action beyond the state? A test for each state, by permutation within stretches of time.

The rows of a state, in order of decision, are cut into stretches of about `STRETCH` rows. If the state is all that
matters, the outcomes of a stretch are exchangeable among its actions, whatever the means did before and after and
whichever actions were frequent then: drift is not mistaken for an effect. With r the outcome less its stretch's mean,

    U(a) = sum of r over the rows of a          C(a) = sum over stretches of n(a) (1 - n(a)/n)
    T = sum_a (U(a) / (1 + M² C(a)))²           the score for effects with standard deviation M = `MATTERS` of the noise

T is compared with its values under shuffling within stretches: exact up to the number of shuffles, for outcomes of any
kind. Shuffling stops at the 20th larger value (Besag and Clifford). A T far beyond all shuffles gets its p-value from a
gamma distribution with their mean and variance. Holm's correction over states; the smallest is that of the whole log.

Size of effects, net of noise: tau² solves E T = its mean under shuffling + what effects of variance tau² add.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import cpu_count
from typing import Any

import numpy as np
from scipy.special import gammaincc

from statepool.audit.counts import Rows
from statepool.checks import Floats, Ints
from statepool.compiling import entry_point

STRETCH = 32
"""Rows of a state compared with each other: few, so that means hardly move; 1/32 of the evidence is the price."""
MATTERS = 0.1
LARGER, BATCH, PLAIN, MOST_SHUFFLES = 20, 100, 200, 2_000
"""Stop at so many larger values; look every so often; after so many if T is `FAR` off; and after so many anyway."""
FAR = 8.0
"""Standard deviations beyond the mean under shuffling."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of each action."""

    U: Floats
    C: Floats
    V: Floats
    """The variance of U(a) under shuffling, exactly."""
    own: Floats
    """Squared residuals of the action's own rows: larger than V where its outcomes are more spread than others'."""

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.U + other.U, self.C + other.C, self.V + other.V, self.own + other.own)


@dataclass(frozen=True, eq=False)
class StateTest:
    """One state: the test, the size of its direct effects, and the sums it rests on."""

    p: float
    size: float
    """tau, the standard deviation of direct effects over actions, net of noise; 0 where noise explains all."""
    size_error: float
    rows: int
    variance: float
    """sigma², of outcomes around their stretch's mean."""
    sums: Sums = field(repr=False)


@dataclass(frozen=True, eq=False)
class Sufficiency:
    states: list[StateTest]
    corrected: list[float]
    """Holm's p-values."""

    @property
    def p(self) -> float:
        """Of the whole log: that no state has direct effects."""
        return min(self.corrected, default=1.0)

    @property
    def sums(self) -> Sums:
        total = self.states[0].sums
        for test in self.states[1:]:
            total = total + test.sums
        return total

    @property
    def noise(self) -> float:
        """The variance of one outcome around its state and moment."""
        rows = np.array([test.rows for test in self.states], dtype=np.float64)
        return float(np.average([test.variance for test in self.states], weights=np.maximum(rows, 1e-9)))


def sufficiency_test(rows: Rows, n_actions: int, n_states: int, seed: int = 0) -> Sufficiency:
    parts = by_state(rows, n_states)

    def test(s: int) -> StateTest:
        return examine_state(rows.action[parts[s]], rows.loss[parts[s]], n_actions, seed=seed * 1_000_003 + s)

    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        tests = list(pool.map(test, range(n_states)))
    return Sufficiency(tests, holm([test.p for test in tests]))


def by_state(rows: Rows, n_states: int) -> list[Ints]:
    """The rows of each state that have an outcome, in order of decision."""
    known = np.flatnonzero(np.isfinite(rows.loss))
    ordered = known[np.argsort(rows.state[known], kind="stable")]
    return np.split(ordered, np.bincount(rows.state[known], minlength=n_states).cumsum()[:-1])


def label_sums(rows: Rows, n_labels: int, n_states: int) -> Sums:
    """Sums over all states, of labels that stand in the place of actions."""
    total = Sums(*np.zeros((4, n_labels)))
    for part in by_state(rows, n_states):
        total = total + _sums(rows.action[part], *_residuals(rows.loss[part]), n_labels)
    return total


def examine_state(action: Ints, loss: Floats, n_actions: int, seed: int) -> StateTest:
    """The test for one state, from its rows in order of decision."""
    residuals, stretch, sizes = _residuals(loss)
    sums = _sums(action, residuals, stretch, sizes, n_actions)
    variance = float((residuals**2).sum() / max(loss.size - sizes.size, 1))
    present = np.flatnonzero(sums.C > 0)
    if present.size < 2 or variance <= 1e-15:
        return StateTest(1.0, 0.0, 0.0, loss.size, variance, sums)
    weights = 1 / (1 + MATTERS**2 * sums.C) ** 2
    statistic = float((weights * sums.U**2).sum())
    # Actions that were never beside another have nothing to say: they share one place of weight 0.
    place = np.full(n_actions, present.size)
    place[present] = np.arange(present.size)
    starts = stretches(loss.size)
    drawn = _shuffle(residuals, place[action], starts, np.append(weights[present], 0.0), statistic, seed)
    size, error = _size(sums, weights, np.bincount(action, minlength=n_actions), drawn)
    return StateTest(p_value(statistic, drawn), size, error, loss.size, variance, sums)


def stretches(n: int) -> Ints:
    """Where stretches start, and the end: of STRETCH rows each, or a few more where they do not come out even."""
    return np.linspace(0, n, max(n // STRETCH, 1) + 1).astype(np.int64)


def _residuals(loss: Floats) -> tuple[Floats, Ints, Ints]:
    """Outcomes less the mean of their stretch, the stretch of each, and how long stretches are."""
    sizes = np.diff(stretches(loss.size))
    stretch = np.repeat(np.arange(sizes.size), sizes)
    return loss - (np.bincount(stretch, loss, sizes.size) / np.maximum(sizes, 1))[stretch], stretch, sizes


def _sums(action: Ints, residuals: Floats, stretch: Ints, sizes: Ints, n_actions: int) -> Sums:
    pairs, n = np.unique(stretch * n_actions + action, return_counts=True)
    where, who = pairs // n_actions, pairs % n_actions
    spread = n * (1 - n / sizes[where])
    squares = np.bincount(stretch, residuals**2, sizes.size)[where] / np.maximum(sizes[where] - 1, 1)
    parts = ((action, residuals), (who, spread), (who, spread * squares), (action, residuals**2))
    return Sums(*(np.asarray(np.bincount(at, values, n_actions), dtype=np.float64) for at, values in parts))


def _shuffle(residuals: Floats, action: Ints, starts: Ints, weights: Floats, statistic: float, seed: int) -> Floats:
    """T under shuffling, as often as it takes."""
    residuals, sums = residuals.copy(), np.empty(weights.size)
    draws = np.random.default_rng((seed, 11)).integers(1 << 63, size=MOST_SHUFFLES // BATCH)
    found = np.empty(0)
    for number in draws:
        batch = np.empty(BATCH)
        _shuffled_statistics(residuals, action, starts, weights, sums, np.uint64(number), batch)
        found = np.append(found, batch)
        far = found.size >= PLAIN and statistic > found.mean() + FAR * found.std() and statistic > found.max()
        if far or (found >= statistic).sum() >= LARGER:
            break
    return found


def p_value(statistic: float, drawn: Floats) -> float:
    """The share of shuffles at least as large; by a gamma tail where none is and the statistic is far off."""
    # A hair's breadth for rounding: shuffles that undo themselves are equal, not smaller.
    larger = np.flatnonzero(drawn >= statistic * (1 - 1e-12))
    if larger.size >= LARGER:
        return LARGER / float(larger[LARGER - 1] + 1)
    plain = (larger.size + 1) / (drawn.size + 1)
    mean, variance = float(drawn.mean()), float(drawn.var())
    if larger.size or variance <= 0 or statistic < mean + FAR * variance**0.5:
        return plain
    return min(plain, max(float(gammaincc(mean**2 / variance, statistic * mean / variance)), 1e-300))


def _size(sums: Sums, weights: Floats, n: Ints, drawn: Floats) -> tuple[float, float]:
    """tau and its standard error, by moments: an effect of b moves U(b) by C(b), and U(a) by -n(a) n(b)/N, about."""
    shares = n / n.sum()
    others = n**2 * ((shares**2).sum() - shares**2)
    lever = float((weights * (sums.C**2 + others)).sum())
    square = float((weights * (sums.U**2 - sums.V)).sum()) / lever
    size = max(square, 0.0) ** 0.5
    # Two sources: the noise of outcomes, and which effects these few actions happen to have.
    pulls = weights * sums.C**2
    sampled = size**2 * (2 * float((pulls**2).sum())) ** 0.5 / float(pulls.sum())
    error = float(np.hypot(drawn.std() / lever, sampled))
    return size, error / (2 * size) if size**2 > error else error**0.5


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction."""
    order = np.argsort(p, kind="stable")
    corrected, largest = np.empty(len(p)), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p[i] * (len(p) - rank)))
        corrected[i] = largest
    return [float(value) for value in corrected]


@entry_point
def _shuffled_statistics(
    residuals: Any, actions: Any, starts: Any, weights: Any, sums: Any, seed: Any, out: Any
) -> None:
    """Fill `out` with T under as many shuffles; `residuals` are left shuffled, `sums` is room for U."""
    state = np.uint64(seed)
    for i in range(out.size):
        for a in range(sums.size):
            sums[a] = 0.0
        for b in range(starts.size - 1):
            low, high = starts[b], starts[b + 1]
            for j in range(high - 1, low, -1):
                # splitmix64; the product of its upper half and the range is an even enough draw for short stretches.
                state = state + np.uint64(0x9E3779B97F4A7C15)
                z = state
                z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                z = z ^ (z >> np.uint64(31))
                k = low + np.int64(((z >> np.uint64(32)) * np.uint64(j - low + 1)) >> np.uint64(32))
                residuals[j], residuals[k] = residuals[k], residuals[j]
                sums[actions[j]] += residuals[j]
            sums[actions[low]] += residuals[low]
        total = 0.0
        for a in range(sums.size):
            total += weights[a] * sums[a] * sums[a]
        out[i] = total
