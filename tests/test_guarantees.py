"""The theorems as functions: against the paper's printed figures, brute force, and what runs actually do."""

from decimal import Decimal, localcontext
from itertools import product
from math import comb, e, log, pi, sqrt

import numpy as np
import pytest

import statepool as sp
from statepool import guarantees
from statepool.rates import default_rate, largest_covered_rate


def printed_form(n_actions, horizon, delay, budget):
    """Theorem 1 as the paper prints it."""
    return sqrt(2 * (3.3 * budget + 2 * delay * horizon) * log(n_actions)) + e * (delay + 1) * log(n_actions) + delay


def test_theorem_1_is_smallest_at_its_own_rate_and_below_the_printed_form():
    problem = {"n_actions": 200, "horizon": 20_000, "delay": 50, "budget": 1.3 * 20_000}
    best = guarantees.theorem_1(**problem)
    assert best.covered
    for factor in (0.5, 0.9, 1.1):
        assert guarantees.theorem_1(**problem, rate=best.rate * factor).value >= best.value
    assert best.value <= printed_form(**problem)


def test_theorem_1_by_hand():
    found = guarantees.theorem_1(n_actions=8, horizon=1_000, delay=3, budget=500.0, rate=0.01)
    assert found.value == pytest.approx(log(8) / 0.01 + 0.005 * (3.3 * 500 + 2 * 3 * 1_000) + 3)
    assert found.covered
    assert not guarantees.theorem_1(8, 1_000, 3, 500.0, rate=1 / (e * 4) * 1.001).covered


def test_the_cap_binds_at_a_long_delay():
    found = guarantees.theorem_1(n_actions=10, horizon=100, delay=90, budget=10.0)
    assert found.rate == 1 / (e * 91)
    assert found.value <= printed_form(10, 100, 90, 10.0)


def test_one_action_has_nothing_to_learn():
    assert guarantees.theorem_1(n_actions=1, horizon=100, delay=0, budget=0.0).value == 0


@pytest.mark.parametrize(("n_signs", "n_walks"), [(1, 1), (4, 1), (3, 2), (5, 3)])
def test_best_walk_by_enumeration(n_signs, n_walks):
    sums = [sum(signs) for signs in product((-1, 1), repeat=n_signs)]
    expected = np.mean([max(0, *walks) for walks in product(sums, repeat=n_walks)])
    assert guarantees.expected_best_walk(n_signs, n_walks) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_signs", [1, 2, 3, 10, 39, 100, 301, 1_000])
@pytest.mark.parametrize("n_walks", [1, 2, 7, 1_000, 10**6])
def test_best_walk_to_the_last_digits(n_signs, n_walks):
    """The sum over values, in sixty digits: P(all walks <= value) = P(one walk <= value)^n_walks."""
    with localcontext(prec=60):
        below, before, expected = 0, Decimal(0), Decimal(0)
        for k in range(n_signs + 1):
            below += comb(n_signs, k)
            power = (Decimal(below) / 2**n_signs) ** n_walks
            expected += max(2 * k - n_signs, 0) * (power - before)
            before = power
    assert guarantees.expected_best_walk(n_signs, n_walks) == pytest.approx(float(expected), rel=1e-12)


def test_best_walk_of_a_long_horizon_is_the_normal_limit():
    """A thousand million signs: by whole numbers of as many bits it would never end."""
    for n_walks, limit in ((1, 1 / sqrt(2 * pi)), (2, (1 + sqrt(2)) / (2 * sqrt(pi)))):
        found = guarantees.expected_best_walk(10**9, n_walks) / sqrt(10**9)
        assert found == pytest.approx(limit, rel=1e-4)


def test_theorem_2_is_what_learners_pay_on_its_construction():
    horizon, delay, J = 4_000, 100, 4
    bound, amplitude = guarantees.theorem_2(horizon, delay, drift=40.0, n_drifting=J), sqrt(40.0 / horizon) / 2
    regrets, drifts = [], []
    for seed in range(200):
        instance = sp.families.hard(seed, 10, J, horizon, delay, amplitude)
        regrets.append(sp.simulate(instance, sp.PooledGreedy(), delay, seed + 1).regret)
        drifts.append(instance.e2(delay))
    assert max(drifts) <= 40.0 + 1e-9
    error = np.std(regrets, ddof=1) / sqrt(len(regrets))
    assert abs(np.mean(regrets) - bound) < 3 * error
    assert 0.1 < bound / sqrt(delay * 40.0 * min(1 + log(J), horizon / delay)) < 1


def test_theorem_3_bounds_every_run_of_study_1():
    bound = guarantees.theorem_3(n_actions=40, delay=50, budget=4 * 10_000)
    assert bound.value == pytest.approx(sqrt(2 * 51 * 4 * 10_000 * log(40)))
    merged = guarantees.theorem_4(n_actions=40, delay=50, budget=4 * 10_000, spread=10.0)
    assert merged.value == pytest.approx(bound.value + 20)


def test_rate_rules_are_the_papers_on_the_funnel():
    for delay, default, cap in ((10, "0.0058", "0.0334"), (50, "0.0031", "0.0072"), (200, "0.0016", "0.0018")):
        rates = default_rate(200, 6, 20_000, delay), largest_covered_rate(delay)
        assert tuple(f"{rate:.4f}" for rate in rates) == (default, cap)
        rules = [guarantees.theorem_1(200, 20_000, delay, 1.3 * 20_000, rate) for rate in (None, *rates)]
        assert all(rule.covered for rule in rules)
        assert rules[0].value == min(rule.value for rule in rules)


def test_drift_lemma_holds_at_the_cap_and_is_broken_far_above_it():
    instance = sp.families.funnel(0, n_actions=30, horizon=2_000)
    assert guarantees.drift_lemma(instance, delay=10, seed=1, rate=1 / (e * 11)) <= 1 + 1 / 10
    assert guarantees.drift_lemma(instance, delay=10, seed=1, rate=5.0) > 1 + 1 / 10


def test_regime_is_the_papers_on_the_funnel():
    assert [guarantees.interleaving_pays(1.97, 200, d) for d in (10, 50, 200)] == [True, False, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: guarantees.theorem_1(0, 10, 1, 1.0), "n_actions: is 0"),
        (lambda: guarantees.theorem_1(2, 10, -1, 1.0), "delay: is -1"),
        (lambda: guarantees.theorem_1(2, 10, 1, -1.0), "budget: is -1.0"),
        (lambda: guarantees.theorem_1(2, 10, 1, 1.0, rate=0.0), "rate: is 0.0"),
        (lambda: guarantees.theorem_2(10, 6, 1.0, 1), "expected at most half the horizon, 5"),
        (lambda: guarantees.theorem_2(10, 5, 9.0, 1), "drift: is 9.0"),
        (lambda: guarantees.theorem_4(2, 1, 1.0, float("nan")), "spread: is nan"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("delay", "horizon"), [(0, 1), (0, 9), (3, 1), (3, 4), (3, 9), (20, 9)])
def test_the_wait_for_one_delay_is_that_of_as_many_equal_ones(delay, horizon):
    counted = sum(min(t, delay) for t in range(horizon))
    assert guarantees.total_wait(delay, horizon) == guarantees.total_wait([delay] * horizon, horizon) == counted
