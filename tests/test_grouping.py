"""Checks of `grouping`: exact cuts by enumeration, nesting, determinism, the unread tail, edges, bad input."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.special import xlogy

import statepool as sp
from statepool import grouping
from statepool.grouping import (
    choose_groups,
    likeliest_cuts,
    merge_states,
    nested_groupings,
    published_rule,
    sampled_dimension,
)


def likelihood(groups, counts, losses):
    n, w = np.bincount(groups, counts), np.bincount(groups, losses)
    return float((xlogy(w, w) + xlogy(n - w, n - w) - xlogy(n, n)).sum())


def test_cuts_are_the_likeliest_of_all_runs():
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = rng.integers(0, 30, 7).astype(float)
        losses = rng.binomial(counts.astype(int), rng.random(7)).astype(float)
        order = np.argsort((losses + 1) / (counts + 2), kind="stable")
        for size, cut in enumerate(likeliest_cuts(counts, losses), start=1):
            assert np.array_equal(np.unique(cut), np.arange(size))
            best = -np.inf
            for edges in combinations(range(1, 7), size - 1):
                groups = np.empty(7, int)
                groups[order] = np.isin(np.arange(7), edges).cumsum()
                best = max(best, likelihood(groups, counts, losses))
            assert likelihood(cut, counts, losses) == pytest.approx(best)


def test_nested_groupings_merge_one_closest_pair_at_a_time():
    found = nested_groupings(np.array([0.9, 0.1, 0.15, 0.5]))
    assert [g.tolist() for g in found] == [[3, 0, 1, 2], [2, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]


def prefix(seed=0, n=400):
    instance = sp.families.clustered(seed, horizon=2000)
    run = sp.simulate(sp.Instance(instance.P, instance.theta[:n]), sp.StateEXP3(copies="d+1"), 5, seed)
    return instance.P, run.states, run.outcomes


def test_same_input_same_groups_and_the_tail_is_not_read():
    P, states, outcomes = prefix()
    first = choose_groups(P, states, outcomes, 2000, 5)
    assert np.array_equal(np.unique(first), np.arange(first.max() + 1))
    flipped = outcomes.copy()
    flipped[-5:] = 1 - flipped[-5:]
    assert np.array_equal(first, choose_groups(P, states, flipped, 2000, 5))
    assert np.array_equal(first, choose_groups(P, states, outcomes, 2000, 5))


def test_rehearsal_in_batches_has_the_same_shape(monkeypatch):
    P, states, outcomes = prefix()
    monkeypatch.setattr(grouping, "_ENTRIES", 1 << 12)
    assert choose_groups(P, states, outcomes, 2000, 5, rehearsals=16).shape == (16,)


def test_states_far_apart_stay_apart():
    rng = np.random.default_rng(1)
    half = rng.dirichlet(0.5 * np.ones(2), size=10)
    P = np.repeat(half, 2, axis=1) / 2
    states = rng.integers(4, size=2000)
    outcomes = (rng.random(2000) < np.array([0.05, 0.05, 0.95, 0.95])[states]).astype(float)
    groups = choose_groups(P, states, outcomes, 10_000, 10)
    assert groups[0] != groups[2]
    assert groups[1] != groups[3]


def test_merging_never_raises_the_sampled_dimension():
    P, states, outcomes = prefix()
    dimension = sampled_dimension(len(P))
    widths = [dimension(merge_states(P, g)) for g in nested_groupings(np.linspace(0, 1, 16) ** 2)]
    assert all(a >= b - 1e-12 for a, b in pairwise(widths))
    assert published_rule(P, states, outcomes, 2000, 5).shape == (16,)


def test_nothing_to_choose_is_identity():
    assert choose_groups(np.ones((3, 1)), [0, 0], [0, 1], 10, 1).tolist() == [0]
    assert choose_groups([[0.5, 0.5]], [0, 1], [0, 1], 10, 1).tolist() == [0, 1]
    assert choose_groups(np.eye(2), [0, 1], [0, 1], 2, 0).tolist() == [0, 1]
    assert choose_groups(np.eye(2), [0, 1], [0, 1], 50, 5).size == 2  # nothing has arrived


@pytest.mark.parametrize(
    ("states", "outcomes", "horizon", "delay"),
    [([0, 2], [0, 1], 9, 0), ([0], [0, 1], 9, 0), ([0.5, 1], [0, 1], 9, 0), ([0, 1], [0, 2], 9, 0),
     ([0, 1], [0, np.nan], 9, 0), ([0, 1], [0, 1], 1, 0), ([0, 1], [0, 1], 9, -1), ([], [], 9, 0)],
)  # fmt: skip
def test_bad_input_is_refused(states, outcomes, horizon, delay):
    with pytest.raises(ValueError, match="expected"):
        choose_groups(np.eye(2), states, outcomes, horizon, delay)
