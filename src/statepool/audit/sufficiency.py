"""Do outcomes depend on the action beyond the state? A test for each state, by permutation within stretches of time.

The rows of a state, in order of decision, are cut into stretches of about `STRETCH` rows. If the state is all that
matters, the outcomes of a stretch are exchangeable among its actions, whatever the means did before and after it and
whichever actions were in favour then: drift is not mistaken for an effect. With r the outcome less its stretch's mean,

    U(a) = sum of r over the rows of a          C(a) = sum over stretches of n(a) (1 - n(a)/n)
    T = sum_a (U(a) / (1 + M² C(a)/sigma²))²    the score for effects that vary with standard deviation M = `MATTERS`

T is compared with its own values under shuffling within stretches: exact up to the number of shuffles, for losses of
any kind. Shuffling stops early once the answer is plain (Besag and Clifford: at the 20th larger value). A T far beyond
all shuffles is read off a gamma distribution with their mean and variance. Holm's correction over states; the
smallest corrected value is that of the whole log.

Size of effects, net of noise: tau² solves E T = its mean under shuffling + what effects of variance tau² add.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from statepool.audit.sample import Rows
from statepool.audit.shuffles import shuffled_statistics
from statepool.checks import Floats, Ints

STRETCH = 32
"""Rows of a state compared with each other: short, so that means stand still; 1/32 of the evidence is the price."""

MATTERS = 0.05
LARGER, BATCH, PLAIN, MOST_SHUFFLES = 20, 100, 200, 2_000
"""Stop at so many larger values; look every so often; after so many if T is `FAR` off; and after so many anyway."""

FAR = 8.0
"""Standard deviations beyond the mean under shuffling."""


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
    U: Floats = field(repr=False)
    C: Floats = field(repr=False)
    V: Floats = field(repr=False)
    """The variance of U(a) under shuffling, exactly."""
    halves: tuple[Floats, Floats, Floats, Floats] = field(repr=False)
    """U and C of odd and of even stretches alone: two looks that share no outcome."""


@dataclass(frozen=True, eq=False)
class Sufficiency:
    states: list[StateTest]
    corrected: list[float]
    """Holm's p-values."""

    @property
    def p(self) -> float:
        """That of the whole log: of no state having direct effects."""
        return min(self.corrected, default=1.0)


def sufficiency_test(rows: Rows, n_actions: int, n_states: int, seed: int = 0) -> Sufficiency:
    parts = _by_state(rows, n_states)

    def test(s: int) -> StateTest:
        return examine_state(rows.action[parts[s]], rows.loss[parts[s]], n_actions, seed=seed * 1_000_003 + s)

    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        tests = list(pool.map(test, range(n_states)))
    return Sufficiency(tests, holm([test.p for test in tests]))


def _by_state(rows: Rows, n_states: int) -> list[Ints]:
    """The rows of each state that have an outcome, in order of decision."""
    known = np.flatnonzero(np.isfinite(rows.loss))
    ordered = known[np.argsort(rows.state[known], kind="stable")]
    return np.split(ordered, np.bincount(rows.state[known], minlength=n_states).cumsum()[:-1])


def label_sums(rows: Rows, n_labels: int, n_states: int) -> tuple[Floats, Floats, Floats]:
    """U, C and V over all states, of the labels that stand in the place of actions."""
    total = np.zeros((3, n_labels))
    for part in _by_state(rows, n_states):
        total += _sums(rows.action[part], *_residuals(rows.loss[part]), n_labels)
    return total[0], total[1], total[2]


def examine_state(action: NDArray[np.int64], loss: Floats, n_actions: int, seed: int) -> StateTest:
    """The test for one state, from its rows in order of decision."""
    starts = stretches(loss.size)
    residuals, stretch, sizes = _residuals(loss)
    U, C, V = _sums(action, residuals, stretch, sizes, n_actions)
    variance = float((residuals**2).sum() / max(loss.size - sizes.size, 1))
    odd = stretch % 2 == 1
    halves = [_sums(action[half], residuals[half], stretch[half], sizes, n_actions)[:2] for half in (odd, ~odd)]
    flat = (halves[0][0], halves[0][1], halves[1][0], halves[1][1])
    present = np.flatnonzero(C > 0)
    if present.size < 2 or variance <= 1e-12:
        return StateTest(1.0, 0.0, 0.0, loss.size, variance, U, C, V, flat)
    weights = 1 / (1 + MATTERS**2 * C / variance) ** 2
    statistic = float((weights * U**2).sum())
    # Actions that were never beside another have nothing to say: they share one place of weight 0.
    place = np.full(n_actions, present.size)
    place[present] = np.arange(present.size)
    drawn = _shuffle(residuals, place[action], starts, np.append(weights[present], 0.0), statistic, seed)
    size, error = _size(U, C, V, weights, np.bincount(action, minlength=n_actions), drawn)
    return StateTest(p_value(statistic, drawn), size, error, loss.size, variance, U, C, V, flat)


def stretches(n: int) -> Ints:
    """Where stretches start, and the end: of STRETCH rows each, or a few more where they do not come out even."""
    return np.linspace(0, n, max(n // STRETCH, 1) + 1).astype(np.int64)


def _residuals(loss: Floats) -> tuple[Floats, Ints, Ints]:
    """Outcomes less the mean of their stretch, the stretch of each, and how long stretches are."""
    sizes = np.diff(stretches(loss.size))
    stretch = np.repeat(np.arange(sizes.size), sizes)
    return loss - (np.bincount(stretch, loss, sizes.size) / np.maximum(sizes, 1))[stretch], stretch, sizes


def _sums(
    action: NDArray[np.int64], residuals: Floats, stretch: Ints, sizes: Ints, n_actions: int
) -> tuple[Floats, Floats, Floats]:
    """U, C and V."""
    pairs, n = np.unique(stretch * n_actions + action, return_counts=True)
    where, who = pairs // n_actions, pairs % n_actions
    spread = n * (1 - n / sizes[where])
    squares = np.bincount(stretch, residuals**2, sizes.size)[where] / np.maximum(sizes[where] - 1, 1)
    parts = ((action, residuals), (who, spread), (who, spread * squares))
    U, C, V = (np.asarray(np.bincount(at, values, n_actions), dtype=np.float64) for at, values in parts)
    return U, C, V


def _shuffle(residuals: Floats, action: Ints, starts: Ints, weights: Floats, statistic: float, seed: int) -> Floats:
    """T under shuffling, as often as it takes."""
    residuals, sums = residuals.copy(), np.empty(weights.size)
    draws = np.random.default_rng((seed, 11)).integers(1 << 63, size=MOST_SHUFFLES // BATCH)
    found = np.empty(0)
    for number in draws:
        batch = np.empty(BATCH)
        shuffled_statistics(residuals, action, starts, weights, sums, np.uint64(number), batch)
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
    from scipy.special import gammaincc

    return min(plain, max(float(gammaincc(mean**2 / variance, statistic * mean / variance)), 1e-300))


def _size(U: Floats, C: Floats, V: Floats, weights: Floats, n: Ints, drawn: Floats) -> tuple[float, float]:
    """tau and its standard error, by moments: an effect of b moves U(b) by C(b), and U(a) by -n(a) n(b)/N, about."""
    shares = n / n.sum()
    others = n**2 * ((shares**2).sum() - shares**2)
    lever = float((weights * (C**2 + others)).sum())
    square = float((weights * (U**2 - V)).sum()) / lever
    size = max(square, 0.0) ** 0.5
    # Two sources: the noise of outcomes, and the luck of which effects these few actions have.
    pulls = weights * C**2
    luck = size**2 * (2 * float((pulls**2).sum())) ** 0.5 / float(pulls.sum())
    error = float(np.hypot(drawn.std() / lever, luck))
    return size, error / (2 * size) if size**2 > error else error**0.5


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction."""
    order = np.argsort(p, kind="stable")
    corrected, largest = np.empty(len(p)), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p[i] * (len(p) - rank)))
        corrected[i] = largest
    return [float(value) for value in corrected]
