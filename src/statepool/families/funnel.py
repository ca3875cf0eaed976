"""Funnel: a catalogue of items in a dozen categories, six depths of engagement, a late conversion."""

import numpy as np

from statepool.checks import check_sizes
from statepool.families.waves import season
from statepool.model import Instance
from statepool.stream import Seed, generator_of

N_CATEGORIES = 12


def funnel(seed: Seed, n_actions: int = 200, n_states: int = 6, horizon: int = 20_000) -> Instance:
    """A catalogue of items in a dozen categories, depths of engagement as states, a late conversion.

    >>> import statepool as sp
    >>> sp.families.funnel(seed=0, horizon=100)
    Instance(200 actions, 6 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon)
    rng = generator_of(seed)
    depth = np.arange(n_states)
    tilt = rng.uniform(0.5, 2.6, N_CATEGORIES)
    profile = np.exp(-tilt[:, None] * depth)
    profile /= profile.sum(axis=1, keepdims=True)
    category = rng.integers(N_CATEGORIES, size=n_actions)
    quality = rng.lognormal(0, 0.6, n_actions)
    quality /= quality.mean()
    P = np.empty((n_actions, n_states))
    for a in range(n_actions):
        row = profile[category[a]] * np.exp(0.45 * (quality[a] - 1) * depth)
        row *= rng.dirichlet(40.0 * np.ones(n_states))
        P[a] = row / row.sum()
    return Instance(P, season(np.linspace(0.92, 0.28, n_states), 0.06, rng.uniform(0, 2 * np.pi, n_states), horizon))
