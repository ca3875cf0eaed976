"""The parts by themselves: map, test, delays, curve, drift, window."""

import numpy as np
import pytest
from generated import generate
from quick import QUICK
from truths import count, rows_of
from windowed import KINDS, make_unwindowed, make_windowed

from statepool.audit import audit_log
from statepool.audit.counts import WEIGHTED, Counts
from statepool.audit.delays import Maturity, find_maturity, fit_curve, measure_lateness, product_limit, read_window
from statepool.audit.document import _about_time
from statepool.audit.estimates import (
    estimate_map,
    measure_drift,
    p_value,
    shrinkage,
    stretches,
    sufficiency_test,
    sums_by_action,
)


def test_shrinkage_follows_how_alike_rows_are():
    rng = np.random.default_rng(0)
    alike = rng.multinomial(300, [0.5, 0.3, 0.2], size=40).astype(float)
    apart = np.array([rng.multinomial(300, row) for row in rng.dirichlet(np.ones(3), 40)]).astype(float)
    prior = np.tile([0.5, 0.3, 0.2], (40, 1))
    assert shrinkage(alike, prior) > 500
    assert shrinkage(apart, np.tile(apart.sum(axis=0) / apart.sum(), (40, 1))) < 10


def test_false_alarms_are_rare_while_means_and_mix_move():
    found = [sufficiency_test(generate(seed, n_actions=20, n_rows=6_000).rows(), 20, 6, seed).p for seed in range(60)]
    assert np.mean(np.array(found) <= 0.05) <= 0.13


def test_effects_are_found():
    made = generate(0, n_actions=20, n_rows=40_000, effect=0.1)
    found = sufficiency_test(made.rows(), 20, 6)
    assert found.p < 1e-6


def test_the_variance_under_shuffling_is_exact():
    rng = np.random.default_rng(0)
    action, loss = rng.integers(3, size=96), rng.random(96)
    actions, residuals = stretches(action, loss)
    found = sums_by_action([(actions, residuals)], 3)
    shuffled = (rng.permuted(residuals, axis=1) for _ in range(4_000))
    sums = [np.bincount(actions.ravel(), each.ravel(), 3) for each in shuffled]
    assert np.var(sums, axis=0) == pytest.approx(found[2], rel=0.1)


def test_p_values():
    drawn = np.arange(100.0)
    assert 1e-4 < p_value(150.0, drawn, 0) < 1 / 101
    assert p_value(0.0, drawn, 100) == 1.0
    assert p_value(1e6, drawn, 0) < 1e-6


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 95, 1000])
def test_stretches_leave_out_few_rows(n):
    actions, residuals = stretches(np.arange(n), np.arange(n) * 1.0)
    assert actions.shape == residuals.shape
    assert n - actions.size <= n // 32
    assert actions.shape[1] <= 63
    assert n == 0 or actions.max() == n - 1
    assert np.allclose(residuals.sum(axis=1), 0)


def test_the_curve_allows_for_what_the_end_hides():
    rng = np.random.default_rng(1)
    age, wait = rng.uniform(0, 3, 40_000), rng.exponential(0.5, 40_000)
    seen = wait <= age
    masses = product_limit(wait[seen], age[seen])
    share = [(masses * (wait[seen] <= x)).sum() for x in (0.2, 0.5, 1.0, 2.0)]
    true = (1 - np.exp(-np.array([0.2, 0.5, 1.0, 2.0]) / 0.5)) / (1 - np.exp(-3 / 0.5))
    assert share == pytest.approx(true, abs=0.02)
    naive = [(wait[seen] <= x).mean() for x in (0.2, 0.5, 1.0, 2.0)]
    assert naive[1] > true[1] + 0.03


def test_curve_and_mixture_fit_the_waits_and_young_rows_are_worth_their_exposure(plain_audit, plain_shop):
    curve, rows, window = plain_audit.maturity.curve, plain_audit.rows, plain_audit.maturity.window
    ages = np.linspace(0.02, 0.98, 25) * window
    seen = rows.dated & (rows.resolved - rows.decided <= window) & (rows.decided <= plain_audit.maturity.cut)
    empirical = np.searchsorted(np.sort((rows.resolved - rows.decided)[seen]), ages) / seen.sum()
    assert np.abs(curve.share(ages) - empirical).max() < 0.03
    assert curve.share(curve.age(0.4)) == pytest.approx(0.4)
    mixture = 1 - (curve.weight * np.exp(-ages[:, None] / curve.tau)).sum(axis=1)
    assert np.abs(mixture - empirical).max() < 0.06
    assert plain_audit.maturity.curve is not None
    true = 40 * plain_shop.buys[::-1]
    found = plain_audit.unit.outcome(plain_audit.counts.state_means)
    assert np.abs(found - true).max() < 4 * (plain_audit.counts.state_errors * plain_audit.unit.scale).max()
    mature = (plain_audit.rows.decided <= plain_audit.maturity.cut).sum()
    assert mature < plain_audit.counts.k.sum() < plain_audit.counts.rows


@pytest.mark.parametrize("shape", ["exponential", "lognormal"])
def test_errors_of_state_means_are_right_where_young_rows_are_weighted(shape):
    """Where most rows convert: whether the events of young rows have come yet is most of the noise."""
    covered = []
    for seed in range(40):
        made = make_windowed(seed, kind=KINDS[3], windows=3, n_rows=6_000, never=0.02, shape=shape)
        rows = rows_of(made.action, made.state, made.loss, made.decided, made.resolved)
        maturity = find_maturity(rows, made.window)
        assert maturity.curve is not None
        counts = count(rows, maturity=maturity)
        covered += (np.abs(made.means - counts.state_means) <= 1.96 * counts.state_errors).tolist()
    assert np.mean(covered) >= 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_the_window_is_found_or_asked_about(kind):
    made = make_windowed(5, kind=kind, n_rows=8_000, windows=6, never=0.5)
    rows = rows_of(made.action, made.state, made.loss, made.decided, made.resolved)
    if "no times" in kind:
        with pytest.raises(ValueError, match=r"window: the share of .* --window 14d .* --window 0"):
            find_maturity(rows, None)
        return
    found = find_maturity(rows, None)
    waits = (made.full_resolved - made.decided)[made.full_loss == 0]
    assert found.how == "found"
    assert found.default == 1.0
    assert (waits <= found.window).mean() > 0.98
    assert found.window <= 1.2 * made.window


@pytest.mark.parametrize("kind", ["all in, dated", "some lost", "same lag for all", "all in, no times"])
def test_no_window_is_assumed_where_there_is_none(kind):
    _, action, state, decided, loss, resolved = make_unwindowed(3, kind=kind)
    assert find_maturity(rows_of(action, state, loss, decided, resolved), None).how == "none"


def test_drift_is_told_from_noise():
    for drift in (0.0, 0.15):
        made = generate(3, n_actions=5, n_rows=20_000, drift=drift)
        rows = made.rows()
        counts = count(rows)
        found = measure_drift(rows, counts.state_means)
        assert np.count_nonzero(found.spread) >= 5 if drift else np.count_nonzero(found.spread) <= 1
        assert found.spread.max() == pytest.approx(drift / 2**0.5, abs=0.03)


def test_a_log_whose_means_stand_still_rarely_drifts():
    """One log in twenty at most, whatever its number of states; 9 of 60 is four standard errors above."""
    found = []
    for seed in range(60):
        rows = generate(seed, n_actions=4, n_states=12, n_rows=6_000, drift=0.0).rows()
        counts = count(rows)
        found.append(measure_drift(rows, counts.state_means).spread.any())
    assert np.mean(found) <= 0.15


def test_what_drifts_is_said(tmp_path):
    made = generate(3, n_actions=5, n_rows=8_000)
    said = " ".join(_about_time(audit_log(made.write(tmp_path / "log.parquet"), **QUICK)))
    assert "state means drift, by up to" in said


def test_delays_without_a_window_are_corrected_for_the_end_of_the_log():
    rng = np.random.default_rng(2)
    decided = np.sort(rng.uniform(0, 1_000, 5_000))
    resolved = decided + rng.exponential(200, 5_000)
    loss = np.where(resolved <= 1_000, rng.integers(2, size=5_000), np.nan)
    rows = rows_of(
        np.zeros(5_000, int), np.zeros(5_000, int), loss, decided, np.where(np.isfinite(loss), resolved, np.nan)
    )
    late = measure_lateness(rows, Maturity(None, "none", 1_000.0))
    assert late.time[1] == pytest.approx(200 * np.log(2), rel=0.1)


@pytest.mark.parametrize(
    ("given", "seconds"), [("30d", 30 * 86_400), ("12h", 43_200), ("90min", 5_400), ("none", 0.0), (None, None)]
)
def test_windows_are_read(given, seconds):
    assert read_window(given, dated=True) == seconds


def test_the_row_of_a_rare_action_leans_on_the_others():
    n = np.vstack([np.tile([500.0, 300.0, 200.0], (5, 1)) + np.arange(15).reshape(5, 3), [1.0, 0.0, 0.0]])
    found = estimate_map(Counts(tuple("abcdef"), tuple("xyz"), n, n, n, n, 0 * n, dict.fromkeys(WEIGHTED, n)))
    assert np.abs(found.P[5] - n.sum(axis=0) / n.sum()).max() < 0.2


def test_everything_follows_from_the_seed(plain_shop, plain_audit):
    assert audit_log(plain_shop.log(0), missing=0, **QUICK).document == plain_audit.document


def test_fit_curve_needs_events():
    rows = rows_of(np.zeros(10, int), np.zeros(10, int), np.ones(10), np.arange(10.0), np.arange(10.0))
    assert fit_curve(rows, 5.0, 1.0) is None


def test_nothing_is_said_about_how_late_events_come_where_few_have_times():
    n = 2_000
    resolved = np.where(np.arange(n) % 60 == 0, np.arange(n) + 3.0, np.nan)
    rows = rows_of(
        np.zeros(n, int), np.zeros(n, int), np.where(np.isfinite(resolved), 0.0, 1.0), np.arange(n) * 1.0, resolved
    )
    maturity = find_maturity(rows, 400.0)
    late = measure_lateness(rows, maturity)
    assert (maturity.default, maturity.curve) == (1.0, None)
    assert (late.time, late.window) == ([], 400)
