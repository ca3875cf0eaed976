"""How numbers are drawn: the order, the mean of exactly 0, two draws, generators, the side stream."""

import numpy as np
import pytest

import statepool as sp
import textbook
from statepool.stream import Stream, generator_of


def test_seeds_are_numpys_default_generator():
    stream = Stream.from_seed(7)
    np.testing.assert_array_equal(stream.uniforms(30), np.random.default_rng(7).random(30))
    np.testing.assert_array_equal(stream.uniforms(30), stream.uniforms(30))
    np.testing.assert_array_equal(stream.side_generator().random(9), np.random.default_rng((7, 1)).random(9))
    np.testing.assert_array_equal(Stream.from_seed(np.int32(7)).uniforms(3), stream.uniforms(3))


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_generators_are_read_from_where_they_stand(kind):
    generator = np.random.Generator(kind(3))
    generator.random(5)
    stream = Stream.from_seed(generator)
    side = stream.side_generator().random(4)
    first = stream.uniforms(10)
    np.testing.assert_array_equal(stream.uniforms(10), first)
    np.testing.assert_array_equal(stream.side_generator().random(4), side)
    np.testing.assert_array_equal(generator.random(10), first)
    # What the caller draws later does not reach a stream taken before.
    np.testing.assert_array_equal(stream.uniforms(10), first)
    assert not np.isin(side, first).any()


def test_instance_generators_go_on_from_where_they_stand():
    generator = np.random.default_rng(3)
    assert generator_of(generator) is generator
    np.testing.assert_array_equal(generator_of(3).random(4), np.random.default_rng(3).random(4))
    instance = sp.families.band(generator, n_actions=3, n_states=2, horizon=5)
    np.testing.assert_array_equal(instance.P, sp.families.band(3, n_actions=3, n_states=2, horizon=5).P)
    assert generator.random() != np.random.default_rng(3).random()


def consumed(P, theta, seed, draws):
    """Uniforms assigned by hand: which number each round's action, state and outcome must have used."""
    u, used = np.random.default_rng(seed).random(draws * len(theta)), 0
    rows = []
    for t in range(len(theta)):
        action = min(int(u[used] * len(P)), len(P) - 1)
        state = textbook.draw(P[action], u[used + 1]) if draws == 3 else int(P[action].argmax())
        used += draws - 1
        mean, outcome = theta[t, state], 0.0
        if mean > 0:
            outcome = float(u[used] > 1 - mean) if mean <= 0.5 else float(u[used] <= mean)
            used += 1
        rows.append((action, state, outcome))
    return np.array(rows).T, used


@pytest.mark.parametrize("draws", [2, 3])
def test_a_mean_of_exactly_zero_draws_nothing(draws):
    rng = np.random.default_rng(0)
    P = np.eye(3)[[0, 1, 2, 0, 1]] if draws == 2 else rng.dirichlet(np.ones(3), size=5)
    theta = rng.random((300, 3))
    theta[rng.random((300, 3)) < 0.4] = 0
    theta[rng.random((300, 3)) < 0.1] = 5e-324  # not exactly 0: draws a number
    expected, used = consumed(P, theta, 12, draws)
    assert used < draws * 300
    run = sp.simulate(sp.Instance(P, theta), sp.Uniform(), 2, seed=12, draws=draws)
    np.testing.assert_array_equal([run.actions, run.states, run.outcomes], expected)


def test_paired_arms_see_the_same_luck():
    """With means that are never 0, round t of every arm uses the numbers 3t, 3t+1, 3t+2."""
    P, theta = textbook.random_instance(0, T=200)
    theta = 0.1 + 0.8 * theta
    u = np.random.default_rng(4).random((200, 3))
    for learner in (sp.StateEXP3(), sp.ActionEXP3(), sp.PooledThompson(), sp.learners.BestState()):
        run = sp.simulate(sp.Instance(P, theta), learner, 3, seed=4)
        for t in range(200):
            assert run.states[t] == textbook.draw(P[run.actions[t]], u[t, 1])
            mean = theta[t, run.states[t]]
            assert run.outcomes[t] == float(u[t, 2] > 1 - mean if mean <= 0.5 else u[t, 2] <= mean)
