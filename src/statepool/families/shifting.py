"""Shifting: state means that move so much that following them beats every fixed action."""

from collections.abc import Callable

import numpy as np

from statepool.checks import Floats, check_count, check_name, check_sizes
from statepool.families.waves import progress
from statepool.model import Instance
from statepool.stream import Seed, generator_of

Maker = Callable[[np.random.Generator, int, int], Floats]


def shifting(
    seed: Seed, kind: str = "early-late", n_actions: int = 40, n_states: int = 8, horizon: int = 10_000
) -> Instance:
    """Means that move so much (`kind`) that following them beats every fixed action.

    >>> import statepool as sp
    >>> sp.families.shifting(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_name("kind", kind, KINDS)
    check_sizes(n_actions=n_actions, horizon=horizon)
    check_count(n_states, "n_states", lowest=2)
    rng = generator_of(seed)
    concentration, means = KINDS[kind]
    P = rng.dirichlet(concentration * np.ones(n_states), size=n_actions)
    return Instance(P, means(rng, n_states, horizon))


def _early_late(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """One state is good early and bad late, another the other way round."""
    theta = np.tile(rng.uniform(0.45, 0.6, n_states), (horizon, 1))
    cut = int(horizon * rng.uniform(0.3, 0.6))
    first, second = rng.permutation(n_states)[:2]
    theta[:cut, first], theta[cut:, first] = 0.15, 0.85
    theta[:cut, second], theta[cut:, second] = 0.7, 0.2
    return theta


def _random_walk(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """Each mean walks at random, reflected at 0 and 1."""
    walk = rng.uniform(0.2, 0.8, n_states) + np.cumsum(rng.normal(0, 0.008, (horizon, n_states)), axis=0)
    walk = np.abs(walk) % 2
    return np.clip(np.where(walk > 1, 2 - walk, walk), 0.02, 0.98)


def _seasons(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """Four wide seasons, each state in its own phase."""
    level, phase = rng.uniform(0.35, 0.65, n_states), rng.uniform(0, 2 * np.pi, n_states)
    return np.clip(level + 0.3 * np.sin(8 * np.pi * progress(horizon) + phase), 0, 1)


KINDS: dict[str, tuple[float, Maker]] = {
    "early-late": (0.4, _early_late),
    "random-walk": (0.6, _random_walk),
    "seasons": (0.6, _seasons),
}
