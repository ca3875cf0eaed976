"""Families beyond the paper's on which simple rules fail: exploration is needed, means move, or actions have direct
effects."""

import inspect
from typing import Any

import numpy as np

from statepool.checks import Floats, check_count, check_name, check_number, check_sizes
from statepool.families.shapes import phases, season
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def locked(seed: Seed, kind: str = "private-states", horizon: int = 10_000) -> Instance:
    """Maps (`kind`) on which a greedy rule never explores the best state, which is seldom or never reached at random.

    >>> import statepool as sp
    >>> sp.families.locked(seed=0, horizon=100)
    Instance(60 actions, 24 states, 100 rounds)
    """
    check_name("kind", kind, LOCKED)
    check_sizes(horizon=horizon)
    return Instance(*LOCKED[kind](generator_of(seed), horizon))


def _private_states(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """Sixty deterministic rows over twenty-four states."""
    K, S = 60, 24
    P = np.zeros((K, S))
    P[np.arange(K), rng.integers(0, S, K)] = 1
    P[:S] = np.eye(S)
    return P, season(rng.uniform(0.15, 0.85, S), 0.12, phases(rng, S), horizon)


def _decoys(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """Most actions share one steady state; of ten with a private state, one is better."""
    P = np.zeros((30, 11))
    P[:, 0] = 1
    P[:10] = np.eye(11)[1:]
    means = np.r_[0.5, rng.uniform(0.55, 0.9, 10)]
    means[1 + rng.integers(10)] = 0.38
    return P, np.tile(means, (horizon, 1))


def _narrow_gate(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """One action alone reaches the best state, and otherwise the worst."""
    K, S, key = 40, 8, 7
    P = np.c_[rng.dirichlet(np.ones(S - 1), size=K), np.zeros(K)]
    means = np.r_[rng.uniform(0.4, 0.9, S - 1), 0.05]
    P[key] = 0
    P[key, S - 1] = 0.7
    P[key, int(means[:-1].argmax())] = 0.3
    return P, np.tile(means, (horizon, 1))


LOCKED = {"private-states": _private_states, "decoys": _decoys, "narrow-gate": _narrow_gate}


def shifting(
    seed: Seed, kind: str = "early-late", n_actions: int = 40, n_states: int = 8, horizon: int = 10_000
) -> Instance:
    """Non-stationary means (`kind`): an adaptive policy can beat every fixed action, so regret can be negative.

    >>> import statepool as sp
    >>> sp.families.shifting(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_name("kind", kind, SHIFTING)
    check_sizes(n_actions=n_actions, horizon=horizon)
    check_count(n_states, "n_states", lowest=2)
    rng = generator_of(seed)
    concentration, means = SHIFTING[kind]
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
    """Each mean is a random walk, reflected at 0 and 1."""
    walk = rng.uniform(0.2, 0.8, n_states) + np.cumsum(rng.normal(0, 0.008, (horizon, n_states)), axis=0)
    walk = np.abs(walk) % 2
    return np.clip(np.where(walk > 1, 2 - walk, walk), 0.02, 0.98)


def _seasons(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """Four wide seasons, each state in its own phase."""
    return season(rng.uniform(0.35, 0.65, n_states), 0.3, phases(rng, n_states), horizon, turns=4)


SHIFTING = {"early-late": (0.4, _early_late), "random-walk": (0.6, _random_walk), "seasons": (0.6, _seasons)}


def resonance(
    seed: Seed, half_period: int = 100, n_actions: int = 40, n_states: int = 8, horizon: int = 8_000,
    amplitude: float = 0.3, offset: float = 0.05, concentration: float = 0.6,
) -> Instance:  # fmt: skip
    """State means swing as square waves, even states against odd ones.

    With a half-period of a few delays, a learner that follows the swing is late. Random offsets make one action best on
    average.

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


def direct(seed: Seed, family: str = "spread", size: float = 0.05, horizon: int = 10_000, **settings: Any) -> Instance:
    """Another family with direct effects of actions on outcomes, which break the assumption of pooling.

    The mean loss is theta_t(s) + effect(a, s). Effects are normal with standard deviation `size`, clipped so that means
    stay in [0, 1]. One seed gives the same base instance and the same directions at every size. `settings` are those of
    the base family.

    >>> import statepool as sp
    >>> sp.families.direct(seed=0, horizon=100)
    Instance(40 actions, 6 states, 100 rounds, with direct effects)
    """
    from statepool.families import REGISTRY  # which holds this function too

    bases = {name: make for name, make in REGISTRY.items() if name != "direct"}
    check_name("family", family, bases)
    check_number(size, "size", 0, 1)
    known = list(inspect.signature(bases[family]).parameters)[1:]
    for name in settings:
        check_name(f"setting of {family}", name, known)
    base = bases[family](seed, horizon=horizon, **settings)
    # A generator of its own: the base stays the family's instance of that seed.
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng((seed, 1))
    effects = size * rng.standard_normal(base.P.shape)
    return base.replaced(effects=np.clip(effects, -base.theta.min(axis=0), 1 - base.theta.max(axis=0)))
