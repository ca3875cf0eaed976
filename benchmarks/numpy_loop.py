"""State-EXP3 in plain NumPy, line by line as in the paper's Appendix A: what one writes first.

Draws as REPRODUCTION §1 has it, so that its actions are the engine's.
"""

from collections.abc import Iterator

import numpy as np

from statepool import Instance
from statepool.rates import default_rate


def play(instance: Instance, delay: int, seed: int) -> np.ndarray:
    """The actions of one run."""
    P, theta = instance.P, instance.theta
    horizon = len(theta)
    rate = default_rate(*P.shape, horizon, delay)
    uniforms = iter(np.random.default_rng(seed).random(3 * horizon))
    L = np.zeros(len(P))
    waiting = {}
    actions = np.empty(horizon, dtype=int)
    for t in range(horizon):
        if t - delay - 1 >= 0:
            q, state, outcome = waiting.pop(t - delay - 1)
            L += P[:, state] * outcome / q
        x = np.exp(-rate * (L - L.min()))
        x /= x.sum()
        actions[t] = draw(x, next(uniforms))
        state = draw(P[actions[t]], next(uniforms))
        waiting[t] = x @ P[:, state], state, draw_outcome(theta[t, state], uniforms)
    return actions


def draw(distribution: np.ndarray, u: float) -> int:
    return min(np.searchsorted(np.cumsum(distribution), u), len(distribution) - 1)


def draw_outcome(mean: float, uniforms: Iterator[float]) -> float:
    if mean == 0:
        return 0.0
    u = next(uniforms)
    return float(u > 1 - mean if mean <= 0.5 else u <= mean)
