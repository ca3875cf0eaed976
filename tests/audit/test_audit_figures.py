"""The audit against known truths, on few logs; `make soak` has the many."""

import numpy as np
import pytest
from figures_of_merit import CLEAR, NULLS, advice_right, coverage, false_alarms, power
from generated import generate

from statepool.audit.sufficiency import STRETCH, examine_state, holm, p_value, stretches, sufficiency_test


@pytest.mark.parametrize("setting", ["mix moving with the drift", "many actions"])
def test_false_alarms_are_rare(setting):
    assert false_alarms(range(60), n_rows=6_000, **{k: v for k, v in NULLS[setting].items() if k != "n_rows"}) <= 0.14


def test_a_test_without_time_would_cry_wolf(monkeypatch):
    """The adversary is one: on stretches as long as the log, most logs without effects are called wrong."""
    monkeypatch.setattr("statepool.audit.sufficiency.STRETCH", 10**9)
    assert false_alarms(range(8), n_rows=20_000) >= 0.5


def test_effects_are_found_and_measured():
    assert power(range(3)) == 1
    found = sufficiency_test(generate(3, effect=0.05).rows(), 50, 6)
    sizes = np.array([test.size for test in found.states])
    assert (np.abs(sizes - 0.05) < 0.02).all()
    assert max(sufficiency_test(generate(3).rows(), 50, 6).states, key=lambda test: test.size).size < 0.03


def test_real_valued_losses_too():
    rng = np.random.default_rng(0)
    action, noise = rng.integers(20, size=20_000), rng.beta(2, 5, 20_000)
    assert examine_state(action, noise, 20, seed=1).p > 0.01
    effects = rng.normal(0, 0.03, 20)
    found = examine_state(action, noise + effects[action], 20, seed=1)
    assert found.p < 1e-4
    assert found.size == pytest.approx(effects.std(), abs=0.006)


def test_the_variance_under_shuffling_is_exact():
    rng = np.random.default_rng(2)
    action, loss = rng.integers(4, size=STRETCH), rng.random(STRETCH)
    found = examine_state(action, loss, 4, seed=0)
    residuals = loss - loss.mean()
    drawn = np.array([np.bincount(action, rng.permutation(residuals), 4) for _ in range(20_000)])
    assert pytest.approx(drawn.var(axis=0), rel=0.05) == found.V


def test_p_values():
    drawn = np.arange(1.0, 101.0)
    assert p_value(50.5, drawn) == 20 / 70  # the twentieth larger one is the seventieth drawn
    assert p_value(95.5, drawn) == 6 / 101
    assert p_value(1000.0, drawn) < 1e-6
    assert holm([0.01, 0.04, 0.5]) == [0.03, 0.08, 0.5]
    assert holm([]) == []


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 95, 1000])
def test_stretches_cover_all_rows(n):
    starts = stretches(n)
    assert starts[0] == 0
    assert starts[-1] == n
    assert n < STRETCH or (np.diff(starts) >= STRETCH).all()


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover(level):
    assert coverage(range(40), level) == pytest.approx(level, abs=0.02)


@pytest.mark.parametrize("verdict", CLEAR)
def test_clear_logs_get_the_right_advice(verdict, tmp_path):
    right = advice_right(verdict, range(8), tmp_path)
    assert right
    assert sum(right) >= 0.8 * len(right)
