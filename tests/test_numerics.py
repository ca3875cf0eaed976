"""Long runs and extreme rates."""

import numpy as np
import pytest

import statepool as sp
import textbook


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
    policies = run.policies(every=rounds // 200)
    assert np.isfinite(policies).all()
    assert (policies > 0).all()
    assert policies[30:50, 0].mean() < 0.1  # it had given the action up
    assert policies[-1, 0] > 0.99  # and came back
    assert (run.actions[-rounds // 100 :] == 0).mean() > 0.99
    assert np.isfinite(run.regret)


RATED = [cls for cls in sp.learners.REGISTRY.values() if "rate" in cls.__dataclass_fields__]


@pytest.mark.parametrize("rate", [1e-12, 1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("cls", RATED, ids=lambda cls: cls.__name__)
def test_rates_from_tiny_to_huge(cls, rate):
    for K in (3, 40):
        P, theta = textbook.random_instance(K, K=K, S=4, T=900)
        run = sp.simulate(sp.Instance(P, theta), cls(rate=rate), 5, seed=1)
        policies = run.policies()
        assert np.isfinite(policies).all()
        assert (policies > 0).all()  # no action loses its support
        np.testing.assert_allclose(policies.sum(axis=1), 1, atol=1e-12)
        assert np.isfinite(run.regret)
    if rate <= 1e-6 and cls is not sp.learners.OptimisticStale:
        np.testing.assert_allclose(policies, 1 / K, rtol=0.05)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("shift", [False, True])
def test_hybrid_solver_over_scales(scale, shift):
    P, theta = textbook.random_instance(1, K=30, S=4, T=300)
    for delay in (0, 5, 100):
        run = sp.simulate(sp.Instance(P, theta), sp.learners.ZimmertSeldin(scale=scale, shift=shift), delay, seed=1)
        policies = run.policies()
        assert (policies > 0).all()
        np.testing.assert_allclose(policies.sum(axis=1), 1, atol=1e-12)
        if scale < 1e9:  # there the textbook's own formula overflows
            slow = textbook.simulate(P, theta, textbook.ZimmertSeldin, delay, 1, scale=scale, shift=shift)
            np.testing.assert_allclose(policies[:150], slow[3][:150], atol=1e-7)


def test_hybrid_solver_solves_its_equations():
    """x is stationary: L_a + mu = B y_a/2 + (2/rate) log y_a with one mu, and sums to 1, after jumps of any size."""
    K, T, d = 50, 1_000, 3
    player = sp.learners.ZimmertSeldin().player(np.full((K, 2), 0.5), T, d)
    rng, totals = np.random.default_rng(0), np.zeros(K)
    rate = np.sqrt(np.log(K) / (d * T))
    for t in range(300):
        decision = player.act(rng.random())
        x = player.policy()
        y = 1 / np.sqrt(x)
        mu = np.sqrt(t + 1) * y / 2 + 2 / rate * np.log(y) - totals
        assert abs(x.sum() - 1) < 1e-12
        assert np.ptp(mu) < 1e-6 * max(1.0, np.abs(mu).max())
        player.observe(decision, 0)
        player.update(decision, 1.0)
        totals[decision.action] += 1 / decision.probability


def test_pooled_estimates_stay_numbers_where_a_probability_underflows():
    """u = 0 takes the first action and state however unlikely: q underflows to 0, and 0/0 must not enter."""
    P = np.array([[1e-30, 1.0], [0.0, 1.0]])
    player = sp.StateEXP3(rate=1e3).player(P)
    for loss in (1.0, 0.0, 1.0, 0.0):
        for state in (1, 0):
            decision = player.act(0.0)
            assert decision.action == 0
            player.observe(decision, state)
            player.update(decision, loss)
    assert np.isfinite(player.memory.losses).all()
    player.act(0.5)
    assert np.isfinite(player.policy()).all()
