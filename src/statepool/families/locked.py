"""Locked: maps on which a greedy rule can lock itself out: the best state is seldom or never reached by chance."""

from collections.abc import Callable

import numpy as np

from statepool.checks import Floats, check_name, check_sizes
from statepool.families.waves import season
from statepool.model import Instance
from statepool.stream import Seed, generator_of

Maker = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def locked(seed: Seed, kind: str = "private-states", horizon: int = 10_000) -> Instance:
    """Maps (`kind`) on which a greedy rule locks itself out.

    >>> import statepool as sp
    >>> sp.families.locked(seed=0, horizon=100)
    Instance(60 actions, 24 states, 100 rounds)
    """
    check_name("kind", kind, KINDS)
    check_sizes(horizon=horizon)
    return Instance(*KINDS[kind](generator_of(seed), horizon))


def _private_states(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """Sixty deterministic rows over twenty-four states."""
    K, S = 60, 24
    P = np.zeros((K, S))
    P[np.arange(K), rng.integers(0, S, K)] = 1
    P[:S] = np.eye(S)
    return P, season(rng.uniform(0.15, 0.85, S), 0.12, rng.uniform(0, 2 * np.pi, S), horizon)


def _decoys(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """Most actions share one steady state; of ten with a private state, one is better."""
    P = np.zeros((30, 11))
    P[:, 0] = 1
    P[:10] = np.eye(11)[1:]
    means = np.r_[0.5, rng.uniform(0.55, 0.9, 10)]
    means[1 + rng.integers(10)] = 0.38
    return P, np.tile(means, (horizon, 1))


def _narrow_gate(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """One action alone reaches the best state, and otherwise falls into the worst."""
    K, S, key = 40, 8, 7
    P = np.c_[rng.dirichlet(np.ones(S - 1), size=K), np.zeros(K)]
    means = np.r_[rng.uniform(0.4, 0.9, S - 1), 0.05]
    P[key] = 0
    P[key, S - 1] = 0.7
    P[key, int(means[:-1].argmax())] = 0.3
    return P, np.tile(means, (horizon, 1))


KINDS: dict[str, Maker] = {"private-states": _private_states, "decoys": _decoys, "narrow-gate": _narrow_gate}
