"""The pooled estimate: the paper's worked example, Proposition 1 by exact enumeration, and the dimension v."""

from math import log

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
import textbook
from statepool.grouping import merge_states
from statepool.kernels import columns_of, effective_dimension
from statepool.learners import Played, Problem
from statepool.learners.contract import make_tables, rows_at
from statepool.learners.stepper import Stepper
from statepool.stream import Stream

sizes = {"seed": st.integers(0, 10**6), "K": st.integers(1, 7), "S": st.integers(1, 6)}


def dimension(P, x):
    return effective_dimension(columns_of(np.asarray(P, float)), np.asarray(x, float))


def stepper_of(learner, P):
    return Stepper(learner, Problem(P, 100, 0, Stream.from_seed(0)))


def rows_of(P):
    return rows_at.py_func(make_tables(P), 0)


def estimate(learner, P, x, action, state, loss):
    """c_hat: what one outcome adds to the cumulative loss of each action, under the policy x."""
    stepper = stepper_of(learner, P)
    saved = stepper.remember(rows_of(P), x, action, state)
    stepper.learn(Played(0, 0.0, action, state, 0, 0.0), loss, saved)
    losses = stepper.memory.losses[0]
    return P @ losses if isinstance(learner, sp.StateEXP3) else losses


def test_worked_example():
    """Appendix A: three actions, two states, every number of the paragraph."""
    P = np.array([[0.8, 0.2], [0.4, 0.6], [0.0, 1.0]])
    x = textbook.softmin(np.array([0, log(2), log(2)]), 1.0)
    np.testing.assert_allclose(x, [1 / 2, 1 / 4, 1 / 4], rtol=1e-15)
    stepper = stepper_of(sp.StateEXP3(rate=1.0), P)
    saved = stepper.remember(rows_of(P), x, 0, 0)
    np.testing.assert_allclose(saved, [0.5], rtol=1e-15)  # q(s_1); q(s_2) is 0.5 as well
    np.testing.assert_allclose(x @ P, [0.5, 0.5], rtol=1e-15)
    stepper.learn(Played(0, 0.0, 0, 0, 0, 0.0), 1.0, saved)
    np.testing.assert_allclose(stepper.memory.losses[0], [2.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(P @ stepper.memory.losses[0], [1.6, 0.8, 0.0], atol=1e-15)
    alone = estimate(sp.ActionEXP3(rate=1.0), P, x, 0, 0, 1.0)
    np.testing.assert_allclose(alone, [2, 0, 0], atol=1e-15)
    by_state = [estimate(sp.StateEXP3(rate=1.0), P, x, 1, s, 1.0) for s in (0, 1)]
    np.testing.assert_allclose(0.5 * by_state[0], [0.8, 0.4, 0], atol=1e-15)  # theta = (1, 0): the mean is c
    np.testing.assert_allclose(dimension(P, x), 1.44, rtol=1e-15)
    moment = sum(0.5 * (x @ by_state[s] ** 2) for s in (0, 1))
    np.testing.assert_allclose(moment, 1.44, rtol=1e-14)  # attained at theta = (1, 1)


@given(**sizes, rate=st.sampled_from([0.05, 0.5, 2.0]))
@settings(max_examples=80)
def test_proposition_1_by_enumeration(seed, K, S, rate):
    """Range, unbiasedness and second moment over every (action, state, outcome), with the learner's own updates."""
    P, theta = textbook.random_instance(seed, K, S, T=1)
    theta = theta[0]
    for learner, bound in ((sp.StateEXP3(rate=rate), None), (sp.ActionEXP3(rate=rate), K)):
        stepper = stepper_of(learner, P)
        losses = stepper.memory.losses[0]
        losses[:] = np.random.default_rng(seed).uniform(0, 3, losses.size)
        x = stepper.policy(rows_of(P), 0)
        np.testing.assert_allclose(x, textbook.softmin(P @ losses if bound is None else losses, rate), rtol=1e-12)
        mean, second, mass = np.zeros(K), 0.0, 0.0
        for a, s in zip(*np.nonzero(P), strict=True):
            chance = x[a] * P[a, s]
            nothing = estimate(learner, P, x, a, s, 0.0)
            assert not nothing.any()
            c_hat = estimate(learner, P, x, a, s, 1.0)
            assert (c_hat >= 0).all()
            assert (c_hat <= 1 / x * (1 + 1e-12)).all()
            np.testing.assert_allclose(x @ c_hat, 1, rtol=1e-11)  # <x, c_hat> = X
            mean += chance * theta[s] * c_hat
            second += chance * theta[s] * (x @ c_hat**2)
            mass += chance
        np.testing.assert_allclose(mass, 1, rtol=1e-12)
        np.testing.assert_allclose(mean, P @ theta, atol=1e-11)
        assert second <= (dimension(P, x) if bound is None else bound) + 1e-10


@given(**sizes)
@settings(max_examples=200)
def test_dimension_lies_between_one_and_the_number_of_states(seed, K, S):
    P, _ = textbook.random_instance(seed, K, S, T=1)
    x = np.random.default_rng(seed + 1).dirichlet(np.ones(K) * 0.3)
    assert 1 - 1e-12 <= dimension(P, x) <= min(S, K) + 1e-12


def test_both_ends_are_attained():
    x = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(dimension(np.tile([0.2, 0.5, 0.3], (4, 1)), x), 1, rtol=1e-14)
    np.testing.assert_allclose(dimension(np.eye(3)[[0, 1, 2, 0]], x), 3, rtol=1e-14)
    np.testing.assert_allclose(dimension(np.eye(5)[[0, 1, 2, 0]], x), 3, rtol=1e-14)  # only the states reached
    private = np.kron(np.eye(4), [0.5, 0.25, 0.25])
    np.testing.assert_allclose(dimension(private, x), 4, rtol=1e-14)  # disjoint rows: K, not the number of states


@given(**sizes)
@settings(max_examples=200)
def test_chi_square_identity(seed, K, S):
    P, _ = textbook.random_instance(seed, K, S, T=1)
    x = np.random.default_rng(seed + 1).dirichlet(np.ones(K))
    joint, q = x[:, None] * P, x @ P
    apart = np.outer(x, q)
    inside = apart > 0
    chi2 = ((joint - apart)[inside] ** 2 / apart[inside]).sum()
    np.testing.assert_allclose(dimension(P, x) - 1, chi2, atol=1e-11)


@given(**sizes, data=st.data())
@settings(max_examples=200)
def test_grouping_never_raises_the_dimension(seed, K, S, data):
    P, _ = textbook.random_instance(seed, K, S, T=1)
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=S, max_size=S)))
    groups = np.unique(labels, return_inverse=True)[1]
    merged = merge_states(P, groups)
    np.testing.assert_allclose(merged, np.stack([P[:, groups == g].sum(axis=1) for g in range(groups.max() + 1)], 1))
    x = np.random.default_rng(seed + 1).dirichlet(np.ones(K))
    assert dimension(merged, x) <= dimension(P, x) + 1e-12
