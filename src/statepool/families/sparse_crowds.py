"""Sparse crowds: contexts with rows of their own, each of which reaches a few of the states only.

Dividing an outcome by the probability of its state *in its own context* then teaches nothing about the states that this
context cannot reach; dividing by the probability over all contexts does (docs/theory.md, Theorem D).
"""

import numpy as np

from statepool.checks import check_count, check_sizes
from statepool.families.requests import draw_means, draw_requests
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def sparse_crowds(
    seed: Seed, n_contexts: int = 20, n_actions: int = 30, n_states: int = 12, horizon: int = 10_000,
    n_reached: int = 4, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """`n_reached` is how many states a context reaches.

    >>> import statepool as sp
    >>> sp.families.sparse_crowds(seed=0, horizon=100)
    Instance(20 contexts, 30 actions, 12 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    if check_count(n_reached, "n_reached") > n_states:
        raise ValueError(f"n_reached: is {n_reached}, expected at most the {n_states} states")
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_requests(rng, n_contexts, horizon, shares)
    P = np.zeros((n_contexts, n_actions, n_states))
    for rows in P:
        reached = rng.permutation(n_states)[:n_reached]
        rows[:, reached] = rng.dirichlet(np.ones(n_reached), size=n_actions)
    return Instance(P, theta, contexts=contexts)
