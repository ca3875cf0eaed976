"""The compiled loop against the slow textbook, and what a Run can tell."""

import numpy as np
import pytest

import statepool as sp
import textbook
from statepool.learners import find

LEARNERS = [
    (sp.StateEXP3, {}),
    (sp.StateEXP3, {"rate": 0.1, "mixing": 0.1}),
    (sp.StateEXP3, {"copies": 3, "rate": 0.2}),
    (sp.StateEXP3, {"copies": "d+1"}),
    (sp.StateEXP3, {"groups": (1, 0, 0, 1), "rate": 0.1}),
    (sp.StateEXP3, {"groups": (0, 0, 1, 2), "copies": 2, "mixing": 0.2}),
    (sp.ActionEXP3, {}),
    (sp.ActionEXP3, {"rate": 0.1, "mixing": 0.1}),
    (sp.ActionEXP3, {"copies": 4}),
    (sp.ActionEXP3, {"copies": "d+1", "mixing": 0.05}),
    (find("exp3-ix"), {}),
    (find("exp3-ix"), {"rate": 0.1}),
    (find("naive-sharing"), {}),
    (find("naive-sharing"), {"rate": 0.5}),
    (find("best-state"), {}),
    (find("plug-in"), {}),
    (find("plug-in"), {"smoothing": 1.0, "mixing": 0.1, "rate": 0.4}),
    (find("counted-denominator"), {"rate": 0.3}),
    (find("counted-denominator"), {"block": 50, "rate": 0.3}),
    (find("counted-denominator"), {"block": 51, "denominator": "predicted", "rate": 0.3}),
    (find("zimmert-seldin"), {}),
    (find("zimmert-seldin"), {"scale": 20.0}),
    (find("zimmert-seldin"), {"scale": 0.5, "shift": True}),
    (find("safe-pool"), {}),
    (find("safe-pool"), {"certified": False, "rate": 0.3, "mixing": 0.3}),
    (sp.PooledGreedy, {}),
    (sp.PooledGreedy, {"forgetting": 0.95, "exploration": 0.2}),
    (sp.PooledThompson, {}),
    (sp.PooledThompson, {"forgetting": 0.97}),
    (sp.Uniform, {}),
    (find("greedy-stale"), {}),
    (find("optimistic-stale"), {}),
    (find("optimistic-stale"), {"rate": 0.1}),
]
IDS = ["-".join([cls.__name__, *(f"{k}={v}" for k, v in settings.items())]) for cls, settings in LEARNERS]
T = 400


def ragged_delays(seed=0):
    """Out of order, several in a round, some at once, some never."""
    rng = np.random.default_rng(seed)
    delays = rng.integers(0, 40, size=T)
    delays[rng.random(T) < 0.1] = 10**6
    return delays


@pytest.mark.parametrize(("cls", "settings"), LEARNERS, ids=IDS)
def test_same_actions_as_the_textbook(cls, settings):
    for seed, delay in enumerate([0, 1, 7, ragged_delays()]):
        P, theta = textbook.random_instance(seed)
        run = sp.simulate(sp.Instance(P, theta), cls(**settings), delay, seed=100 + seed)
        slow = textbook.simulate(P, theta, getattr(textbook, cls.__name__), delay, 100 + seed, **settings)
        np.testing.assert_array_equal(run.actions, slow[0])
        np.testing.assert_array_equal(run.states, slow[1])
        np.testing.assert_array_equal(run.outcomes, slow[2])
        if np.ndim(delay) == 0 and cls.known_policy:
            np.testing.assert_allclose(run.policies(), slow[3], rtol=0, atol=1e-9)


@pytest.mark.parametrize("cls", [sp.StateEXP3, find("optimistic-stale"), find("greedy-stale")])
def test_direct_effects_reach_outcomes_and_oracles(cls):
    P, theta = textbook.random_instance(5)
    theta = 0.2 + 0.6 * theta
    effects = np.random.default_rng(1).uniform(-0.2, 0.2, P.shape)
    run = sp.simulate(sp.Instance(P, theta, effects), cls(), 6, seed=9)
    slow = textbook.simulate(P, theta, getattr(textbook, cls.__name__), 6, 9, effects=effects)
    np.testing.assert_array_equal(run.actions, slow[0])
    np.testing.assert_array_equal(run.outcomes, slow[2])


def test_large_number_of_actions_same_actions():
    P, theta = textbook.random_instance(3, K=333, S=5, T=300)
    for cls, settings in [(sp.StateEXP3, {"rate": 0.5}), (sp.ActionEXP3, {"rate": 0.05}), (find("zimmert-seldin"), {})]:
        run = sp.simulate(sp.Instance(P, theta), cls(**settings), 3, seed=4)
        slow = textbook.simulate(P, theta, getattr(textbook, cls.__name__), 3, 4, **settings)
        np.testing.assert_array_equal(run.actions, slow[0])


def test_two_draws():
    rng = np.random.default_rng(0)
    P = np.eye(4)[rng.integers(4, size=9)]
    theta = rng.random((300, 4))
    theta[::5] = 0
    for cls in (sp.StateEXP3, sp.ActionEXP3):
        run = sp.simulate(sp.Instance(P, theta), cls(), 5, seed=3, draws=2)
        slow = textbook.simulate(P, theta, getattr(textbook, cls.__name__), 5, 3, draws=2)
        np.testing.assert_array_equal(run.actions, slow[0])
        np.testing.assert_array_equal(run.outcomes, slow[2])


@pytest.mark.parametrize("delay", [0, 3, T - 2, T - 1, T, 10 * T])
@pytest.mark.parametrize(
    "learner", [sp.StateEXP3(), sp.StateEXP3(copies="d+1"), find("plug-in")(), find("optimistic-stale")()], ids=repr
)
def test_constant_array_equals_the_integer(learner, delay):
    instance = sp.Instance(*textbook.random_instance(11))
    one = sp.simulate(instance, learner, delay, seed=1)
    many = sp.simulate(instance, learner, np.full(T, delay), seed=1)
    np.testing.assert_array_equal(one.actions, many.actions)
    np.testing.assert_array_equal(one.outcomes, many.outcomes)


def test_zero_delay_is_undelayed_exp3():
    """Auer et al. 2002 as in any textbook: play, see the loss, update, play."""
    P, theta = textbook.random_instance(2)
    stream = iter(np.random.default_rng(8).random(3 * T))
    L, eta, actions = np.zeros(7), np.sqrt(2 * np.log(7) / (7 * T)), []
    for t in range(T):
        x = textbook.softmin(L, eta)
        a = textbook.draw(x, next(stream))
        s = textbook.draw(P[a], next(stream))
        p = theta[t, s]
        u = next(stream) if p > 0 else None
        X = 0 if p == 0 else (u > 1 - p if p <= 0.5 else u <= p)
        L[a] += X / x[a]
        actions.append(a)
    assert len(set(actions)) > 1
    np.testing.assert_array_equal(sp.simulate(sp.Instance(P, theta), sp.ActionEXP3(), 0, seed=8).actions, actions)


def brute_dimension(P, x):
    q = x @ P
    return sum((x @ P[:, s] ** 2) / q[s] for s in range(P.shape[1]) if q[s] > 0)


def test_run_tells_regret_dimension_and_plays():
    P, theta = textbook.random_instance(6)
    run = sp.simulate(sp.Instance(P, theta), sp.StateEXP3(rate=0.3), 9, seed=2)
    plays = textbook.simulate(P, theta, textbook.StateEXP3, 9, 2, rate=0.3)[3]
    c = theta @ P.T
    best = c.sum(axis=0).argmin()
    mine = c[np.arange(T), run.actions]
    np.testing.assert_allclose(run.loss, mine.sum(), rtol=1e-12)
    np.testing.assert_allclose(run.regret, mine.sum() - c.sum(axis=0).min(), rtol=1e-12)
    np.testing.assert_allclose(run.regret_path, np.cumsum(mine - c[:, best]), atol=1e-10)
    np.testing.assert_allclose(run.policies(), plays, atol=1e-12)
    np.testing.assert_allclose(run.policies(every=7), plays[::7], atol=1e-12)
    v = np.array([brute_dimension(P, x) for x in plays])
    assert v.std() > 0
    np.testing.assert_allclose(run.dimension_path, v, atol=1e-10)
    np.testing.assert_allclose(run.dimension, v.mean(), atol=1e-10)


def test_compare_pairs_arms_and_matches_simulate():
    made = []

    def family(seed):
        made.append(seed)
        return sp.Instance(*textbook.random_instance(seed, T=120))

    learners = {"state": sp.StateEXP3(), "action": sp.ActionEXP3(), "again": sp.StateEXP3()}
    families = {"a": family, "b": lambda seed: sp.families.band(seed, horizon=90)}
    got = sp.compare(families, learners, delays=(0, 5), seeds=range(3, 7), stream=50, jobs=2)
    assert sorted(made) == [3, 4, 5, 6]
    assert got.regret.shape == (2, 2, 3, 4)
    for f, make in families.items():
        for d in (0, 5):
            for name, learner in learners.items():
                alone = [sp.simulate(make(seed), learner, d, seed + 50).regret for seed in range(3, 7)]
                np.testing.assert_array_equal(got.of(f, name, d), alone)
    np.testing.assert_array_equal(got.of("a", "state", 5), got.of("a", "again", 5))
    difference = got.of("b", "action", 5) - got.of("b", "state", 5)
    gain, error = got.gain("b", "state", over="action", delay=5)
    np.testing.assert_allclose([gain, error], [difference.mean(), difference.std(ddof=1) / 2], rtol=1e-12)
    assert got.mean("b", "state", 5) == got.of("b", "state", 5).mean()
    assert np.isnan(
        sp.compare({"a": family}, learners, delays=0, seeds=[0]).gain("a", "state", over="action", delay=0)[1]
    )


def test_threads_share_an_instance_and_get_the_same_bits():
    shared = sp.families.funnel(0, n_actions=30, horizon=2_000)
    learners = {"state": sp.StateEXP3(), "thompson": sp.PooledThompson(), "safe": find("safe-pool")(certified=False)}
    one = sp.compare({"shared": lambda seed: shared}, learners, delays=(3,), seeds=range(6), jobs=1)
    many = sp.compare({"shared": lambda seed: shared}, learners, delays=(3,), seeds=range(6), jobs=4)
    np.testing.assert_array_equal(one.regret, many.regret)


def test_generator_seed_is_read_not_advanced():
    instance = sp.Instance(*textbook.random_instance(1))
    generator = np.random.default_rng(5)
    generator.random(17)
    before = generator.bit_generator.state
    runs = [sp.simulate(instance, learner, 4, generator) for learner in (sp.StateEXP3(), sp.StateEXP3())]
    assert generator.bit_generator.state == before
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    generator.random()
    moved = sp.simulate(instance, sp.StateEXP3(), 4, generator)
    assert (moved.actions != runs[0].actions).any()
    # A second run of the first still starts where the generator stood then.
    np.testing.assert_allclose(runs[0].policies().sum(axis=1), 1)
    np.testing.assert_array_equal(runs[0].dimension_path, runs[1].dimension_path)


def test_results_do_not_follow_later_changes_of_the_inputs():
    P, theta = textbook.random_instance(4)
    delays = ragged_delays()
    instance = sp.Instance(P, theta)
    run = sp.simulate(instance, sp.StateEXP3(), delays, seed=1)
    expected = sp.simulate(sp.Instance(P.copy(), theta.copy()), sp.StateEXP3(), delays.copy(), seed=1)
    P[:] = 1 / P.shape[1]
    theta[:] = 0.5
    delays[:] = 0
    assert run.regret == expected.regret
    np.testing.assert_array_equal(run.policies(50), expected.policies(50))
