"""Scarce: one state is rare under every action, with mean probability `share`."""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.families.waves import normalise, ramp
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def scarce(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 8_000, share: float = 0.05) -> Instance:
    """One state is rare under every action.

    >>> import statepool as sp
    >>> sp.families.scarce(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon)
    check_number(share, "share", 1e-9, 1 if n_states == 1 else 1 - 1e-9)
    rng = generator_of(seed)
    mean = np.full(n_states, (1 - share) / max(n_states - 1, 1))
    mean[0] = share
    P = normalise(np.maximum(rng.dirichlet(3 * n_states * mean, size=n_actions), 1e-9))
    base = rng.uniform(0.2, 0.8, n_states)
    slope = rng.uniform(-1, 1, n_states)
    return Instance(P, ramp(base, 0.25 * slope, horizon))
