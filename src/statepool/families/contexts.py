"""Families with contexts: each context has rows of its own, while the mean loss of a state is the same for all."""

import numpy as np

from statepool.checks import check_count, check_name, check_number, check_sizes
from statepool.families.shapes import draw_contexts, draw_means, normalise, progress
from statepool.model import Instance
from statepool.stream import Seed, generator_of


def crowds(
    seed: Seed, n_contexts: int = 10, n_actions: int = 40, n_states: int = 6, horizon: int = 10_000,
    concentration: float = 1.0, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """Every context has independent rows; only the means of the states are common. One context is a plain instance.

    >>> import statepool as sp
    >>> sp.families.crowds(seed=0, horizon=100)
    Instance(10 contexts, 40 actions, 6 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    check_number(concentration, "concentration", 0, 1e6, open_low=True)
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_contexts(rng, n_contexts, horizon, shares)
    P = rng.dirichlet(np.full(n_states, concentration), size=(n_contexts, n_actions))
    return Instance(P, theta, contexts=contexts)


def sparse_crowds(
    seed: Seed, n_contexts: int = 20, n_actions: int = 30, n_states: int = 12, horizon: int = 10_000,
    n_reached: int = 4, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """Every context reaches only `n_reached` of the states.

    Dividing an outcome by the probability of its state in its own context gives no information about states that this
    context cannot reach; dividing by the probability over all contexts does.

    >>> import statepool as sp
    >>> sp.families.sparse_crowds(seed=0, horizon=100)
    Instance(20 contexts, 30 actions, 12 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    if check_count(n_reached, "n_reached") > n_states:
        raise ValueError(f"n_reached: is {n_reached}, expected at most the {n_states} states")
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_contexts(rng, n_contexts, horizon, shares)
    P = np.zeros((n_contexts, n_actions, n_states))
    for rows in P:
        reached = rng.permutation(n_states)[:n_reached]
        rows[:, reached] = rng.dirichlet(np.ones(n_reached), size=n_actions)
    return Instance(P, theta, contexts=contexts)


def segments(
    seed: Seed, n_contexts: int = 20, n_actions: int = 30, n_states: int = 6, horizon: int = 10_000,
    of_action: float = 1.0, of_context: float = 1.0, together: float = 0.0, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """Rows P_k(s|a) ∝ exp(action(a, s) + context(k, s) + together(k, a, s)), so that contexts are similar.

    `of_action`, `of_context` and `together` are the standard deviations of the effects. A map that is not known can be
    learnt from all contexts where the effect of the context is small.

    >>> import statepool as sp
    >>> sp.families.segments(seed=0, horizon=100)
    Instance(20 contexts, 30 actions, 6 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    for name, size in (("of_action", of_action), ("of_context", of_context), ("together", together)):
        check_number(size, name, 0, 50)
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_contexts(rng, n_contexts, horizon, shares)
    effects = of_action * rng.standard_normal((1, n_actions, n_states))
    effects = effects + of_context * rng.standard_normal((n_contexts, 1, n_states))
    effects = effects + together * rng.standard_normal((n_contexts, n_actions, n_states))
    return Instance(normalise(np.exp(effects - effects.max(axis=2, keepdims=True))), theta, contexts=contexts)


def routes(
    seed: Seed, n_contexts: int = 60, n_actions: int = 120, n_states: int = 5, horizon: int = 10_000,
    n_candidates: int = 4, means: str = "steady", shares: str = "even",
) -> Instance:  # fmt: skip
    """Many contexts, each of which may be answered with `n_candidates` of the actions only: lines that serve a route.

    >>> import statepool as sp
    >>> sp.families.routes(seed=0, horizon=100)
    Instance(60 contexts, 120 actions, 5 states, 100 rounds)
    """
    check_sizes(n_contexts=n_contexts, n_actions=n_actions, n_states=n_states, horizon=horizon)
    if check_count(n_candidates, "n_candidates") > n_actions:
        raise ValueError(f"n_candidates: is {n_candidates}, expected at most the {n_actions} actions")
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    contexts = draw_contexts(rng, n_contexts, horizon, shares)
    available = np.zeros((n_contexts, n_actions), dtype=bool)
    P = np.zeros((n_contexts, n_actions, n_states))
    for rows, offered in zip(P, available, strict=True):
        candidates = rng.permutation(n_actions)[:n_candidates]
        offered[candidates] = True
        rows[candidates] = rng.dirichlet(np.ones(n_states), size=n_candidates)
    return Instance(P, theta, contexts=contexts, available=available)


def moving_map(
    seed: Seed, n_actions: int = 20, n_states: int = 5, horizon: int = 10_000, n_epochs: int = 20, moves: str = "drift",
    means: str = "steady",
) -> Instance:  # fmt: skip
    """The map changes from epoch to epoch without the learner's knowledge, the case that NSD-UCRL2 is made for.

    `moves`: "drift" from one map to another in equal steps, or "jumps" to new rows in every epoch. Epochs are the
    contexts of the instance, so that the comparator knows each epoch's best action. Learners see no contexts, and one
    map: the average over all rounds, as if it were fitted to a long log.

    >>> import statepool as sp
    >>> sp.families.moving_map(seed=0, horizon=100)
    Instance(20 contexts, 20 actions, 5 states, 100 rounds)
    """
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon, n_epochs=n_epochs)
    check_name("moves", moves, ("drift", "jumps"))
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    maps = rng.dirichlet(np.ones(n_states), size=(2 if moves == "drift" else n_epochs, n_actions))
    if moves == "drift":
        share = np.linspace(0, 1, n_epochs)[:, None, None]
        maps = (1 - share) * maps[0] + share * maps[1]
    epochs = (progress(horizon)[:, 0] * n_epochs).astype(np.int64)
    average = np.einsum("e,eas->as", np.bincount(epochs, minlength=n_epochs) / horizon, maps)
    return Instance(maps, theta, contexts=epochs, given_map=normalise(average))
