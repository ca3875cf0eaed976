"""Theorem E, step by step on hostile paths: the drift lemma with hints, and the play without them that stays close."""

from math import e

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import textbook


@given(
    seed=st.integers(0, 10**6), K=st.integers(2, 6), S=st.integers(1, 5), d=st.integers(1, 6),
    greed=st.sampled_from([0, 0.7, 1.0]), wild=st.booleans(),
)  # fmt: skip
@settings(max_examples=120)
def test_plays_with_hints_move_slowly_and_stay_near_those_without(seed, K, S, d, greed, wild):
    """Hints that move as far as they may, states picked to hurt, losses of one."""
    rng = np.random.default_rng(seed)
    P, _ = textbook.random_instance(seed, K, S, T=1)
    eta, T = 1 / ((e + 2) * (d + 1)), 40
    hint, estimates, plays, used = np.zeros(K), [], [], np.zeros(K)
    for t in range(T):
        if t > d:
            used = used + estimates[t - d - 1]
        x = textbook.softmin(used + min(t, d) * hint, eta)
        q = x @ P
        reachable = np.flatnonzero(q > 1e-9)
        s = reachable[np.argmin(q[reachable])] if rng.random() < greed else rng.choice(reachable)
        estimates.append(P[:, s] * (1.0 if wild else rng.random()) / q[s])
        plays.append(x)
        waiting = np.sum(estimates[max(0, t - d) : t], axis=0) if t else np.zeros(K)
        bare = textbook.softmin(used + waiting, eta)  # what is played without hints once these have come
        assert (bare <= 2.2 * x * (1 + 1e-9)).all()
        step = rng.choice([-1.0, 1.0], size=K) if wild else rng.uniform(-1, 1, size=K)
        hint = np.clip(hint + step / d, 0, 1)
    plays = np.array(plays)
    assert (plays[1:] <= (1 + 1 / d) * plays[:-1] * (1 + 1e-9)).all()
    assert S == 1 or (plays[1:] != plays[:-1]).any()


def test_above_its_cap_a_hint_that_jumps_breaks_the_lemma():
    """The guard of the test above: a hint from 0 to 1 at once, at three times the largest rate."""
    d, L, hint = 4, np.array([0.0, 60.0]), np.array([1.0, 0.0])
    eta = 3 / ((e + 2) * (d + 1))
    assert (textbook.softmin(L + d * hint, eta) / textbook.softmin(L, eta)).max() > 1 + 1 / d
