"""Maps for the tests of the dimension, and a search for its supremum that shares nothing with the package."""

import numpy as np

import statepool as sp


def funnel(seed, n_actions, n_states):
    return sp.families.funnel(seed, n_actions, n_states, horizon=1).P


def overlapping(overlap, seed=0):
    return sp.families.overlap(seed, horizon=1, overlap=overlap).P


def random_map(seed):
    """One of five kinds: Dirichlet, funnel, sparse, deterministic, near-duplicate rows."""
    rng = np.random.default_rng(seed)
    K, S = int(rng.integers(2, 61)), int(rng.integers(2, 6))
    kind = seed % 5
    if kind == 0:
        P = rng.dirichlet(np.full(S, rng.choice([0.05, 0.2, 1.0, 5.0, 50.0])), size=K)
    elif kind == 1:
        P = funnel(seed, K, S)
    elif kind == 2:
        P = rng.dirichlet(np.full(S, 0.5), size=K) * (rng.random((K, S)) < 0.4)
        P[np.arange(K), rng.integers(S, size=K)] += 0.05
    elif kind == 3:
        P = np.eye(S)[np.r_[np.arange(S), rng.integers(S, size=K)]]
    else:
        base = rng.dirichlet(np.ones(S), size=max(2, K // 8))
        noise = rng.choice([1e-9, 1e-4, 1e-2]) * rng.normal(size=(K, S))
        P = base[rng.integers(len(base), size=K)] * np.exp(noise)
    return P / P.sum(axis=1, keepdims=True)


def values(P, X):
    """v of each row of X, written from the definition and sharing nothing with the package."""
    q, N = X @ P, X @ P**2
    return np.where(q > 0, N / np.where(q > 0, q, 1), 0).sum(axis=1)


def independent_search(P, seed, rounds=250):
    """Random plays of several concentrations, small supports too, then random moves to and from single
    actions."""
    rng = np.random.default_rng(seed)
    K = P.shape[0]
    X = np.vstack([rng.dirichlet(np.full(K, c), size=200) for c in (0.02, 0.1, 0.3, 1.0)])
    X = X[np.argsort(-values(P, X))[:40]]
    best, each = values(P, X), np.arange(40)
    for _ in range(rounds):
        step = rng.random(40)[:, None] ** 4
        towards = (1 - step) * X
        towards[each, rng.integers(K, size=40)] += step[:, 0]
        away = X.copy()
        away[each, rng.integers(K, size=40)] *= rng.random(40)
        away /= np.maximum(away.sum(axis=1, keepdims=True), 1e-300)
        for moved in (towards, away):
            reached = values(P, moved)
            better = reached > best
            X[better], best[better] = moved[better], reached[better]
    return best.max()
