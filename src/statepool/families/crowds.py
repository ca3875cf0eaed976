"""Crowds: every context has rows of its own, drawn apart; what a state costs is the same for all.

With one context it is a plain instance; with more, nothing but the states' means carries over from one to the other.
"""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.families.requests import draw_means, draw_requests
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def crowds(
    seed: Seed, n_contexts: int = 10, n_actions: int = 40, n_states: int = 6, horizon: int = 10_000,
    concentration: float = 1.0, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """Every context has rows of its own, drawn apart; what a state costs is the same for all.

    >>> import statepool as sp
    >>> sp.families.crowds(seed=0, horizon=100)
    Instance(10 contexts, 40 actions, 6 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    check_number(concentration, "concentration", 0, 1e6, open_low=True)
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_requests(rng, n_contexts, horizon, shares)
    P = rng.dirichlet(np.full(n_states, concentration), size=(n_contexts, n_actions))
    return Instance(P, theta, contexts=contexts)
