"""Parts that several families share: how state means move, which contexts come, rows that sum to 1."""

from itertools import pairwise

import numpy as np

from statepool.checks import Floats, Ints, check_name


def progress(horizon: int) -> Floats:
    """How far the horizon has run in each round, as a column: 0, 1/T, 2/T, …"""
    return np.arange(horizon)[:, None] / horizon


def season(base: Floats, amplitude: float, phase: Floats, horizon: int, turns: int = 1) -> Floats:
    """base + amplitude · sin of so many turns over the horizon, clipped to [0, 1]."""
    return np.clip(base + amplitude * np.sin(turns * (2 * np.pi) * progress(horizon) + phase), 0, 1)


def phases(rng: np.random.Generator, n_states: int) -> Floats:
    """A random phase for each state."""
    return rng.uniform(0, 2 * np.pi, n_states)


def ramp(base: Floats, slope: Floats, horizon: int) -> Floats:
    """base + slope over the horizon, clipped to [0, 1]."""
    return np.clip(base + slope * progress(horizon), 0, 1)


def shuffled(rng: np.random.Generator, n_states: int, horizon: int, n_blocks: int = 5) -> Floats:
    """Evenly spaced levels, shuffled among the states at the start of every block."""
    levels, theta = np.linspace(0.12, 0.88, n_states), np.empty((horizon, n_states))
    for start, stop in pairwise(np.linspace(0, horizon, n_blocks + 1).astype(int)):
        theta[start:stop] = levels[rng.permutation(n_states)]
    return theta


def normalise(rows: Floats) -> Floats:
    """Rows scaled to sum to 1."""
    return rows / rows.sum(axis=-1, keepdims=True)


def draw_means(rng: np.random.Generator, n_states: int, horizon: int, means: str) -> Floats:
    """The mean loss of each state in each round: "steady", "drifting" (one turn of a sine) or "switching"."""
    check_name("means", means, ("drifting", "steady", "switching"))
    if means == "switching":
        return shuffled(rng, n_states, horizon)
    if means == "drifting":
        return season(rng.uniform(0.3, 0.7, n_states), 0.25, phases(rng, n_states), horizon)
    return np.tile(rng.uniform(0.15, 0.85, n_states), (horizon, 1))


def draw_contexts(rng: np.random.Generator, n_contexts: int, horizon: int, shares: str) -> Ints:
    """The context of each round, drawn independently: "even" shares, or "zipf", the k-th in proportion to 1/k."""
    check_name("shares", shares, ("even", "zipf"))
    weights = np.arange(1, n_contexts + 1) ** (0.0 if shares == "even" else -1.0)
    return rng.choice(n_contexts, size=horizon, p=weights / weights.sum())
