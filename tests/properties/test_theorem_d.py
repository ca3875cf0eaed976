"""Theorem D step by step: on every path, rare contexts and absurd rates included, and by exact enumeration."""

from itertools import product
from math import e, expm1, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
import textbook
from statepool.guarantees import choices_of, kappa, theorem_d


def potential(L, eta):
    """(1/eta) log sum exp(-eta L)."""
    return np.log(np.exp(-eta * (L - L.min())).sum()) / eta - L.min()


def joint(P, mu, x):
    """(marginal q, its second moment N, q of each context)."""
    return (
        np.einsum("k,ka,kas->s", mu, x, P), np.einsum("k,ka,kas->s", mu, x, P**2), np.einsum("ka,kas->ks", x, P)
    )  # fmt: skip


@given(
    seed=st.integers(0, 10**6), C=st.integers(1, 4), K=st.integers(1, 4), S=st.integers(1, 4),
    eta=st.sampled_from([1e-3, 0.05, 0.5, 2.0]), rare=st.sampled_from([1.0, 1e-2, 1e-5]),
    greed=st.sampled_from([0, 0.7]),
)  # fmt: skip
@settings(max_examples=100)
def test_the_inequalities_on_every_path(seed, C, K, S, eta, rare, greed):
    """States picked to hurt (the rarest), sparse maps, outcomes out of order, one context as rare as can be."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(S, 0.3), size=(C, K))
    P[P < 1e-3] = 0
    P /= P.sum(axis=2, keepdims=True)
    mu = rng.dirichlet(np.ones(C)) * np.r_[rare, np.ones(C - 1)]
    mu /= mu.sum()
    T, delays = 20, rng.integers(0, 9, size=20)
    estimates, third = [], np.zeros(C)
    for t in range(T):
        split = [[], []]
        for r, one in enumerate(estimates):
            split[int(r + delays[r] + 1 > t)].append(one)
        used, missing = (np.sum(part or [np.zeros((C, K))], axis=0) for part in split)
        x = np.array([textbook.softmin(row, eta) for row in used])
        q, N, by_context = joint(P, mu, x)
        reachable = np.flatnonzero(q > 1e-9)
        s = reachable[np.argmin(q[reachable])]
        if rng.random() >= greed:
            s = rng.choice(reachable, p=q[reachable] / q[reachable].sum())
        X = rng.choice([0.0, 1.0, rng.random()])
        c = P[:, :, s] * X / q[s]
        m = (x * c).sum(axis=1)
        scale = 1e-9 * (1 + c.max() + missing.max()) + 1e-14 / eta
        np.testing.assert_allclose(m, X * by_context[:, s] / q[s], rtol=1e-9)
        assert mu @ m == pytest.approx(X, abs=1e-9)
        first = np.array([m[k] + potential(used[k] + c[k], eta) - potential(used[k], eta) for k in range(C)])
        square = ((x * (c - X) ** 2).sum(axis=1)) @ mu
        assert mu @ first <= eta * kappa(eta) * square * (1 + 1e-9) + scale
        assert square <= X**2 * (N[s] / q[s] ** 2 - 1) + scale * c.max()
        variance = (x * (c - m[:, None]) ** 2).sum(axis=1)
        for k in range(C):  # the tighter form: each context centred by its own loss, at the price of its size
            if eta * m[k] < 300:
                assert first[k] <= eta * kappa(eta * m[k]) * variance[k] * (1 + 1e-9) + scale
            two = potential(used[k], eta) - potential(used[k] + c[k], eta)
            everything = used[k] + missing[k]
            two -= potential(everything, eta) - potential(everything + c[k], eta)
            assert two <= -(x[k] * c[k]) @ np.expm1(-eta * missing[k]) * (1 + 1e-9) + scale
            third[k] += potential(everything, eta) - potential(everything + c[k], eta)
            assert third[k] - (everything + c[k]).min() <= log(K) / eta * (1 + 1e-9) + scale
        estimates.append(c)


def test_own_losses_do_not_centre_rare_contexts():
    """The counterexample of docs/theory.md: a context of share 1e-3 with a state of its own."""
    eta, mu = 0.05, 1e-3
    x, own = np.array([0.999, 0.001]), np.array([1.0, 0.0])
    c = own / (mu * (x @ own))
    m = x @ c
    first = m + log(x @ np.exp(-eta * c)) / eta
    assert first > 5 * eta * (expm1(eta) - eta) / eta**2 * (x @ (c - m) ** 2)


@given(seed=st.integers(0, 10**6), C=st.integers(1, 5), K=st.integers(1, 5), S=st.integers(1, 5))
@settings(max_examples=100)
def test_the_dimension_splits_into_within_and_between(seed, C, K, S):
    rng = np.random.default_rng(seed)
    P, x = rng.dirichlet(np.full(S, 0.5), size=(C, K)), rng.dirichlet(np.full(K, 0.5), size=C)
    mu = rng.dirichlet(np.ones(C))
    q, N, by_context = joint(P, mu, x)
    v = sp.dimension.effective(P, mu[:, None] * x)
    assert v == pytest.approx((N / q).sum())
    between = np.einsum("k,ks,s->", mu, by_context**2, 1 / q)
    within = sum(mu[k] * (x[k] @ P[k] ** 2 - (x[k] @ P[k]) ** 2)[s] / q[s] for k, s in product(range(C), range(S)))
    assert v == pytest.approx(within + between)
    assert between >= 1 - 1e-9
    assert v <= S + 1e-9


def enumerated(P, theta, mu, delay, rate):
    """Exact means over every history: regret against the worst policy, sum of v - 1, sum of the part within."""
    (C, K, S), T = P.shape, len(theta)
    lost, spread, inside, mass = np.zeros((C, K)), 0.0, 0.0, 0.0
    for history in product(product(range(S), (0, 1)), repeat=T):
        G, waiting, chance, path_lost, path_spread, path_inside = np.zeros(S), [], 1.0, np.zeros((C, K)), 0.0, 0.0
        for t, (s, X) in enumerate(history):
            for due, state, charge in waiting:
                if due == t:
                    G[state] += charge
            x = np.array([textbook.softmin(rows @ G, rate) for rows in P])
            q, N, by_context = joint(P, mu, x)
            mean = theta[t, s]
            chance *= q[s] * (mean if X else 1 - mean)
            if chance == 0:
                break
            losses = P @ theta[t]
            path_lost += mu[:, None] * ((x * losses).sum(axis=1, keepdims=True) - losses)
            path_spread += (N / q).sum() - 1
            path_inside += ((N - mu @ by_context**2) / q).sum()
            waiting.append((t + delay + 1, s, X / q[s]))
        lost += chance * path_lost
        spread, inside, mass = spread + chance * path_spread, inside + chance * path_inside, mass + chance
    assert mass == pytest.approx(1)
    return lost.max(axis=1).sum(), spread, inside


@pytest.mark.parametrize("rate", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("delay", [0, 2])
def test_theorem_d_by_enumeration(rate, delay):
    P = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [1.0, 0.0]]])
    theta = np.array([[0.9, 0.1], [0.8, 0.6], [0.9, 0.0], [0.7, 0.2], [1.0, 0.3]])
    mu = np.array([0.6, 0.4])
    regret, spread, inside = enumerated(P, theta, mu, delay, rate)
    assert 0 < regret <= theorem_d(log(2), 5, delay, spread, rate).value
    if rate <= mu.min():  # the tighter form
        waited = sum(min(delay, 4 - t) for t in range(5))
        assert regret <= log(2) / rate + rate * ((e - 2) * inside + waited)
        assert inside < spread


def test_theorem_d_is_theorem_a_with_one_context():
    bounds = sp.guarantees.theorem_a(7, 500, 20, 800.0), theorem_d(log(7), 500, 20, 800.0)
    assert bounds[0] == bounds[1]
    assert theorem_d(0.0, 500, 20, 800.0).value == 0
    routes = sp.families.routes(seed=1, horizon=300, n_actions=20, n_candidates=3)
    assert choices_of(routes) == pytest.approx(log(3))
    assert choices_of(sp.families.band(seed=1, horizon=10, n_actions=8)) == log(8)
    for arguments in ((-1.0, 10, 1, 1.0), (1.0, 0, 1, 1.0), (1.0, 10, 1, -1.0), (1.0, 10, -1, 1.0)):
        with pytest.raises(ValueError, match=r"is -?[01]"):
            theorem_d(*arguments)
