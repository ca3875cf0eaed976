"""Long runs, extreme rates, and a sum tree that plays as the plain weights do."""

import numpy as np
import pytest

import statepool as sp
import textbook
from statepool.learners.parts.tree import (
    rebuild,
    start_tree,
    tree_charge,
    tree_distribution,
    tree_draw,
    tree_probability,
    tree_sum,
)
from statepool.learners.parts.weights import charge, distribution, draw, refresh, start_weights


def reversal(rounds):
    """Action 0 always loses for a quarter of the rounds, then always wins."""
    theta = np.full((rounds, 2), 0.5)
    theta[: rounds // 4, 0] = 1.0
    theta[rounds // 4 :, 0] = 0.0
    return sp.Instance(np.eye(2), theta)


# Within two million an action is given up and won back all the same, at either rate; ten million are a long life.
@pytest.mark.parametrize("rounds", [2_000_000, pytest.param(10_000_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "learner", [sp.StateEXP3(), sp.StateEXP3(rate=0.05), sp.ActionEXP3(), sp.ActionEXP3(rate=0.05)], ids=repr
)
def test_millions_of_rounds_and_back(learner, rounds):
    run = sp.simulate(reversal(rounds), learner, 10, seed=0)
    plays = run.plays(every=rounds // 200)
    assert np.isfinite(plays).all()
    assert (plays > 0).all()
    assert plays[30:50, 0].mean() < 0.1  # it had given the action up
    assert plays[-1, 0] > 0.99  # and came back
    assert (run.actions[-rounds // 100 :] == 0).mean() > 0.99
    assert np.isfinite(run.regret)


RATED = [cls for cls in sp.learners.REGISTRY.values() if "rate" in cls.__dataclass_fields__]


@pytest.mark.parametrize("rate", [1e-12, 1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("cls", RATED, ids=lambda cls: cls.__name__)
def test_rates_from_tiny_to_huge(cls, rate):
    for K in (3, 40):
        P, theta = textbook.random_instance(K, K=K, S=4, T=900)
        run = sp.simulate(sp.Instance(P, theta), cls(rate=rate), 5, seed=1)
        plays = run.plays()
        assert np.isfinite(plays).all()
        assert (plays > 0).all()  # no action loses its support
        np.testing.assert_allclose(plays.sum(axis=1), 1, atol=1e-12)
        assert np.isfinite(run.regret)
    if rate <= 1e-6 and cls is not sp.OptimisticStale:
        np.testing.assert_allclose(plays, 1 / K, rtol=0.05)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("shift", [False, True])
def test_hybrid_solver_over_scales(scale, shift):
    P, theta = textbook.random_instance(1, K=30, S=4, T=300)
    for delay in (0, 5, 100):
        run = sp.simulate(sp.Instance(P, theta), sp.ZimmertSeldin(scale=scale, shift=shift), delay, seed=1)
        plays = run.plays()
        assert (plays > 0).all()
        np.testing.assert_allclose(plays.sum(axis=1), 1, atol=1e-12)
        if scale < 1e9:  # there the textbook's own formula overflows
            slow = textbook.simulate(P, theta, textbook.ZimmertSeldin, delay, 1, scale=scale, shift=shift)
            np.testing.assert_allclose(plays[:150], slow[3][:150], atol=1e-7)


def test_hybrid_solver_solves_its_equations():
    """x is stationary: L_a + mu = B y_a/2 + (2/rate) log y_a with one mu, and sums to 1, after jumps of any size."""
    K, T, d = 50, 1_000, 3
    player = sp.ZimmertSeldin().player(np.full((K, 2), 0.5), T, d)
    rng, totals = np.random.default_rng(0), np.zeros(K)
    rate = np.sqrt(np.log(K) / (d * T))
    for t in range(300):
        decision = player.act(rng.random())
        x = player.play()
        y = 1 / np.sqrt(x)
        mu = np.sqrt(t + 1) * y / 2 + 2 / rate * np.log(y) - totals
        assert abs(x.sum() - 1) < 1e-12
        assert np.ptp(mu) < 1e-6 * max(1.0, np.abs(mu).max())
        player.observe(decision, 0)
        player.update(decision, 1.0)
        totals[decision.action] += 1 / decision.probability


def test_pooled_charges_stay_numbers_where_a_probability_underflows():
    """u = 0 takes the first action and state however unlikely: q underflows to 0, and 0/0 must not enter."""
    P = np.array([[1e-30, 1.0], [0.0, 1.0]])
    player = sp.StateEXP3(rate=1e3).player(P)
    for loss in (1.0, 0.0, 1.0, 0.0):
        for state in (1, 0):
            decision = player.act(0.0)
            assert decision.action == 0
            player.observe(decision, state)
            player.update(decision, loss)
    assert np.isfinite(player.memory.charges).all()
    assert np.isfinite(player.memory.weights.totals).all()
    player.act(0.5)
    assert np.isfinite(player.play()).all()


def linear(tree):
    """The plain weights of the same totals."""
    weights = start_weights(tree.totals.shape[1], tree.rate, tree.mixing)
    weights.totals[0] = tree.totals[0]
    refresh(weights, 0)
    return weights


@pytest.mark.parametrize("K", [1, 2, 15, 16, 17, 255, 256, 257, 1000, 4096, 4097, 5000])
@pytest.mark.parametrize("mixing", [0.0, 0.05, 1.0])
def test_tree_plays_as_plain_weights(K, mixing):
    rng = np.random.default_rng(K)
    tree, plain = start_tree(K, 0.3, mixing), start_weights(K, 0.3, mixing)
    x, y = np.empty(K), np.empty(K)
    moved = False
    for step in range(400):
        action = int(rng.integers(K)) if step % 3 else int(np.argmin(tree.totals[0]))
        amount = float(rng.choice([0.0, 0.5, 3.0, 400.0]))
        reference = tree.references[0]
        tree_charge(tree, 0, action, amount)
        moved |= tree.references[0] != reference
        charge(plain, 0, np.eye(1, K, action)[0], amount)
        if step % 20 == 0:
            refresh(plain, 0)
            tree_distribution(tree, 0, x)
            distribution(plain, 0, y)
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
            np.testing.assert_allclose(x, (1 - mixing) * textbook.softmin(tree.totals[0], 0.3) + mixing / K, atol=1e-12)
            assert tree_probability(tree, 0, action) == x[action]
            u = rng.random(50)
            assert [tree_draw(tree, 0, v) for v in u] == [draw(plain, 0, v) for v in u]
            assert tree_draw(tree, 0, 1.0) < K
    assert moved or K > 17  # small trees had to move their reference
    tree_distribution(tree, 0, y)
    rebuild(tree, 0)
    tree_distribution(tree, 0, x)
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        tree_sum(tree, 0), np.exp(-0.3 * np.minimum(tree.totals - tree.totals.min(), 700 / 0.3)).sum()
    )


@pytest.mark.parametrize("mixing", [0.0, 0.1])
@pytest.mark.parametrize("K", [3, 100, 5000])
def test_tree_and_linear_runs_have_the_same_actions(K, mixing):
    """Safe-Pool that abstains is action-level EXP3 on plain weights."""
    P, theta = textbook.random_instance(K, K=K, S=3, T=1_500)
    instance = sp.Instance(P, theta)
    tree = sp.simulate(instance, sp.ActionEXP3(mixing=mixing), 4, seed=3)
    plain = sp.simulate(instance, sp.SafePool(mixing=mixing), 4, seed=3)
    np.testing.assert_array_equal(tree.actions, plain.actions)
    np.testing.assert_allclose(tree.plays(100), plain.plays(100), rtol=0, atol=1e-12)
