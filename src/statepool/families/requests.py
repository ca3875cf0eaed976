"""What families of requests share: who asks in each round, and how the means of the states move meanwhile."""

from collections.abc import Callable

import numpy as np

from statepool.checks import Floats, Ints, check_name
from statepool.families.waves import season, shuffled

Maker = Callable[[np.random.Generator, int, int], Floats]


def draw_requests(rng: np.random.Generator, n_contexts: int, horizon: int, shares: str) -> Ints:
    """The context of each round, independent of each other: all as often, or the k-th as often as 1/k of the first."""
    check_name("shares", shares, SHARES)
    weights = np.arange(1, n_contexts + 1) ** SHARES[shares]
    return rng.choice(n_contexts, size=horizon, p=weights / weights.sum())


def draw_means(rng: np.random.Generator, n_states: int, horizon: int, means: str) -> Floats:
    """The mean loss of each state in each round: steady, drifting or switching."""
    check_name("means", means, MEANS)
    return MEANS[means](rng, n_states, horizon)


def _steady(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    return np.tile(rng.uniform(0.15, 0.85, n_states), (horizon, 1))


def _drifting(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """One turn over the horizon, each state in its own phase."""
    level, phase = rng.uniform(0.3, 0.7, n_states), rng.uniform(0, 2 * np.pi, n_states)
    return season(level, 0.25, phase, horizon)


MEANS: dict[str, Maker] = {"drifting": _drifting, "steady": _steady, "switching": shuffled}
SHARES = {"even": 0.0, "zipf": -1.0}
