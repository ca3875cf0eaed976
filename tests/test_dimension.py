"""The certified bracket against an independent search, its invariants, and what it refuses."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maps import funnel, independent_search, overlapping, random_map, values
from statepool.dimension import Bracket, bracket, effective, estimate
from statepool.dimension.cells import check, coarse_bound, column_maxima, relax
from statepool.dimension.search import Search, root

WORKED = np.array([[0.8, 0.2], [0.4, 0.6], [0.0, 1.0]])


def test_worked_example_of_the_paper():
    assert effective(WORKED, [0.5, 0.25, 0.25]) == pytest.approx(1.44)


def test_unreached_states_are_left_out():
    assert effective(np.eye(3), [0.5, 0.5, 0]) == 2


def test_estimate_draws_as_published():
    P, rng = funnel(0, 30, 6), np.random.default_rng(3)
    largest = 1.0
    for _ in range(20):
        concentration = rng.choice([0.2, 1.0, 5.0])
        x = rng.dirichlet(np.ones(30) * concentration)
        largest = max(largest, values(P, x[None])[0])
    assert estimate(P, np.random.default_rng(3), 20) == pytest.approx(largest, rel=1e-14)


@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(30, 60))])
def test_brackets_hold_and_close(seed):
    P = random_map(seed)
    found = bracket(P, gap=0.01)
    assert independent_search(P, seed) <= found.upper
    assert found.lower <= found.upper <= min(P.shape)
    assert found.lower == pytest.approx(effective(P, found.play), rel=1e-12)
    assert found.play.min() >= 0
    assert found.play.sum() == pytest.approx(1, abs=1e-12)
    assert found.reached
    assert found.upper <= found.lower * 1.01


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_relabelling_and_merging(seed, other):
    P, rng = random_map(seed), np.random.default_rng(other)
    whole = bracket(P, gap=0.03)
    shuffled = bracket(P[rng.permutation(P.shape[0])][:, rng.permutation(P.shape[1])], gap=0.03)
    assert max(whole.lower, shuffled.lower) <= min(whole.upper, shuffled.upper)
    if P.shape[1] > 2:
        merged = np.column_stack([P[:, 0] + P[:, 1], P[:, 2:]])
        assert bracket(merged, gap=0.03).lower <= whole.upper
    fewer = P[rng.permutation(P.shape[0])[: max(1, P.shape[0] // 2)]]
    assert bracket(fewer, gap=0.03).lower <= whole.upper


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0.01, 1.5))
def test_a_cell_bounds_every_play_inside_it(seed, other, width):
    """Attack single certificates: cells drawn around a play, and mixtures of that play that stay inside."""
    P, rng = random_map(seed), np.random.default_rng(other)
    P = P[:, P.max(axis=0) > 0]
    K, S = P.shape
    M = column_maxima(P) * (1 + 1e-8)
    x = rng.dirichlet(np.full(K, rng.choice([0.1, 1.0])))
    corners = np.maximum((x @ P) * np.exp(width * rng.normal(size=(S, S))), 1e-9)
    corners /= corners.sum(axis=1, keepdims=True)
    if np.linalg.cond(corners) > 1e6:
        return
    upper, *_ = relax(P, P * (M - P), M, corners, 0.0, 0, rng.random(K) < 0.7)
    X = np.vstack([rng.dirichlet(np.full(K, c), size=300) for c in (0.05, 0.3, 1.0)])
    X = np.vstack([X, x, *(x + t * (X[::3] - x) for t in (0.3, 0.1, 0.03, 0.01))])
    inside = np.linalg.solve(corners.T, (X @ P).T).min(axis=0) >= 0
    if inside.any():
        assert values(P, X[inside]).max() <= upper


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0, 1e6))
def test_any_multipliers_whatever_give_a_bound(seed, other, size):
    """The solver is not trusted: nonsense in its place must still come out as a bound."""
    P, rng = random_map(seed), np.random.default_rng(other)
    P = P[:, P.max(axis=0) > 0]
    M = column_maxima(P) * (1 + 1e-8)
    pi = size * rng.normal(size=P.shape[1] ** 2 + 1)
    bound, _ = check(P, P * (M - P), M, root(P), pi, 0)
    assert bound >= values(P, rng.dirichlet(np.full(P.shape[0], 0.2), size=500)).max()


@pytest.mark.parametrize("nonsense", [np.nan, np.inf, -np.inf, 1e308])
def test_multipliers_that_are_no_numbers_prove_nothing(nonsense):
    P = random_map(5)
    M = column_maxima(P) * (1 + 1e-8)
    for place in range(P.shape[1] ** 2):
        pi = np.zeros(P.shape[1] ** 2 + 1)
        pi[place] = nonsense
        bound, _ = check(P, P * (M - P), M, root(P), pi, 0)
        assert bound > values(P, np.eye(P.shape[0])).max()


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200, 1e-100, 1e-30, 1e-17, 1e-12, 1e-9, 1e-6])
def test_tiny_probabilities(tiny):
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(4), size=12)
    P[3:6, 1] *= tiny
    P[:, 2] *= tiny
    P[7:, 0] = 0
    P[8] = [0, tiny, 0, 1]
    P /= P.sum(axis=1, keepdims=True)
    found = bracket(P, gap=0.02)
    assert found.reached
    assert independent_search(P, 0) <= found.upper


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_coarse_bounds_hold(seed):
    P = random_map(seed)
    upper, name = coarse_bound(P, column_maxima(P), P.shape[0])
    assert independent_search(P, seed, 50) <= upper
    assert name


@pytest.mark.parametrize("S", [1, 2, 5, 9])
def test_deterministic_onto_maps_are_exact(S):
    found = bracket(np.eye(S)[np.r_[np.arange(S), np.arange(S) // 2]])
    assert (found.lower, found.upper, found.reached) == (S, S, True)


@pytest.mark.parametrize("row", [[1.0], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
def test_equal_rows_are_exact(row):
    found = bracket(np.tile(row, (7, 1)))
    assert (found.lower, found.upper) == (1, 1)


def test_supremum_that_no_play_attains():
    """Rows (1, 0) and (1-p, p): v tends to 1 + p as the second's mass vanishes."""
    found = bracket([[1.0, 0.0], [0.4, 0.6]], gap=1e-4)
    assert found.lower <= 1.6 <= found.upper <= found.lower * 1.0001


def test_the_funnel_lies_above_its_published_estimate():
    found = bracket(funnel(0, 200, 6))
    assert found.reached
    assert found.lower == pytest.approx(2.2439, abs=5e-5)


@pytest.mark.parametrize("overlap", [0.25, 0.5])
def test_eight_overlapping_states(overlap):
    P = overlapping(overlap)
    found = bracket(P, gap=0.05)
    assert found.reached
    assert independent_search(P, 0) <= found.upper


def test_results_repeat_exactly():
    P = random_map(11)
    first, second = (dataclasses.asdict(bracket(P, gap=0.002)) for _ in range(2))
    assert (first.pop("play") == second.pop("play")).all()
    assert first.pop("seconds") >= 0
    assert second.pop("seconds") >= 0
    assert first == second


def test_running_out_of_time_says_so():
    found = bracket(overlapping(0.0), gap=1e-6, seconds=0)
    assert not found.reached
    assert 1 <= found.lower <= found.upper <= 8


def test_running_out_of_work_says_so(monkeypatch):
    monkeypatch.setattr("statepool.dimension.search.WORK", 0)
    found = bracket(overlapping(0.0), gap=1e-6)
    assert not found.reached
    assert found.lower <= found.upper


def test_time_spent_never_widens_a_bracket():
    P = overlapping(0.0)
    P = P / P.sum(axis=1, keepdims=True)
    search = Search(P, 40, 0.05, float("inf"))
    coarse = search.upper
    search.run()
    assert search.upper <= coarse


def test_bracket_is_frozen():
    found = bracket(WORKED)
    assert isinstance(found, Bracket)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.upper = 0


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[0.5, 0.6]], "P: row 0 sums to 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], r"P: entry \(1, 1\) is -0.5"),
        ([[0.5, np.nan]], r"P: entry \(0, 1\) is nan"),
        ([[0.5, np.inf]], r"P: entry \(0, 1\) is inf"),
        ([0.5, 0.5], r"P: has shape \(2,\)"),
        (np.zeros((0, 2)), r"P: has shape \(0, 2\)"),
        ([["a", "b"]], "P: is not a table"),
    ],
)
def test_bad_maps_are_refused(P, message):
    for call in (
        lambda: bracket(P),
        lambda: effective(P, [1.0]),
        lambda: estimate(P, np.random.default_rng(0), 1),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("x", "message"),
    [([0.5, 0.5], "x: has shape"), ([0.5, 0.6, -0.1], "x: entry 2"), ([0.5, 0.5, 0.5], "x: sums to 1.5")],
)
def test_bad_plays_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        effective(WORKED, x)


@pytest.mark.parametrize("arguments", [{"gap": 0}, {"gap": np.nan}, {"seconds": -1}, {"seconds": "soon"}])
def test_bad_limits_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        bracket(WORKED, **arguments)


def test_the_map_given_is_left_alone():
    P = overlapping(0.5)
    before = P.copy()
    bracket(P, gap=0.1)
    assert (before == P).all()
