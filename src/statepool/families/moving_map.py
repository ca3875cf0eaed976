"""Moving map: what actions lead to changes from epoch to epoch, and nobody is told; what states cost stays.

The case that NSD-UCRL2 was made for. Epochs are the contexts of the instance, so that the comparator knows each epoch's
best action; learners see no contexts, and one map: the average over all rounds, as a map fitted to a long log would be.
Regret against such a comparator may be large for every learner; it is the order of learners that tells.
"""

import numpy as np

from statepool.checks import check_name, check_sizes
from statepool.families.requests import draw_means
from statepool.families.waves import progress
from statepool.model import Instance
from statepool.stream import Seed, generator_of

MOVES = ("drift", "jumps")


def moving_map(
    seed: Seed, n_actions: int = 20, n_states: int = 5, horizon: int = 10_000, n_epochs: int = 20, moves: str = "drift",
    means: str = "steady",
) -> Instance:  # fmt: skip
    """`moves`: "drift" from one map to another in equal steps, or "jumps" to new rows in every epoch.

    >>> import statepool as sp
    >>> sp.families.moving_map(seed=0, horizon=100)
    Instance(20 contexts, 20 actions, 5 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon, n_epochs=n_epochs)
    check_name("moves", moves, MOVES)
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    maps = rng.dirichlet(np.ones(n_states), size=(2 if moves == "drift" else n_epochs, n_actions))
    if moves == "drift":
        share = np.linspace(0, 1, n_epochs)[:, None, None]
        maps = (1 - share) * maps[0] + share * maps[1]
    epochs = (progress(horizon)[:, 0] * n_epochs).astype(np.int64)
    told = np.einsum("e,eas->as", np.bincount(epochs, minlength=n_epochs) / horizon, maps)
    return Instance(maps, theta, contexts=epochs, told=told / told.sum(axis=1, keepdims=True))
