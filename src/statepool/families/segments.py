"""Segments: what happens next depends on the action and on who is asking, each in its own way.

    P_k(s|a) ∝ exp(action(a, s) + context(k, s) + together(k, a, s))

Contexts are alike where their effect is small, so that a map which is not known can be learnt from all of them.
"""

import numpy as np

from statepool.checks import check_number, check_sizes
from statepool.families.requests import draw_means, draw_requests
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def segments(
    seed: Seed, n_contexts: int = 20, n_actions: int = 30, n_states: int = 6, horizon: int = 10_000,
    of_action: float = 1.0, of_context: float = 1.0, together: float = 0.0, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """`of_action`, `of_context` and `together` are the standard deviations of the effects.

    >>> import statepool as sp
    >>> sp.families.segments(seed=0, horizon=100)
    Instance(20 contexts, 30 actions, 6 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    for name, size in (("of_action", of_action), ("of_context", of_context), ("together", together)):
        check_number(size, name, 0, 50)
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_requests(rng, n_contexts, horizon, shares)
    effects = of_action * rng.standard_normal((1, n_actions, n_states))
    effects = effects + of_context * rng.standard_normal((n_contexts, 1, n_states))
    effects = effects + together * rng.standard_normal((n_contexts, n_actions, n_states))
    weights = np.exp(effects - effects.max(axis=2, keepdims=True))
    return Instance(weights / weights.sum(axis=2, keepdims=True), theta, contexts=contexts)
