"""Theorem G step by step: Theorem A's brackets beside any leaders and from a warm start, the guard, and the bound."""

import inspect
from itertools import product
from math import expm1, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
import textbook
from statepool.learners.safe import POLICY, RATE, SHARE, START

sizes = {"seed": st.integers(0, 10**6), "K": st.integers(1, 6), "S": st.integers(1, 5)}


def kappa1(r):
    return (expm1(r) - r) / r**2 if r > 1e-4 else 0.5


def potential(L, eta, prior):
    """(1/eta) log sum prior exp(-eta L)."""
    return np.log(prior @ np.exp(-eta * (L - L.min()))) / eta - L.min()


def soft_min(L, eta, prior):
    weights = prior * np.exp(-eta * (L - L.min()))
    return weights / weights.sum()


@given(
    **sizes, eta=st.sampled_from([1e-3, 0.05, 0.5, 3.0]), share=st.sampled_from([1.0, 0.3, 1 / 64]), spite=st.booleans()
)
@settings(max_examples=80)
def test_the_brackets_beside_a_leader_on_every_path(seed, K, S, eta, share, spite):
    """Any distribution over leaders, any prior, delays out of order, the rarest states if in spite: each step."""
    rng = np.random.default_rng(seed)
    P, _ = textbook.random_instance(seed, K, S, T=1)
    prior, delays = rng.dirichlet(np.full(K, 0.3)) * 0.9 + 0.1 / K, rng.integers(0, 9, size=20)
    estimates, telescoped = [], 0.0
    for t in range(20):
        come = [r for r in range(t) if r + delays[r] + 1 <= t]
        used = np.sum([estimates[r] for r in come] or [np.zeros(K)], axis=0)
        missing = np.sum([estimates[r] for r in range(t) if r not in come] or [np.zeros(K)], axis=0)
        x = soft_min(used, eta, prior)
        w = share if rng.random() < 0.8 else 1.0
        leaders = rng.dirichlet(np.full(K, 0.1)) if t % 2 else np.eye(K)[rng.integers(K)]
        q, of_safe = ((1 - w) * leaders + w * x) @ P, x @ P
        reachable = np.flatnonzero(q > 1e-9)
        s = reachable[np.argmin(q[reachable])] if spite else rng.choice(reachable, p=q[reachable] / q[reachable].sum())
        X = rng.choice([0.0, 1.0, rng.random()])
        c, met = P[:, s] * X / q[s], X * of_safe[s] / q[s]
        assert x @ c == pytest.approx(met, abs=1e-9)
        assert met <= (1 + 1e-9) / w
        slack = 1e-9 * (1 + c.max() + missing.max()) + 1e-13 / eta
        one = met + potential(used + c, eta, prior) - potential(used, eta, prior)
        assert one <= eta * kappa1(eta / share) * (x @ (c - met) ** 2) * (1 + 1e-9) + slack
        everything = used + missing
        gone = potential(everything, eta, prior) - potential(everything + c, eta, prior)
        two = potential(used, eta, prior) - potential(used + c, eta, prior) - gone
        assert two <= -(x * c) @ np.expm1(-eta * missing) * (1 + 1e-9) + slack
        telescoped += gone
        estimates.append(c)
        assert (telescoped <= everything + c - np.log(prior) / eta + slack).all()


@given(**sizes, share=st.sampled_from([1.0, 0.3, 1 / 64]))
@settings(max_examples=100)
def test_the_second_moment_beside_a_leader(seed, K, S, share):
    """E⟨x, ζ²⟩ exactly, with the losses that make it largest: at most (v - 1)/w."""
    rng = np.random.default_rng(seed)
    P, _ = textbook.random_instance(seed, K, S, T=1)
    x = rng.dirichlet(np.full(K, 0.5)) * 0.999 + 0.001 / K
    of_safe = x @ P
    q = (1 - share) * P[rng.integers(K)] + share * of_safe
    seen = q > 0
    moment = sum(q[s] * (x @ (P[:, s] / q[s] - of_safe[s] / q[s]) ** 2) for s in np.flatnonzero(seen))
    v = (x @ P**2)[seen] @ (1 / of_safe[seen])
    assert moment <= (v - 1) / share * (1 + 1e-9) + 1e-9


class Mean:
    """Exact means over every history of (state, outcome): safe's regret, and the policy's loss beyond safe's.

    Leaders are spread over two actions by the last state, which may be in flight; the guard acts above `gamma`.
    """

    def __init__(self, P, theta, delay, eta, share, prior, gamma):
        T, S = theta.shape
        K = len(P)
        self.of_safe, self.beyond, self.guarded = np.zeros(K), 0.0, 0.0
        for history in product(product(range(S), (0, 1)), repeat=T):
            chance, estimates, excess, last = 1.0, [], [], 0
            regret, beyond, guarded = np.zeros(K), 0.0, 0
            for t, (s, X) in enumerate(history):
                come = max(t - delay, 0)
                x = soft_min(np.sum(estimates[:come] or [np.zeros(K)], axis=0), eta, prior)
                leaders = np.roll(np.r_[0.7, 0.3, np.zeros(K - 2)], int(np.argmin(P[:, last])))
                alarm = sum(excess[:come]) > gamma
                w = 1.0 if alarm else share
                guarded += alarm
                policy = (1 - w) * leaders + w * x
                q = policy @ P
                chance *= q[s] * (theta[t, s] if X else 1 - theta[t, s])
                regret += x @ P @ theta[t] - P @ theta[t]
                beyond += (policy - x) @ P @ theta[t]
                estimates.append(P[:, s] * X / q[s])
                excess.append(X * (1 - (x @ P)[s] / q[s]))
                last = s
            self.of_safe += chance * regret
            self.beyond += chance * beyond
            self.guarded += chance * guarded


@pytest.mark.parametrize(("eta", "share"), [(1.0, 0.5), (0.3, 0.1)])
@pytest.mark.parametrize("delay", [0, 1, 2])
def test_both_steps_by_enumeration(delay, eta, share):
    """Safe's regret and what the guard allows, in the exact mean, beside leaders that read states in flight."""
    P = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    theta = np.array([[0.9, 0.1], [0.1, 0.6], [0.9, 0.0], [0.2, 1.0]])
    prior = np.array([0.8, 0.1, 0.1])
    waited = sum(min(t, delay) for t in range(4))
    mean = Mean(P, theta, delay, eta, share, prior, gamma=0.2)
    bound = -np.log(prior) / eta + eta * (kappa1(eta / share) * 4 / share + waited)
    assert (mean.of_safe <= bound).all()
    assert mean.of_safe.max() > 0
    assert mean.beyond <= 0.2 + min(delay, 3) + 1
    assert mean.guarded > 0


@pytest.mark.parametrize(("seed", "kind"), [(1, "one"), (2, "one"), (3, "in order")])
def test_the_learner_itself_on_every_path(seed, kind):
    """What the running learner plays obeys the epoch's inequality against every action, and its guard's."""
    T, K, S = 600, 6, 4
    rng, (P, _) = np.random.default_rng(seed), textbook.random_instance(seed, 6, 4, T=1, zeros=False)
    rounds = np.arange(T)
    delays = np.full(T, 5)
    if kind == "in order":
        delays = np.maximum.accumulate(rounds + rng.integers(0, 12, size=T)) - rounds
    player, decisions, epoch = sp.SelfTuned().player(P), [], None
    for t in range(T):
        for r in np.flatnonzero(rounds[:t] + delays[:t] + 1 == t):
            player.update(*decisions[r])
        decision = player.act(rng.random())
        safe = player.memory.safe
        (s0, eta), x = (safe.numbers[i] for i in (START, RATE)), safe.actions[POLICY].copy()
        if epoch is None or s0 == t:
            come = delays[:t][rounds[:t] + delays[:t] + 1 < t]
            assert eta == pytest.approx(rate_by_hand(K, S, max(t, 1), come.mean() + 1 if come.size else 0.0))
            epoch = {"estimates": [], "lost": np.zeros(K), "spent": log(K * max(t, 1)) / eta, "beyond": []}
            assert -np.log(x).max() <= log(K * max(t, 1)) + 1e-9  # the warm start
        s0 = int(s0)
        q, of_safe = player.policy() @ P, x @ P
        s = int(np.flatnonzero(q > 1e-12)[np.argmin(q[q > 1e-12])]) if t % 3 == 0 else textbook.draw(q, rng.random())
        X = float(rng.random() < 0.7)
        c, met = P[:, s] * X / q[s], X * of_safe[s] / q[s]
        waiting = [epoch["estimates"][r - s0] for r in range(s0, t) if r + delays[r] + 1 > t]
        missing = np.sum(waiting or [np.zeros(K)], axis=0)
        epoch["lost"] += met - c
        epoch["spent"] += eta * kappa1(eta / SHARE) * (x @ (c - met) ** 2) - (x * c) @ np.expm1(-eta * missing)
        assert (epoch["lost"] <= epoch["spent"] + 1e-7).all()
        epoch["estimates"].append(c)
        epoch["beyond"].append(X - met)
        longest = max(np.count_nonzero(rounds[s0:u] + delays[s0:u] + 1 > u) for u in range(s0, t + 1))
        assert sum(epoch["beyond"]) <= 3 * np.sqrt(s0 / SHARE) + longest + 1 + 1e-9
        player.observe(decision, s)
        decisions.append((decision, X))


def rate_by_hand(K, S, length, delay):
    return np.sqrt(log(K * length) / ((0.55 * (S - 1) * 64 + delay + 1) * length))


FAMILIES = [
    name for name in sp.families.REGISTRY
    if name not in ("direct", "moving-map", "crowds", "routes", "segments")
]  # fmt: skip
"""Not those with effects beyond the state, maps that move, or contexts."""


@pytest.mark.parametrize("family", FAMILIES)
def test_regret_stays_below_theorem_g(family):
    """At a horizon where the bound is below T, so that it says something."""
    horizon, delay = 1 << (17 if family == "locked" else 16), 3  # one has more states than the others
    make = sp.families.find(family)
    known = inspect.signature(make).parameters
    sizes = {"n_actions": 6, "horizon": horizon}
    instance = make(1, **{name: size for name, size in sizes.items() if name in known})
    bound = sp.guarantees.theorem_g(instance.n_actions, instance.n_states, horizon, delay)
    assert bound < horizon
    regrets = [sp.simulate(instance, sp.SelfTuned(), delay, seed).regret for seed in range(3)]
    assert np.mean(regrets) <= bound


def test_the_worst_leader_is_held_by_the_guard():
    """A shell written from the theorem's statement, whose leader is always the worst action."""
    horizon, K, start, gamma_ever = 1 << 15, 2, 0, False
    rng, P, c, lost = np.random.default_rng(1), np.eye(2), np.array([0.0, 1.0]), 0.0
    for t in range(horizon):
        if t >= 2 * start:
            start, L, excess = t, np.zeros(K), 0.0
            rate, since = rate_by_hand(K, 2, max(t, 1), 1.0 if t > 1 else 0.0), max(t, 1)
            prior = np.array([1 / (K * since), 1 - 1 / (K * since)]) if t else np.full(K, 0.5)
        x = soft_min(L, rate, prior)
        w = 1.0 if excess > 3 * np.sqrt(start / SHARE) else SHARE
        gamma_ever |= w == 1.0
        policy = (1 - w) * np.array([0.0, 1.0]) + w * x
        lost += policy @ c
        a = int(rng.random() < policy[1])
        L[a] += c[a] / policy[a]
        excess += c[a] * (1 - x[a] / policy[a])
    assert gamma_ever
    assert 0.1 * horizon < lost <= sp.guarantees.theorem_g(K, len(P), horizon, 0) < 0.7 * horizon


def test_outcomes_out_of_order_are_refused():
    assert sp.guarantees.theorem_g(2, 2, 5, [3, 2, 1, 0, 0]) == 5
    with pytest.raises(ValueError, match="round 1's outcome"):
        sp.guarantees.theorem_g(2, 2, 5, [0, 3, 0, 0, 0])
    assert sp.guarantees.theorem_g(2, 2, 40_000, [7] * 40_000) == pytest.approx(
        sp.guarantees.theorem_g(2, 2, 40_000, 7)
    )
