"""The learners by action against textbook versions in plain Python."""

from typing import Any

import numpy as np
import pytest

import statepool as sp
from statepool.learners.contract import Played, Problem
from statepool.learners.stepper import Stepper
from statepool.stream import Stream


def textbook(choose: Any, run: Any, delay: int) -> list[int]:
    """The actions that a rule on counts and sums would have led with, on the outcomes of a run."""
    K = run.instance.n_actions
    counts, sums, squares = np.zeros(K), np.zeros(K), np.zeros(K)
    best = []
    for t in range(run.actions.size):
        r = t - delay - 1
        if r >= 0:
            counts[run.actions[r]] += 1
            sums[run.actions[r]] += run.outcomes[r]
            squares[run.actions[r]] += run.outcomes[r] ** 2
        best.append(choose(counts, sums, squares, run.actions[:t]))
    return best


def greedy(counts: Any, sums: Any, squares: Any, played: Any) -> int:
    return int(((sums + 1) / (counts + 2)).round(10).argmin())


def ucb(counts: Any, sums: Any, squares: Any, played: Any) -> int:
    if (counts == 0).any():
        often = np.bincount(played, minlength=counts.size).astype(float)
        return int(np.where(counts == 0, often, np.inf).argmin())
    term = np.log(max(counts.sum(), 2.0)) / counts
    mean = sums / counts
    largest = mean * (1 - mean)
    spread = np.minimum((np.maximum(squares - counts * mean**2, 0) + 2 * largest) / (counts + 2), largest)
    return int((mean - np.sqrt(term * np.minimum(0.25, spread + np.sqrt(2 * term)))).round(10).argmin())


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize(("learner", "rule"), [(sp.ActionGreedy(exploration=0.2), greedy), (sp.ActionUCB(), ucb)])
def test_leads_with_the_textbook_action(learner: Any, rule: Any, delay: int) -> None:
    run = sp.simulate(sp.families.band(seed=1, n_actions=5, horizon=300), learner, delay=delay, seed=4)
    led = run.policies().argmax(axis=1)
    assert (led == textbook(rule, run, delay)).mean() > 0.99  # ties within rounding may go either way


def test_thompson_plays_as_often_as_the_posterior_says() -> None:
    instance = sp.families.band(seed=1, n_actions=4, horizon=200)
    run = sp.simulate(instance, sp.ActionThompson(samples=4_000), delay=0, seed=4)
    counts, sums = np.zeros(4), np.zeros(4)
    np.add.at(counts, run.actions[:199], 1)
    np.add.at(sums, run.actions[:199], run.outcomes[:199])
    draws = np.random.default_rng(0).beta(1 + sums, 1 + counts - sums, (40_000, 4))
    expected = np.bincount(draws.argmin(axis=1), minlength=4) / 40_000
    np.testing.assert_allclose(run.policies()[199], expected, atol=0.04)


@pytest.mark.parametrize("learner", [sp.ActionGreedy(), sp.ActionUCB(), sp.ActionThompson(samples=1)])
def test_learns_by_context(learner: Any) -> None:
    P = np.full((2, 3, 1), 1.0)
    effects = np.zeros((2, 3, 1))
    effects[0, 1] = effects[1, 2] = -0.4
    contexts = np.random.default_rng(0).integers(2, size=3_000)
    instance = sp.Instance(P, np.full((3_000, 1), 0.5), effects, contexts)
    run = sp.simulate(instance, learner, delay=5, seed=2)
    late = slice(2_000, None)
    assert (run.actions[late][contexts[late] == 0] == 1).mean() > 0.8
    assert (run.actions[late][contexts[late] == 1] == 2).mean() > 0.8


def test_revenue_counts_as_its_variance_says() -> None:
    """Revenue varies less than a coin: Thompson sampling is sure of the better action sooner."""
    P, theta = np.eye(2), np.tile([0.80, 0.78], (3_000, 1))
    coins = sp.Instance(P, theta)
    revenue = sp.Instance(P, theta, gains=np.full((2, 2), 0.23))
    runs = [
        [sp.simulate(each, sp.ActionThompson(samples=1), delay=0, seed=s).regret for s in range(12)]
        for each in (coins, revenue)
    ]
    assert np.mean(runs[1]) < np.mean(runs[0])


@pytest.mark.parametrize("learner", [sp.ActionGreedy(), sp.ActionUCB(), sp.ActionThompson()])
def test_counts_stay_with_their_pair_when_actions_are_added(learner: Any) -> None:
    """Three contexts and two actions; a third action is added."""
    before = Problem(np.full((3, 2, 2), 0.5), None, 0, Stream.from_seed(0), has_contexts=True)
    after = Problem(np.full((3, 3, 2), 0.5), None, 0, Stream.from_seed(0), has_contexts=True)
    stepper = Stepper(learner, before)
    stepper.advance(0, 0.0)
    for context, action, loss in ((0, 1, 0.25), (1, 0, 0.5), (2, 1, 0.75)):
        played, nothing = Played(0, 0.0, action, 0, context, 0.0), np.zeros(0)
        stepper.see(played, nothing)
        stepper.learn(played, loss, nothing)
    grown = stepper.grow(after).memory
    expected = np.zeros((3, 3))
    expected[[0, 1, 2], [1, 0, 1]] = 0.25, 0.5, 0.75
    np.testing.assert_array_equal(grown.sums.reshape(3, 3), expected)
    np.testing.assert_array_equal(grown.played.reshape(3, 3), expected > 0)
    np.testing.assert_array_equal(grown.counts.reshape(3, 3), expected > 0)
