"""Seasonal state means, shared by several families."""

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


def normalise(rows: Floats) -> Floats:
    """Rows scaled to sum to 1."""
    return rows / rows.sum(axis=1, keepdims=True)
