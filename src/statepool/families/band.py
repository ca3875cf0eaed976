"""Band: rows from a Dirichlet, state means that drift in straight lines by at most `drift`."""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.families.waves import ramp
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def band(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 10_000, drift: float = 0.05) -> Instance:
    """Rows from a Dirichlet, means that drift in straight lines: the paper's main family.

    >>> import statepool as sp
    >>> sp.families.band(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon)
    check_number(drift, "drift", -1e9, 1e9)
    rng = generator_of(seed)
    P = rng.dirichlet(1.5 * np.ones(n_states), size=n_actions)
    base = rng.uniform(0.25, 0.75, n_states)
    slope = rng.uniform(-1, 1, n_states)
    return Instance(P, ramp(base, drift * slope, horizon))
