"""Resonance: state means that swing as square waves; with a half-period of a few delays, whoever follows comes late."""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def resonance(
    seed: Seed, half_period: int = 100, n_actions: int = 40, n_states: int = 8, horizon: int = 8_000,
    amplitude: float = 0.3, offset: float = 0.05, concentration: float = 0.6,
) -> Instance:  # fmt: skip
    """Even states swing against odd ones; random offsets leave one action best on average.

    >>> import statepool as sp
    >>> sp.families.resonance(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon, half_period=half_period)
    check_number(amplitude, "amplitude", 0, 0.5)
    check_number(offset, "offset", 0, 0.5)
    check_number(concentration, "concentration", 0, 1e9, open_low=True)
    rng = generator_of(seed)
    P = rng.dirichlet(concentration * np.ones(n_states), size=n_actions)
    sign = np.where(np.arange(n_states) % 2 == 0, 1, -1)
    wave = np.where(np.arange(horizon) // half_period % 2 == 0, 1, -1)[:, None]
    return Instance(P, np.clip(0.5 + rng.uniform(-offset, offset, n_states) + amplitude * sign * wave, 0, 1))
