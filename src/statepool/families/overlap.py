"""Overlap: every row is part common profile, part its own; more overlap, fewer distinct behaviours."""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.families.waves import season
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def overlap(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 5_000, overlap: float = 0.0) -> Instance:
    """Rows that are part common, part their own: `overlap` is the common share.

    >>> import statepool as sp
    >>> sp.families.overlap(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon)
    check_number(overlap, "overlap", 0, 1)
    rng = generator_of(seed)
    common = rng.dirichlet(2.0 * np.ones(n_states))
    own = rng.dirichlet(0.25 * np.ones(n_states), size=n_actions)
    base = rng.uniform(0.15, 0.85, n_states)
    phase = rng.uniform(0, 2 * np.pi, n_states)
    return Instance(overlap * common + (1 - overlap) * own, season(base, 0.12, phase, horizon))
