"""Exposure: counts that fade, the delay curve, and unbiased means before any window has closed."""

from typing import Any

import numpy as np
import pytest

import statepool as sp
from statepool.learners.contract import Played, Problem, make_tables, rows_at
from statepool.learners.exposure import COEFFICIENT, READING, TAU, WEIGHT, fit_curve, start_clock
from statepool.learners.greedy_thompson_ucb import count_of, loss_of
from statepool.learners.stepper import Stepper
from statepool.stream import Stream

WINDOW = 1_000.0


def problem(**settings: Any) -> Problem:
    return Problem(np.eye(2), None, 5, Stream.from_seed(3), **settings)


def share(curve: Any, age: Any) -> Any:
    """F(age) by a fitted curve."""
    tau, weight = curve[TAU, 1:], curve[WEIGHT, 1:]
    whole = weight @ (1 - np.exp(-WINDOW / tau))
    return (1 - np.exp(-np.asarray(age)[:, None] / tau)) @ weight / whole


def lynden_bell(waits: Any, ages: Any, at: Any) -> Any:
    """The product-limit estimator for right-truncated waits."""
    order = np.argsort(waits)
    d, sorted_ages = waits[order], np.sort(ages)
    at_risk = np.searchsorted(d, d, side="right") - np.searchsorted(sorted_ages, d, side="left")
    keep = np.maximum(1 - 1 / np.maximum(at_risk, 1), 0)
    keep[0] = 1.0
    below = np.append(np.cumprod(keep[::-1])[::-1][1:], 1.0)
    return np.concatenate([[0.0], below])[np.searchsorted(d, at, side="right")]


@pytest.mark.parametrize(
    "kind", [*(pytest.param(each, marks=pytest.mark.soak) for each in ("exponential", "uniform")), "mixture"]
)
def test_the_curve_agrees_with_lynden_bell(kind: str) -> None:
    g, n = np.random.default_rng(4), 512
    draws = {
        "exponential": g.exponential(150, 4 * n),
        "mixture": np.where(g.random(4 * n) < 0.5, g.exponential(20, 4 * n), g.exponential(300, 4 * n)),
        "uniform": g.uniform(0, 600, 4 * n),
    }[kind]
    decided, now = g.uniform(0, 1_500, 4 * n), 1_500.0
    seen = (draws <= np.minimum(now - decided, WINDOW)) & (draws < WINDOW)
    sample = np.stack([decided[seen], draws[seen]], axis=1)[:n]
    clock = start_clock(problem(window=WINDOW))
    for _ in range(20):
        fit_curve.py_func(clock.curve, sample, len(sample), -1, now, WINDOW, 0.0)
    ages = np.array([20.0, 50.0, 100.0, 200.0, 400.0, 700.0])
    expected = lynden_bell(sample[:, 1], np.minimum(now - sample[:, 0], WINDOW), ages)
    # Exponentials cannot turn as sharply as a uniform distribution does.
    assert np.abs(share(clock.curve, ages) - expected).max() < (0.2 if kind == "uniform" else 0.1)


def test_a_given_curve_is_where_the_fit_starts() -> None:
    clock = start_clock(problem(window=WINDOW, curve=([30.0, 200.0], [0.4, 0.6])))
    ages = np.array([10.0, 50.0, 200.0, 600.0])
    truth = (1 - np.exp(-ages[:, None] / [30.0, 200.0])) @ [0.4, 0.6]
    assert np.abs(share(clock.curve, ages) - truth / truth[-1] * share(clock.curve, ages[-1:])).max() < 0.03


def test_means_are_unbiased_before_any_window_closes() -> None:
    """Purchases of 30 % come late; by exposure the mean is right although no silence was ever reported."""
    means = []
    for seed in range(12):
        g, T = np.random.default_rng(seed), 600
        stepper = Stepper(sp.PooledGreedy(), problem(window=WINDOW, curve=([100.0], [1.0])))
        waits, buys = g.exponential(100, T), g.random(T) < 0.3
        due = sorted((t + waits[t], t) for t in range(T) if buys[t])
        for t in range(T):
            stepper.advance(t, float(t))
            while due and due[0][0] <= t:
                when, r = due.pop(0)
                stepper.learn(Played(r, float(r), 0, 0, 0, when - r), 0.0, np.zeros(0))
            stepper.see(Played(t, float(t), 0, 0, 0, 0.0), np.zeros(0))
        stepper.advance(T, float(T))
        kept = stepper.memory
        read = kept.clock
        exposed = sum(coefficients(read)[k] * kept.counts[k, 0] for k in range(len(kept.counts)))
        means.append(-kept.sums[0] / exposed)
    assert np.mean(means) == pytest.approx(0.3, abs=0.03)


def coefficients(clock: Any) -> Any:
    """The coefficients of exposure, by the formula."""
    tau, weight = clock.curve[TAU, 1:], clock.curve[WEIGHT, 1:]
    whole = weight @ (1 - np.exp(-clock.window / tau))
    return np.concatenate([[1.0], -weight * clock.fading[READING, clock.n_memories :]]) / whole


def test_coefficients_follow_the_formula() -> None:
    stepper = Stepper(sp.PooledGreedy(), problem(window=WINDOW))
    rows = rows_at.py_func(make_tables(np.eye(2)), 0)
    for t in range(50):
        stepper.advance(t, float(t))
        stepper.policy(rows, t)
        stepper.see(Played(t, float(t), 0, 0, 0, 0.0), np.zeros(0))
        if t % 3 == 0:
            stepper.learn(Played(t, float(t), 0, 0, 0, 0.5), 0.2, np.zeros(0))
    stepper.advance(50, 50.0)
    stepper.policy(rows, 50)
    means = stepper.memory
    np.testing.assert_allclose(means.clock.curve[COEFFICIENT], coefficients(means.clock), rtol=1e-12)
    ages = 50.0 - np.arange(50)
    exposed = share(means.clock.by_state[0], ages).sum()
    assert count_of.py_func(means, 0) == pytest.approx(exposed, rel=1e-9)
    assert loss_of.py_func(means, 0, exposed) == pytest.approx(exposed - 17 * 0.8, rel=1e-9)


def test_reports_correct_a_wrong_curve() -> None:
    g, n = np.random.default_rng(5), 512
    clock = start_clock(problem(window=WINDOW, curve=([200.0], [1.0])))
    sample = np.stack([np.zeros(n), g.exponential(20.0, n), np.zeros(n)], axis=1)
    for _ in range(20):
        fit_curve.py_func(clock.curve, sample, n, -1, 5_000.0, WINDOW, 0.0)
    assert share(clock.curve, np.array([60.0]))[0] > 0.8  # 95 % have come by then, of the curve given 26 %


def test_states_with_other_waits_have_other_curves() -> None:
    """Two states buy equally often; one reports nine times as late. Before any window has closed both look alike."""
    g, n, stepper = np.random.default_rng(8), 3_000, Stepper(sp.PooledGreedy(), problem(window=6_000.0))
    states, buys = g.integers(2, size=n), g.random(n) < 0.2
    waits = g.exponential(np.where(states == 0, 200.0, 1_800.0))
    rows = rows_at.py_func(make_tables(np.eye(2)), 0)
    arrivals = sorted((t + wait, t) for t, wait in enumerate(waits) if buys[t])
    for t in range(n):
        stepper.advance(t, float(t))
        while arrivals and arrivals[0][0] <= t:
            arrived, r = arrivals.pop(0)
            stepper.learn(Played(r, float(r), 0, int(states[r]), 0, arrived - r), 0.0, np.zeros(0))
        if t % 50 == 0:
            stepper.policy(rows, t)
        stepper.see(Played(t, float(t), 0, int(states[t]), 0, 0.0), np.zeros(0))
    stepper.advance(n, float(n))
    stepper.policy(rows, n)
    means = stepper.memory
    rates = [-means.sums[s] / count_of.py_func(means, s) for s in range(2)]
    common = [-means.sums[s] / (means.clock.curve[COEFFICIENT] @ means.counts[:, s]) for s in range(2)]
    assert abs(rates[0] - rates[1]) < 0.75 * abs(common[0] - common[1])


def test_held_until_the_window_closes_is_worse() -> None:
    shop = sp.families.shop(3, revenue=1)
    waits = np.minimum(sp.delays.geometric(1, 20_000, 1_500.0), 8_399)
    early = sp.simulate(shop, sp.PooledGreedy(), sp.delays.Conversions(8_400, waits), seed=5).regret
    held = sp.simulate(shop, sp.StateEXP3(), sp.delays.Conversions(8_400, waits), seed=5).regret
    assert early < 0.2 * held
