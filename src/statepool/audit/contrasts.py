"""Contrasts of direct effects between labels, whatever the means did and whichever labels were in favour then.

    outcome = mean of its state in its stretch of time + D(label) + noise

Least squares with a mean for every stretch: L D = U, where U(a) sums outcomes less the mean of their stretch, and
L = diag(n) - sum over stretches of n n'/N. Dividing U by the rows of a label would do if no label made up much of its
stretch. L is only ever applied, row by row, so that many labels need no more room than few.

What is said of a label is beside the mean of its states, which holds the effects of all that led there.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from statepool.audit.sample import Rows
from statepool.audit.sufficiency import stretches
from statepool.checks import Floats, Ints

RIDGE = 1.0
"""As if each label had one more row of no effect: what was never beside another has none, and a large error."""
MOST_STEPS, CLOSE = 200, 1e-8


@dataclass(frozen=True, eq=False)
class BesideOthers:
    """Outcomes beside others of the same state and stretch, in order of state and time."""

    label: NDArray[np.int64]
    state: NDArray[np.int64]
    stretch: Ints
    sizes: Ints
    residual: Floats
    n_labels: int

    @classmethod
    def of(cls, rows: Rows, n_labels: int) -> "BesideOthers":
        """Of the rows with an outcome; what stands for actions are the labels."""
        known = np.flatnonzero(np.isfinite(rows.loss))
        order = known[np.argsort(rows.state[known], kind="stable")]
        state, loss = rows.state[order], rows.loss[order]
        sizes = np.concatenate([np.diff(stretches(int(n))) for n in np.bincount(state) if n] or [np.zeros(0, np.int64)])
        stretch = np.repeat(np.arange(sizes.size), sizes)
        mean = np.bincount(stretch, loss, sizes.size) / np.maximum(sizes, 1)
        return cls(rows.action[order], state, stretch, sizes, loss - mean[stretch], n_labels)

    @cached_property
    def effects(self) -> Floats:
        """D of each label, up to what is the same for all."""
        return self._solve(np.asarray(np.bincount(self.label, self.residual, self.n_labels), dtype=np.float64))

    def means(self, n_states: int) -> Floats:
        """The mean of D in each state: what its mean outcome holds of it."""
        total = np.bincount(self.state, self.effects[self.label], n_states)
        return np.asarray(total / np.maximum(np.bincount(self.state, minlength=n_states), 1))

    def variance(self, weights: Floats, gap: Floats) -> float:
        """That of sum of weights · D - gap · (mean of D in each state)."""
        count = np.maximum(np.bincount(self.state, minlength=gap.size), 1)
        contrast = weights - np.bincount(self.label, (gap / count)[self.state], self.n_labels)
        x = self._solve(contrast)[self.label]
        spread = (x - self._mean(x)) ** 2
        own = self.effects[self.label]
        noise = (self.residual - own + self._mean(own)) ** 2
        squares = np.bincount(self.stretch, noise, self.sizes.size) / np.maximum(self.sizes - 1, 1)
        # Labels without a row are as uncertain as a mean of outcomes can be.
        unseen = 0.25 * (weights[np.bincount(self.label, minlength=self.n_labels) == 0] ** 2).sum()
        return float((squares[self.stretch] * spread).sum()) + float(unseen)

    def _mean(self, x: Floats) -> Floats:
        return np.asarray((np.bincount(self.stretch, x, self.sizes.size) / np.maximum(self.sizes, 1))[self.stretch])

    def _apply(self, x: Floats) -> Floats:
        each = x[self.label]
        return np.asarray(np.bincount(self.label, each - self._mean(each), self.n_labels) + RIDGE * x)

    def _solve(self, right: Floats) -> Floats:
        """L x = right, by conjugate gradients scaled by the rows of each label."""
        scale = np.bincount(self.label, minlength=self.n_labels) + RIDGE
        x, rest = np.zeros(self.n_labels), right.astype(np.float64)
        step = rest / scale
        size = float(rest @ step)
        least = CLOSE**2 * size
        for _ in range(MOST_STEPS):
            if size <= least:
                break
            moved = self._apply(step)
            length = size / float(step @ moved)
            x, rest = x + length * step, rest - length * moved
            scaled = rest / scale
            before, size = size, float(rest @ scaled)
            step = scaled + size / before * step
        return x
