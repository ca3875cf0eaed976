"""Theorem F step by step: on every path, hostile ones included, and by exact enumeration. No kernel is used here.

Letters are those of docs/paper/theorem_f.tex; rounds are counted from 0, blocks from 1.
"""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textbook
from statepool.guarantees import theorem_f, theorem_f_free

sizes = {"seed": st.integers(0, 10**6), "K": st.integers(2, 6), "S": st.integers(1, 5), "d": st.integers(1, 5)}
MORE = 1 + 1e-9


def mean(x, f):
    return (x * f).sum(axis=-1)


def cov(x, f, g):
    return mean(x, f * g) - mean(x, f) * mean(x, g)


def var(x, f):
    return cov(x, f, f)


def half_range(f):
    return (f.max(axis=-1) - f.min(axis=-1)) / 2


def softmin(L, eta):
    w = np.exp(-eta * (L - L.min(axis=-1, keepdims=True)))
    return w / w.sum(axis=-1, keepdims=True)


def dimension(P, x):
    q = x @ P
    return np.divide(x @ P**2, q, out=np.zeros_like(q), where=q > 0).sum(axis=-1)


def drift(c, d):
    return max((half_range(c[lag:] - c[:-lag]) ** 2).sum() for lag in range(1, min(3 * d, len(c))))


class Path:
    """One history: `step` adds a round whose state is chosen by the caller, `policy` is the definition of the rule."""

    def __init__(self, P, d, eta, clip=2.0):
        self.P, self.d, self.eta, self.clip = P, d, eta, clip
        self.c, self.zeta, self.x, self.X = [], [], [], []

    def sum(self, values, first, last):
        return np.sum(values[max(first, 0) : max(last, 0)] or [np.zeros(len(self.P))], axis=0)

    def hint(self, k):
        return np.minimum(self.clip, self.sum(self.zeta, (k - 3) * self.d, (k - 2) * self.d) / self.d)

    def policy(self, r):
        return softmin(self.sum(self.c, 0, r - self.d) + self.d * self.hint(r // self.d + 1), self.eta)

    def step(self, pick, X):
        x = self.policy(len(self.x))
        s = pick(x @ self.P)
        self.x.append(x)
        self.c.append(self.P[:, s] * X / (x @ self.P[:, s]))
        self.zeta.append(self.c[-1] - X)
        self.X.append(X)


def hostile_path(seed, K, S, d, eta, greed, T, clip=2.0):
    """States picked to hurt (the rarest) with probability `greed`, losses of 0, 1 or between."""
    rng = np.random.default_rng(seed)
    P, _ = textbook.random_instance(seed, K, S, T=1)
    path = Path(P, d, eta, clip)

    def pick(q):
        reachable = np.flatnonzero(q > 1e-9)
        weights = q[reachable] / q[reachable].sum()
        return reachable[np.argmin(weights)] if rng.random() < greed else rng.choice(reachable, p=weights)

    for _ in range(T):
        path.step(pick, rng.choice([1.0, 1.0, 0.0, rng.random()]))
    return path, rng


@given(**sizes, greed=st.sampled_from([0, 0.7, 1.0]), slow=st.sampled_from([1.0, 0.3]))
@settings(max_examples=60, deadline=None)
def test_stability_and_comparison_on_every_path(seed, K, S, d, greed, slow):
    """Lemmas 1 and 2, and the ratios that Lemma 3 uses: none of them needs an expectation."""
    eta, T = slow / (12 * d), 8 * d
    path, rng = hostile_path(seed, K, S, d, eta, greed, T)
    x = np.array(path.x)
    total, bound = 0.0, 0.0
    for r in range(T):
        k = r // d + 1
        for u in range(max(0, r - d), r):  # stability, along the whole geometric path
            for omega in (0.3, 0.6, 1.0):
                p = x[u] ** (1 - omega) * x[r] ** omega
                assert (p / p.sum() <= 2 * x[u] * MORE).all()
        z = softmin(path.sum(path.c, 0, r), eta)
        N = path.sum(path.c, r - d, r) - d * path.hint(k)
        assert (z <= 1.52 * x[r] * MORE).all()
        moved = softmin(np.log(x[r]) / -1 + eta * N, 1.0)  # z is x e^{-eta N}
        assert np.allclose(z, moved, atol=1e-9)
        c = rng.random(K)
        first = eta * cov(x[r], N, c)
        assert abs((x[r] - z) @ c - first) <= 0.76 * eta**2 * var(x[r], N) * MORE + 1e-12
        added = path.X[r] + log(z @ np.exp(-eta * path.c[r])) / eta
        assert -0.52 - 1e-9 <= added <= 1 + 1e-9
        assert added <= (x[r] - z) @ path.c[r] + 0.52 * eta * (z @ path.zeta[r] ** 2) * MORE + 1e-9
        total, bound = total + added, bound + path.X[r]
        regret = bound - path.sum(path.c, 0, r + 1)
        assert regret.max() <= log(K) / eta + total + 1e-7  # for every action at once
        if k >= 3:
            y, b = x[(k - 2) * d], x[(k - 1) * d]
            assert (b <= 2 * y * MORE).all()
            assert (x[r] <= 4 * y * MORE).all()
    assert S == 1 or (x[1:] != x[:-1]).any()


def largest_ratio(seed, rate):
    """How much a probability grows within one flight, on a hostile path."""
    path, _ = hostile_path(seed, 5, 4, 4, rate, 0.7, 40)
    x = np.maximum(path.x, 1e-100)
    return max((x[u + 4] / x[u]).max() for u in range(len(x) - 4))


def test_above_the_largest_rate_stability_fails():
    """The guard of the test above: it can fail, at six times the largest rate."""
    assert max(largest_ratio(seed, 6 / 48) for seed in range(10)) > 2 > max(largest_ratio(s, 1 / 48) for s in range(10))


def test_without_the_clip_a_hint_has_no_bound():
    """Why M is cut at 2: a state that one action of many leads to puts X/q, which has no bound, into its hint."""
    P = np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    largest = []
    for clip in (2.0, np.inf):
        path = Path(P, 1, 1 / 12, clip)
        path.step(lambda q: 1, 1.0)
        largest.append(path.hint(3).max())
    assert largest == pytest.approx([2, 9])


class Tree:
    """Every history of (state, loss) up to T, level by level, with its probability; losses are 0 or 1."""

    def __init__(self, P, theta, d, eta):
        self.P, self.theta, self.d, self.eta = P, theta, d, eta
        self.T, (self.K, self.S) = len(theta), P.shape
        self.c = theta @ P.T
        self.x, self.chance, self.est, self.X = [], [np.ones(1)], [], []
        for t in range(self.T):
            self._grow(t)

    def _grow(self, t):
        d, k = self.d, t // self.d + 1
        x = softmin(self.sum(self.est, 0, t - d, t) + d * self.hint(k, t), self.eta)
        q = x @ self.P
        n, S = len(q), self.S
        chance = self.chance[t][:, None, None] * q[:, :, None] * np.stack([1 - self.theta[t], self.theta[t]], 1)[None]
        est = np.zeros((n, S, 2, self.K))
        est[:, :, 1] = self.P.T[None] / q[:, :, None]
        self.x.append(x)
        self.chance.append(chance.reshape(-1))
        self.est.append(est.reshape(-1, self.K))
        self.X.append(np.tile([0.0, 1.0], n * S))

    def at(self, values, t):
        """Values of the nodes of some level, at their descendants after t rounds."""
        return np.repeat(values, len(self.chance[t]) // len(values), axis=0)

    def sum(self, values, first, last, t):
        parts = [self.at(value, t) for value in values[max(first, 0) : max(last, 0)]]
        return np.sum(parts, axis=0) if parts else np.zeros((len(self.chance[t]), self.K))

    def zeta(self):
        return [est - X[:, None] for est, X in zip(self.est, self.X, strict=True)]

    def hint(self, k, t):
        return np.minimum(2, self.sum(self.zeta(), (k - 3) * self.d, (k - 2) * self.d, t) / self.d)

    def mean(self, values, t):
        """The exact expectation of what is known after t rounds."""
        return float(self.chance[t] @ self.at(values, t))

    def spread(self, t):
        return self.mean(dimension(self.P, self.x[t]) - 1, t)

    def parts(self, r):
        """N_r and what it is made of, for the nodes of level r: (N, A, sum of n_u, nu, o)."""
        d, k = self.d, r // self.d + 1
        us, ws = range(r - d, r), range((k - 3) * d, (k - 2) * d)
        n = sum(self.at(self.est[u], r) - self.c[u] for u in us)
        zeta = self.zeta()
        nu = sum(self.at(zeta[w], r) - self.at(self.c[w] - (self.x[w] @ self.c[w])[:, None], r) for w in ws)
        over = np.maximum(sum(self.at(zeta[w], r) for w in ws) - 2 * d, 0)
        A = sum(self.c[u] for u in us) - sum(self.c[w] for w in ws)
        N = self.sum(self.est, r - d, r, r) - d * self.hint(k, r)
        return N, A, n, nu, over


def trees():
    """Small instances: overlap and none, losses that swing, rare states, both block lengths."""
    overlap = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    rare = np.array([[0.98, 0.02], [1.0, 0.0]])
    swing = np.array([[1, 0], [0, 1]] * 4, float)
    slow = np.array([[0.5 + 0.4 * np.sin(t), 0.5 - 0.4 * np.sin(t)] for t in range(8)])
    rng = np.random.default_rng(7)
    for d, T in ((1, 6), (2, 7)):
        for P in (overlap, np.eye(2), rare):
            for theta in (swing[:T], slow[:T], rng.random((T, 2))):
                for share in (1.0, 0.25):
                    yield P, theta, d, share / (12 * d)


TREES = [Tree(*given) for given in trees()]


@pytest.mark.parametrize("tree", TREES)
def test_means_are_zero_and_noise_is_small(tree):
    """(a), (b), Lemma 3 and the zero mean of (c), exactly."""
    d = tree.d
    for r in range(2 * d, tree.T):
        k, x, c = r // d + 1, tree.x[r], tree.c[r]
        N, A, n, nu, over = tree.parts(r)
        assert tree.chance[r].sum() == pytest.approx(1)
        rest = N - (A + n - nu + over)
        assert np.ptp(rest, axis=1) == pytest.approx(0, abs=1e-9)  # the parts of N, up to a constant
        assert (over <= nu**2 / (4 * d) + 1e-9).all()
        assert tree.mean(cov(x, n, c), r) == pytest.approx(0, abs=1e-10)
        assert tree.mean(var(x, n), r) <= 2 * sum(tree.spread(u) for u in range(r - d, r)) + 1e-12
        block = sum(tree.spread(w) for w in range((k - 3) * d, (k - 2) * d))
        y = tree.at(tree.x[(k - 2) * d], r)
        assert tree.mean(mean(y, nu**2), r) <= 2 * block + 1e-12
        assert tree.mean(cov(x, over, c), r) <= 2 / d * block + 1e-12
        J = range((k - 2) * d, r - d)
        before = d * tree.at(tree.hint(k - 1, (k - 2) * d), r)
        known = 2 * sum(tree.c[w] for w in range((k - 3) * d, (k - 2) * d)) + sum(tree.c[s] for s in J) - before
        p0 = softmin(-np.log(y) / tree.eta + known, tree.eta)
        assert tree.mean(cov(p0, nu, c), r) == pytest.approx(0, abs=1e-10)
        following = sum(tree.spread(s) for s in range((k - 2) * d, (k - 1) * d))
        gap = tree.mean(np.abs(cov(x, nu, c) - cov(p0, nu, c)), r)
        assert gap <= tree.eta * (10.2 * block + 1.7 * following) + 1e-12


def test_the_noise_of_the_hint_has_no_mean_under_the_policy_that_knows_it():
    """Why (c) needs p0: under x_r itself, which has seen the block, the mean is not zero."""
    means = [
        tree.mean(cov(tree.x[2 * tree.d], tree.parts(2 * tree.d)[3], tree.c[2 * tree.d]), 2 * tree.d) for tree in TREES
    ]
    assert np.abs(means).max() > 1e-3


@pytest.mark.parametrize("tree", TREES)
def test_first_order_term_by_polarisation(tree):
    """The identity for every pairing, the telescoping sum, and the price of changing the measure."""
    d, tele, replaced = tree.d, np.zeros(len(tree.chance[tree.T])), 0.0
    G = sum(tree.mean(var(tree.x[s], tree.c[s]), s) for s in range(tree.T))
    V = sum(tree.spread(t) for t in range(tree.T))
    for r in range(2 * d, tree.T):
        k, x = r // d + 1, tree.x[r]
        for u, w in zip(range(r - d, r), range((k - 3) * d, (k - 2) * d), strict=True):
            cu, cw, cr = tree.c[u], tree.c[w], tree.c[r]
            left = 2 * cov(x, cu - cw, cr)
            right = var(x, cw - cr) - var(x, cu - cr) + var(x, cu) - var(x, cw)
            assert left == pytest.approx(right, abs=1e-12)
            own = tree.at(var(tree.x[u], cu), tree.T) - tree.at(var(tree.x[w], cw), tree.T)
            tele += own
            change = np.abs(var(x, cu) - tree.at(var(tree.x[u], cu), r))
            change += np.abs(var(x, cw) - tree.at(var(tree.x[w], cw), r))
            replaced += tree.mean(change, r) / 2
    assert tele.max() <= 0.75 * d**2
    assert replaced <= 22.15 * tree.eta * (d**2 * G + np.sqrt(d**2 * G * d * V)) + 1e-12


@pytest.mark.parametrize("tree", TREES)
def test_theorem_f_by_enumeration(tree):
    d, eta, T, K = tree.d, tree.eta, tree.T, tree.K
    V = sum(tree.spread(t) for t in range(T))
    V1 = sum(tree.mean(np.minimum(1, dimension(tree.P, tree.x[t]) - 1), t) for t in range(T))
    E = drift(tree.c, d)
    lost = sum(tree.mean(tree.x[t] @ tree.c[t], t) for t in range(T)) - tree.c.sum(axis=0).min()
    # The certificate and Lemma 2, exactly.
    total = sum(tree.at(X, T) for X in tree.X)
    everything = tree.sum(tree.est, 0, T, T)
    Q = total + np.log(np.exp(-eta * everything).mean(axis=1)) / eta
    assert lost <= log(K) / eta + tree.mean(Q, T) + 1e-9
    second = 0.0
    for r in range(T):
        N = tree.sum(tree.est, r - d, r, r) - d * tree.hint(r // d + 1, r)
        x = tree.x[r]
        second += tree.mean(eta * cov(x, N, tree.c[r]) + 0.76 * eta**2 * var(x, N), r)
    assert lost <= log(K) / eta + 0.79 * eta * V + second + 1e-9
    # What the rest of the proof says of these terms, and the theorem.
    rest = eta * (7 * V + 2 * d * E) + 7 * eta**2 * d**2 * V1 + d / 12
    assert 0.79 * eta * V + second <= rest
    bound = theorem_f(K, T, d, V, E, eta)
    assert bound.covered
    assert lost <= log(K) / eta + rest <= bound.value + 1e-12


def test_the_bound_as_a_function():
    at = theorem_f(3, 1_000, 5, 400.0, 20.0, rate=0.01)
    assert at.value == pytest.approx(log(3) / 0.01 + 0.01 * (2800 + 200) + 7 * 0.0001 * 25 * 400 + 5 / 12)
    assert at.covered
    assert not theorem_f(3, 1_000, 5, 400.0, 20.0, rate=0.02).covered
    assert theorem_f(1, 1_000, 5, 400.0, 20.0).value == 0
    assert theorem_f(3, 10, 0, 4.0, 2.0).value == theorem_f(3, 10, 1, 4.0, 2.0).value
    assert theorem_f(3, 100, 5, 4000.0, 2.0, 0.01).value < theorem_f(3, 4000, 5, 4000.0, 2.0, 0.01).value


@given(
    K=st.integers(2, 10**4), T=st.integers(1, 10**7), d=st.integers(1, 10**4), v=st.floats(0, 50),
    moved=st.floats(0, 0.25),
)  # fmt: skip
@settings(max_examples=200)
def test_forms_of_the_bound_agree(K, T, d, v, moved):
    """No rate beats the tuned one, the closed form is above it, and what knows less is promised less."""
    given = (K, T, d, v * T, moved * T)
    best = theorem_f(*given)
    assert best.covered
    for share in (1e-4, 1e-2, 0.3, 0.9, 1.0):
        assert best.value <= theorem_f(*given, share / (12 * d)).value * MORE
    size, narrow = log(K), min(v * T, T)
    extra = min(12 * d**2 * size, 4 * (d**2 * narrow) ** (1 / 3) * size ** (2 / 3) + 12 * d * size)
    assert best.value <= (2 * sqrt((8 * v * T + 2 * d * moved * T) * size) + extra + d / 12) * MORE  # equation (11)
    assert best.value <= theorem_f_free(*given) * MORE
