"""How state means move, shared by several families."""

from itertools import pairwise

import numpy as np

from statepool.checks import Floats


def progress(horizon: int) -> Floats:
    """How far the horizon has run in each round, as a column: 0, 1/T, 2/T, …"""
    return np.arange(horizon)[:, None] / horizon


def season(base: Floats, amplitude: float, phase: Floats, horizon: int) -> Floats:
    """base + amplitude · sin of one turn over the horizon, clipped to [0, 1]."""
    return np.clip(base + amplitude * np.sin(2 * np.pi * progress(horizon) + phase), 0, 1)


def ramp(base: Floats, slope: Floats, horizon: int) -> Floats:
    """base + slope over the horizon, clipped to [0, 1]."""
    return np.clip(base + slope * progress(horizon), 0, 1)


def shuffled(rng: np.random.Generator, n_states: int, horizon: int, n_blocks: int = 5) -> Floats:
    """Even levels, shuffled among the states at the start of every block."""
    levels, theta = np.linspace(0.12, 0.88, n_states), np.empty((horizon, n_states))
    for start, stop in pairwise(np.linspace(0, horizon, n_blocks + 1).astype(int)):
        theta[start:stop] = levels[rng.permutation(n_states)]
    return theta


def normalise(rows: Floats) -> Floats:
    """Rows scaled to sum to 1."""
    return rows / rows.sum(axis=1, keepdims=True)
