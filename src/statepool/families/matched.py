"""Matched: overlap varies while the task stays equally hard.

Raising overlap alone flattens the losses across actions and makes every learner look alike. Here one contrast
between two states survives at every overlap, and its amplitude is bisected until uniform play has the regret
`target` (or the range is used up).
"""

import numpy as np

from statepool.checks import Floats, check_count, check_number, check_sizes, check_whole
from statepool.families.waves import normalise, progress
from statepool.model import Instance


def matched(
    seed: int,
    n_actions: int = 40,
    n_states: int = 8,
    horizon: int = 10_000,
    overlap: float = 0.0,
    target: float = 900.0,
) -> Instance:
    """Overlap varies while the task stays equally hard; `target` is the regret of uniform play.

    The seed is a whole number: two generators are made of it.

    >>> import statepool as sp
    >>> sp.families.matched(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, horizon=horizon)
    check_count(n_states, "n_states", lowest=2)
    check_number(overlap, "overlap", 0, 1)
    check_number(target, "target", 0, 1e18)
    rng = np.random.default_rng(check_whole(seed, "seed"))
    base = rng.dirichlet(2.0 * np.ones(n_states))
    own = rng.dirichlet(0.25 * np.ones(n_states), size=n_actions)
    spread = np.linspace(-1, 1, n_actions)
    rng.shuffle(spread)
    contrast = np.zeros(n_states)
    contrast[:2] = 1, -1
    P = overlap * base + (1 - overlap) * own + 0.12 * spread[:, None] * contrast
    P = normalise(np.maximum(P, 1e-4))
    phase = np.random.default_rng(seed + 555).uniform(0, 2 * np.pi)
    wave = 0.6 + 0.4 * np.sin(2 * np.pi * progress(horizon) + phase)
    return Instance(P, _reaching(target, P, wave * contrast))


def _reaching(target: float, P: Floats, direction: Floats) -> Floats:
    low, high = 1e-4, 0.8
    # Only the two contrasted states move; the others stay at 1/2 and need not be summed again.
    moving, totals = direction[:, :2], np.full(P.shape[1], direction.shape[0] / 2)
    for _ in range(60):
        middle = (low + high) / 2
        totals[:2] = np.clip(0.5 + middle * moving, 0, 1).sum(axis=0)
        losses = P @ totals
        if losses.mean() - losses.min() < target:
            low = middle
        else:
            high = middle
    return np.clip(0.5 + (low + high) / 2 * direction, 0, 1)
