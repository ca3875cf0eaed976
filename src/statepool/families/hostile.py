"""Hostile: five maps on which an estimated map could be expected to go wrong."""

from collections.abc import Callable

import numpy as np

from statepool.checks import Floats, check_count, check_name, check_sizes
from statepool.families.waves import normalise, season
from statepool.model import Instance
from statepool.stream import Seed, generator_of

Maker = Callable[[np.random.Generator, int, int, int], tuple[Floats, Floats]]


def hostile(
    seed: Seed, kind: str = "rare-optimal", n_actions: int = 40, n_states: int = 8, horizon: int = 8_000
) -> Instance:
    """Five maps (`kind`) on which an estimated map could be expected to go wrong.

    >>> import statepool as sp
    >>> sp.families.hostile(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_name("kind", kind, KINDS)
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon)
    return Instance(*KINDS[kind](generator_of(seed), n_actions, n_states, horizon))


def _waves(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    base = rng.uniform(0.15, 0.85, n_states)
    return season(base, 0.12, rng.uniform(0, 2 * np.pi, n_states), horizon)


def _rare_optimal(rng: np.random.Generator, n_actions: int, n_states: int, horizon: int) -> tuple[Floats, Floats]:
    check_count(n_states, "n_states", lowest=2)
    P = np.full((n_actions, n_states), 1e-3)
    P[:, 0] = 1
    P[0] = 1e-3
    P[0, 1] = 1
    theta = _waves(rng, n_states, horizon)
    theta[:, 1] = 0.05
    return normalise(P), theta


def _unbalanced(rng: np.random.Generator, n_actions: int, n_states: int, horizon: int) -> tuple[Floats, Floats]:
    concentration = np.full(n_states, 0.01)
    concentration[0] = 1
    P = rng.dirichlet(4 * concentration, size=n_actions)
    return P, _waves(rng, n_states, horizon)


def _near_unreachable(rng: np.random.Generator, n_actions: int, n_states: int, horizon: int) -> tuple[Floats, Floats]:
    P = rng.dirichlet(1.5 * np.ones(n_states), size=n_actions)
    P[:, -1] = 1e-3
    return normalise(P), _waves(rng, n_states, horizon)


def _deterministic(rng: np.random.Generator, n_actions: int, n_states: int, horizon: int) -> tuple[Floats, Floats]:
    check_count(n_actions, "n_actions", lowest=n_states)
    P = np.zeros((n_actions, n_states))
    P[np.arange(n_actions), rng.integers(0, n_states, size=n_actions)] = 1
    P[np.arange(n_states), np.arange(n_states)] = 1
    return normalise(P), _waves(rng, n_states, horizon)


def _misleading(rng: np.random.Generator, n_actions: int, n_states: int, horizon: int) -> tuple[Floats, Floats]:
    P = rng.dirichlet(0.3 * np.ones(n_states), size=n_actions)
    theta = _waves(rng, n_states, horizon)
    best = int((P @ theta.mean(axis=0)).argmin())
    P[best] = 0.85 * P[best] + 0.15 * rng.dirichlet(0.2 * np.ones(n_states))
    return normalise(P), theta


KINDS: dict[str, Maker] = {
    "rare-optimal": _rare_optimal,
    "unbalanced": _unbalanced,
    "near-unreachable": _near_unreachable,
    "deterministic": _deterministic,
    "misleading": _misleading,
}
