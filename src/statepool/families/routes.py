"""Routes: many contexts, each of which may be answered with a few of the actions only.

A traveller asks for a place, and a few lines go there. Every route has rows of its own for the lines that serve it.
"""

import numpy as np

from statepool.checks import check_count, check_sizes
from statepool.families.requests import draw_means, draw_requests
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def routes(
    seed: Seed, n_contexts: int = 60, n_actions: int = 120, n_states: int = 5, horizon: int = 10_000,
    n_candidates: int = 4, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """`n_candidates` is how many actions a context may be answered with.

    >>> import statepool as sp
    >>> sp.families.routes(seed=0, horizon=100)
    Instance(60 contexts, 120 actions, 5 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    if check_count(n_candidates, "n_candidates") > n_actions:
        raise ValueError(f"n_candidates: is {n_candidates}, expected at most the {n_actions} actions")
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_requests(rng, n_contexts, horizon, shares)
    available = np.zeros((n_contexts, n_actions), dtype=bool)
    P = np.zeros((n_contexts, n_actions, n_states))
    for rows, offered in zip(P, available, strict=True):
        candidates = rng.permutation(n_actions)[:n_candidates]
        offered[candidates] = True
        rows[candidates] = rng.dirichlet(np.ones(n_states), size=n_candidates)
    return Instance(P, theta, contexts=contexts, available=available)
