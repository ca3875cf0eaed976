"""Theorems A, B and C step by step: on every path, hostile ones and absurd rates included, and by exact enumeration."""

from itertools import product
from math import e, expm1, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textbook
from neighbours import dimension
from statepool.guarantees import kappa, theorem_a, total_wait

RATES = [1e-3, 0.05, 0.5, 3.0, 40.0]
sizes = {"seed": st.integers(0, 10**6), "K": st.integers(1, 6), "S": st.integers(1, 5)}


def potential(L, eta):
    """(1/eta) log sum exp(-eta L)."""
    return np.log(np.exp(-eta * (L - L.min())).sum()) / eta - L.min()


@given(**sizes, first=st.sampled_from(RATES), fall=st.sampled_from([1.0, 0.99, 0.8]), greed=st.sampled_from([0, 0.7]))
@settings(max_examples=80)
def test_the_three_inequalities_on_every_path(seed, K, S, first, fall, greed):
    """States picked to hurt (the rarest), delays out of order, rates that fall or stay, from tiny to absurd."""
    rng = np.random.default_rng(seed)
    P, _ = textbook.random_instance(seed, K, S, T=1)
    T, eta = 25, first
    delays = rng.integers(0, 9, size=T)
    estimates, used, third, spent = [], np.zeros(K), 0.0, 0.0
    for t in range(T):
        for r in range(t):
            if r + delays[r] + 1 == t:
                used = used + estimates[r]
        eta *= fall
        everything = np.sum(estimates, axis=0) if estimates else np.zeros(K)
        # Summed by themselves: a difference of large sums may round to less than nothing.
        missing = np.sum([estimates[r] for r in range(t) if r + delays[r] + 1 > t] or [np.zeros(K)], axis=0)
        x = textbook.softmin(used, eta)
        q = x @ P
        reachable = np.flatnonzero(q > 1e-9)  # past that no float can tell what is being claimed
        rarest = reachable[np.argmin(q[reachable])]
        s = rarest if rng.random() < greed else rng.choice(reachable, p=q[reachable] / q[reachable].sum())
        X = rng.choice([0.0, 1.0, rng.random()])
        c = P[:, s] * X / q[s]
        zeta, scale = c - X, 1e-9 * (1 + c.max() + missing.max()) + 1e-14 / eta  # what rounding may add
        assert x @ c == pytest.approx(X, abs=1e-9)
        one = X + potential(used + c, eta) - potential(used, eta)
        kappa1 = (expm1(eta) - eta) / eta**2 if eta > 1e-4 else 0.5
        assert one <= eta * kappa1 * (x @ zeta**2) * (1 + 1e-9) + scale
        two = potential(used, eta) - potential(used + c, eta)
        two -= potential(everything, eta) - potential(everything + c, eta)
        assert two <= -(x * c) @ np.expm1(-eta * missing) * (1 + 1e-9) + scale
        third += potential(everything, eta) - potential(everything + c, eta)
        spent += one + two
        estimates.append(c)
        total = everything + c
        assert third - total.min() <= log(K) / eta * (1 + 1e-9) + scale
    assert np.isfinite(spent)


def test_the_third_inequality_needs_rates_that_do_not_rise():
    L, low, high = np.array([0.0, 10.0]), 0.01, 5.0
    gained = potential(0 * L, low) - potential(L, low) + potential(L, high) - potential(L + 1, high)
    assert gained > log(2) / high + (L + 1).min()


@pytest.mark.parametrize("rate", [1e-9, 1e-5, 0.3, 0.5, 5.0])
def test_costs_of_a_rate(rate):
    series = sum(rate**k / np.prod(np.arange(1, k + 3, dtype=float)) for k in range(60))
    assert kappa(rate) == pytest.approx(series, rel=1e-6)
    if rate == 0.5:
        assert kappa(rate) < 0.6


class Path:
    """One history of (state, loss) played through plain exponential weights or AdaHedge, with its probability."""

    def __init__(self, P, theta, delay, rate=None):
        self.P, self.theta, self.delay, self.rate = P, theta, delay, rate
        K = P.shape[0]
        self.bound = self.sum = 2 * log(K)

    def walk(self, history):
        """(probability, regret against each action, certificate, sum of v - 1, sum of min(1, v - 1), in flight)."""
        P, K = self.P, self.P.shape[0]
        L, waiting, chance, lost, spread, narrow = np.zeros(K), [], 1.0, np.zeros(K), 0.0, 0.0
        for t, (s, X) in enumerate(history):
            for arrival, *outcome in sorted(waiting):
                if arrival == t:
                    L = self.learn(L, *outcome)
            waiting = [one for one in waiting if one[0] > t]
            x = textbook.softmin(L, self.rate or log(K) / self.bound)
            q, mean = x @ P, self.theta[t, s]
            chance *= q[s] * (mean if X else 1 - mean)
            if chance == 0:
                return None
            lost += x @ P @ self.theta[t] - P @ self.theta[t]
            spread += dimension(P, x) - 1
            narrow += min(1, dimension(P, x) - 1)
            waiting.append((t + self.delay(t, s, X) + 1, t, s, X, q[s]))
        return chance, lost, 2 * self.bound - 2 * log(K) + len(waiting), spread, narrow, len(waiting)

    def learn(self, L, _, s, X, q):
        c, eta = self.P[:, s] * X / q, self.rate or log(len(L)) / self.bound
        self.sum += X + log(textbook.softmin(L, eta) @ np.exp(-eta * c)) / eta
        self.bound = max(self.bound, self.sum)
        return L + c


def enumerate_paths(P, theta, delay, rate=None):
    """Exact means over every history of states and losses: regret (worst comparator) and the other figures."""
    T, S = theta.shape
    means, mass = None, 0.0
    for history in product(product(range(S), (0, 1)), repeat=T):
        walked = Path(P, theta, delay, rate).walk(history)
        if walked is not None:
            chance, *figures = walked
            mass += chance
            means = [chance * f + (m if means else 0) for f, m in zip(figures, means or figures, strict=True)]
    assert mass == pytest.approx(1)
    return means


DELAYS = {
    "none": lambda t, s, X: 0,
    "fixed": lambda t, s, X: 2,
    "out of order": lambda t, s, X: (3, 0, 1, 9, 0)[t],
    "purchases first": lambda t, s, X: 3 if X else 0,
    "losses never": lambda t, s, X: 9 if X else 0,
}


@pytest.mark.parametrize("kind", DELAYS)
def test_the_certificate_bounds_the_regret_exactly_whatever_the_delays_depend_on(kind):
    """Theorem C by enumeration of all 4^5 histories: also where an outcome decides its own delay."""
    P = np.array([[0.9, 0.1], [0.2, 0.8]])
    theta = np.array([[0.9, 0.1], [0.5, 0.6], [0.9, 0.0], [0.2, 0.4], [1.0, 0.3]])
    lost, certificate, _, _, in_flight = enumerate_paths(P, theta, DELAYS[kind])
    assert lost.max() <= certificate
    assert lost.max() > 0
    if kind == "losses never":  # without the count of what has not come it would not be a bound
        assert certificate - in_flight == pytest.approx(2 * log(2))


@pytest.mark.parametrize("rate", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("kind", ["none", "fixed", "out of order"])
def test_theorem_a_by_enumeration(kind, rate):
    P = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    theta = np.array([[0.9, 0.1], [0.1, 0.6], [0.9, 0.0], [0.2, 1.0], [1.0, 0.3]])
    lost, _, spread, _, _ = enumerate_paths(P, theta, DELAYS[kind], rate)
    delays = np.array([DELAYS[kind](t, 0, 0) for t in range(5)])
    assert lost.max() <= theorem_a(3, 5, delays, spread, rate).value


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_theorem_b_by_enumeration(delay):
    P = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    theta = np.array([[0.9, 0.1], [0.1, 0.6], [0.9, 0.0], [0.2, 1.0], [1.0, 0.3]])
    rate = 1 / (e * (delay + 1))
    lost, _, spread, narrow, _ = enumerate_paths(P, theta, lambda t, s, X: delay, rate)
    assert lost.max() <= log(3) / rate + rate * (3 * spread + 3 / 8 * delay * narrow)


@given(**sizes)
@settings(max_examples=150)
def test_the_variance_of_losses_under_a_play_is_at_most_a_quarter_of_its_spread(seed, K, S):
    """Theorem B's Cauchy-Schwarz step, and the bound of v - 1 by the mass that is not on one action."""
    P, theta = textbook.random_instance(seed, K, S, T=1)
    x = np.random.default_rng(seed + 1).dirichlet(np.full(K, 0.4))
    c = P @ theta[0]
    v = dimension(P, x)
    assert x @ (c - x @ c) ** 2 <= min(1, v - 1) / 4 + 1e-12
    best = int(np.argmax(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        chi2 = np.nan_to_num((P - P[best]) ** 2 / P[best], nan=0.0, posinf=np.inf).sum(axis=1).max()
    assert v - 1 <= 2 * max(chi2, min(K, S) - 1) * (1 - x[best]) + 1e-9


def best_set_left_out(K, horizon, delays):
    """Least over sets U of rounds of |U| + sqrt((D outside U + |U|) log K)."""
    waits = np.sort(np.minimum(delays, horizon - 1 - np.arange(horizon)))[::-1]
    outside = waits.sum() - np.concatenate([[0], np.cumsum(waits)])
    left_out = np.arange(horizon + 1)
    return (left_out + np.sqrt((outside + left_out) * log(K))).min()


@given(seed=st.integers(0, 10**6), K=st.sampled_from([2, 9, 10**6]), horizon=st.integers(1, 60))
@settings(max_examples=150)
def test_skipping_costs_no_more_than_the_best_set_left_out(seed, K, horizon):
    rng = np.random.default_rng(seed)
    delays = np.where(rng.random(horizon) < 0.3, 10**6, rng.integers(0, 20, size=horizon))
    active, waited, given_up, front = set(), 0.0, 0, log(max(K, 2))
    for t in range(horizon):
        active -= {r for r in active if r + delays[r] + 1 <= t}
        old = {r for r in active if t - r - 1 >= max(1, np.sqrt(waited / front))}
        active -= old
        given_up += len(old)
        waited += len(active)
        active.add(t)
    assert given_up <= 2 * np.sqrt(waited * log(K)) + 1e-9
    assert np.sqrt(waited * log(K)) <= best_set_left_out(K, horizon, delays) + 1e-9
    assert waited <= total_wait(delays, horizon)


def test_the_drift_lemma_fails_when_rates_fall():
    """No news, and an action's probability grows by a factor of e."""
    L = np.array([0.0, 1000.0])
    assert textbook.softmin(L, 0.049)[1] / textbook.softmin(L, 0.05)[1] == pytest.approx(e, rel=1e-9)
