"""Switching: the states' mean losses are shuffled at the start of every block."""

import numpy as np

from statepool.checks import check_sizes
from statepool.families.waves import shuffled
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def switching(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 10_000, n_blocks: int = 5) -> Instance:
    """State means that are shuffled in blocks.

    >>> import statepool as sp
    >>> sp.families.switching(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon, n_blocks=n_blocks)
    rng = generator_of(seed)
    P = rng.dirichlet(0.6 * np.ones(n_states), size=n_actions)
    return Instance(P, shuffled(rng, n_states, horizon, n_blocks))
