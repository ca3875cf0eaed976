"""Does the share of conversions fade towards the end of the log as waiting makes it, or as drift does?

The log is cut into blocks of as many decisions each. The share of block b is y(b) = theta(b) F(age(b)) + noise, theta a
random walk as in `drift`. F = 1 is a log whose outcomes are all in; otherwise F rises with age from `spike`, what
converts at once, to 1 at the window. The likelihood of the best F is compared with that of F = 1, each with the step
of the random walk that suits it best: drift of any speed has its say in both.
"""

from itertools import product

import numpy as np
from scipy.special import ndtr

from statepool.checks import Floats

MOST_BLOCKS, LEAST_BLOCKS, EVENTS = 120, 16, 4
"""Blocks have about this many conversions at least."""
STEPS = np.append(0.0, np.geomspace(1e-3, 0.15, 7) ** 2)
SPIKES = (0.0, 0.15, 0.3)
GAIN = 4.0
"""In log-likelihood: what F must explain beyond drift. Chosen on development seeds (docs/audit.md)."""
MATURE, SAFE = 0.99, 0.75
"""The age taken is one at which so much is in, with so much of the likelihood at that age or below."""


def _exponential(rate: float, age: Floats) -> Floats:
    return np.asarray((1 - np.exp(-rate * age)) / (1 - np.exp(-rate)))


def _lognormal(median: float, age: Floats) -> Floats:
    return np.asarray(ndtr(np.log(np.maximum(age, 1e-9) / median) / 0.7) / ndtr(-np.log(median) / 0.7))


SHAPES = tuple((_exponential, rate) for rate in (1.5, 3.0, 6.0, 12.0)) + tuple(
    (_lognormal, median) for median in (0.1, 0.2, 0.4)
)


def fading_age(age: Floats, happened: Floats) -> float | None:
    """The age at which outcomes are in, if the shares fade as waiting makes them; rows in order of decision."""
    count = int(min(MOST_BLOCKS, happened.sum() / EVENTS))
    if count < LEAST_BLOCKS:
        return None
    place = np.arange(happened.size) * count // happened.size
    sizes = np.bincount(place, minlength=count).astype(np.float64)
    shares, ages = np.bincount(place, happened, count) / sizes, np.bincount(place, age, count) / sizes
    span = float(ages[0])
    windows = np.geomspace(max(3 / count, 0.02), 0.4, 14) * span
    curves, mature = [np.ones(count)], [0.0]
    for window, spike, (shape, setting) in product(windows, SPIKES, SHAPES):
        curve = spike + (1 - spike) * shape(setting, np.clip(ages / window, 0, 1))
        curves.append(np.where(ages >= window, 1.0, curve))
        grid = np.linspace(0, 1, 201)
        reached = spike + (1 - spike) * shape(setting, grid)
        mature.append(float(grid[int(np.argmax(reached >= MATURE))]) * window)
    likelihood = _likelihoods(shares, sizes, np.array(curves))
    best = int(likelihood.argmax())
    if best == 0 or likelihood[best] - likelihood[0] < GAIN:
        return None
    belief = np.exp(likelihood - likelihood[best])
    belief[0] = 0.0
    order = np.argsort(mature, kind="stable")
    reached = np.cumsum(belief[order]) / belief.sum()
    return float(np.array(mature)[order][int(np.searchsorted(reached, SAFE))])


def _likelihoods(shares: Floats, sizes: Floats, curves: Floats) -> Floats:
    """Kalman's, of every curve (one row each) with the step that suits it best."""
    level = float(shares[: -len(shares) // 3].mean())
    F = curves[:, None, :]
    lanes = (len(curves), STEPS.size)
    m, p, total = np.full(lanes, level), np.full(lanes, 0.25), np.zeros(lanes)
    for b in range(shares.size):
        f = F[:, :, b]
        p = p + (STEPS if b else 0.0)
        expected = np.clip(m * f, 0.5 / sizes[b], 1 - 0.5 / sizes[b])
        spread = f * f * p + expected * (1 - expected) / sizes[b]
        surprise = shares[b] - m * f
        total -= 0.5 * (np.log(spread) + surprise**2 / spread)
        gain = p * f / spread
        m, p = m + gain * surprise, p * (1 - gain * f)
    return np.asarray(total.max(axis=1))
