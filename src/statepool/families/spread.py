"""Spread: the best action mixes several good states, while a decoy is likeliest to reach the single best one."""

import numpy as np

from statepool.checks import check_sizes
from statepool.families.waves import season
from statepool.model import Instance
from statepool.stream import Seed, generator_of

DECOY = (0.62, 0, 0, 0, 0, 0.38)
MIXER = (0.30, 0.28, 0.24, 0.18, 0, 0)
BASE = (0.10, 0.16, 0.22, 0.30, 0.60, 0.95)


def spread(seed: Seed, n_actions: int = 40, horizon: int = 10_000) -> Instance:
    """The best action mixes good states, and a decoy reaches the best one.

    >>> import statepool as sp
    >>> sp.families.spread(seed=0, horizon=100)
    Instance(40 actions, 6 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, horizon=horizon)
    rng = generator_of(seed)
    n_states = len(BASE)
    rows = [DECOY, MIXER, *(rng.dirichlet(0.7 * np.ones(n_states)) for _ in range(n_actions - 2))]
    phase = rng.uniform(0, 2 * np.pi, n_states)
    return Instance(np.array(rows[:n_actions]), season(np.array(BASE), 0.03, phase, horizon))
