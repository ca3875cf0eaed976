"""Clustered: sixteen states from four hidden groups that share their mean loss, up to `heterogeneity`."""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.families.waves import progress
from statepool.model import Instance
from statepool.stream import Seed, generator_of

LEVELS = (0.15, 0.38, 0.62, 0.85)


def clustered(seed: Seed, n_actions: int = 40, horizon: int = 6_000, heterogeneity: float = 0.0) -> Instance:
    """Sixteen states that stem from four hidden groups; merging them is worth finding.

    >>> import statepool as sp
    >>> sp.families.clustered(seed=0, horizon=100)
    Instance(40 actions, 16 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, horizon=horizon)
    check_number(heterogeneity, "heterogeneity", -1e9, 1e9)
    rng = generator_of(seed)
    n_groups, size = len(LEVELS), 4
    mass = rng.dirichlet(0.7 * np.ones(n_groups), size=n_actions)
    P = np.empty((n_actions, n_groups * size))
    for a in range(n_actions):
        for c in range(n_groups):
            P[a, c * size : (c + 1) * size] = mass[a, c] * rng.dirichlet(1.2 * np.ones(size))
    phase = rng.uniform(0, 2 * np.pi, n_groups)
    offset = rng.uniform(-1, 1, n_groups * size)
    wave = np.array(LEVELS) + 0.08 * np.sin(2 * np.pi * progress(horizon) + phase)
    return Instance(P, np.clip(np.repeat(wave, size, axis=1) + heterogeneity * offset, 0, 1))
