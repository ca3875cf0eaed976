"""Hard: the construction of Theorem 2.

Each drifting action has a private state whose mean is re-drawn every block, so that nothing known when acting
tells about the block at hand; all other actions share one steady state.
"""

import numpy as np

from statepool.checks import check_count, check_number, check_sizes
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def hard(
    seed: Seed, n_actions: int = 40, n_drifting: int = 4, horizon: int = 8_000, block: int = 50, amplitude: float = 0.1,
    n_states: int | None = None,
) -> Instance:  # fmt: skip
    """`n_states` beyond `n_drifting` + 1 adds states that no action reaches.

    >>> import statepool as sp
    >>> sp.families.hard(seed=0, horizon=100)
    Instance(40 actions, 5 states, 100 rounds)
    """
    J, S = check_count(n_drifting, "n_drifting"), n_drifting + 1 if n_states is None else n_states
    check_sizes(n_actions=n_actions, n_states=S, horizon=horizon, block=block)
    check_number(amplitude, "amplitude", 0, 0.5)
    if n_actions <= J or J >= S:
        raise ValueError(f"n_drifting: is {J}, expected fewer than the {n_actions} actions and the {S} states")
    P = np.zeros((n_actions, S))
    P[np.arange(n_actions), np.minimum(np.arange(n_actions), J)] = 1
    n_blocks = -(-horizon // block)
    sign = generator_of(seed).choice([-1, 1], size=(n_blocks, J))
    sign[0] = 0
    theta = np.full((horizon, S), 0.5)
    theta[:, :J] -= amplitude * sign[np.arange(horizon) // block]
    return Instance(P, theta)
