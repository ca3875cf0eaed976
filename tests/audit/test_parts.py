"""Map, delays, drift and states, each against a truth that was put in."""

import numpy as np
import pytest
from generated import generate, write_columns

from statepool import audit_log
from statepool.audit.delays import measure_lateness
from statepool.audit.drift import measure_drift
from statepool.audit.map import shrinkage
from statepool.audit.maturity import Maturity


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    made = generate(1, n_actions=20, n_rows=30_000, effect=0.03)
    return made, audit_log(made.write(tmp_path_factory.mktemp("log") / "log.parquet"), horizon=2_000, seconds=0.5)


def test_the_map_is_found(audit):
    made, found = audit
    order = [int(state) for state in found.counts.states]
    rows = [int(action) for action in found.counts.actions]
    assert np.abs(found.map.P - made.P[np.ix_(rows, order)]).max() < 0.06
    assert found.counts.state_means == pytest.approx(sorted(found.counts.state_means))
    assert found.width.lower <= found.width.upper
    assert found.width.error < 0.1


def test_rare_actions_lean_on_the_others_and_on_their_group(tmp_path):
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 4_000)
    action = rng.integers(20, size=8_000) + 20 * group
    state = (rng.random(8_000) < np.where(group == 1, 0.9, 0.1)).astype(int)
    columns = {"action": np.append(action, [99]), "state": np.append(state, [0]), "loss": np.append(state, [0]),
               "group": np.append(group, [1])}  # fmt: skip
    path = write_columns(columns, tmp_path / "log.parquet")
    alone = audit_log(path, group=None, horizon=100, seconds=0.1)
    rare = alone.counts.actions.index("99")
    assert alone.map.P[rare, 1] > 0.8  # its one row says 0, its group says 1
    assert alone.map.lower[rare, 1] == 0
    assert alone.map.upper[rare, 1] < 1


def test_shrinkage_reads_off_how_alike_rows_are():
    rng = np.random.default_rng(0)
    visits = np.full(200, 300)
    for strength in (5.0, 50.0):
        rows = rng.dirichlet(strength * np.array([0.2, 0.3, 0.5]), 200)
        n = rng.multinomial(visits, rows).astype(float)
        prior = np.tile(n.sum(axis=0) / n.sum(), (200, 1))
        assert shrinkage(n, prior) == pytest.approx(strength, rel=0.3)
    alike = rng.multinomial(visits, [0.2, 0.3, 0.5]).astype(float)
    assert shrinkage(alike, np.tile(alike.sum(axis=0) / alike.sum(), (200, 1))) > 500


def test_delays_are_corrected_for_the_logs_end_and_for_those_that_never_come():
    made = generate(0, n_rows=20_000, delay=3_000.0)
    rng = np.random.default_rng(1)
    end, never = 20_000.0, rng.random(20_000) < 0.2
    hidden = never | (made.resolved > end)
    rows = made.rows()
    loss, resolved = np.where(hidden, np.nan, made.loss), np.where(hidden, np.nan, made.resolved)
    rows = type(rows)(rows.action, rows.state, loss, rows.decided, resolved, 20_000, True, end, np.nan)
    found = measure_lateness(rows, int(hidden.sum()), Maturity(None, "none"))
    assert found.time[1] == pytest.approx(3_000 * np.log(2), rel=0.2)
    assert found.never == pytest.approx(0.2, abs=0.03)
    assert found.decisions[1] <= found.time[1]
    assert not found.misleads
    assert np.isinf(found.draws).mean() == pytest.approx(0.2, abs=0.03)


def test_bad_news_that_comes_late_is_noticed():
    made = generate(0, n_rows=20_000)
    rows = made.rows()
    late = rows.resolved + 150 * rows.loss
    found = measure_lateness(
        type(rows)(rows.action, rows.state, rows.loss, rows.decided, late, 20_000, True, 1e9, np.nan),
        0,
        Maturity(None, "none"),
    )
    assert found.misleads
    assert found.early < found.late


@pytest.mark.parametrize("drift", [0.0, 0.15])
def test_drift_is_told_from_noise(drift):
    made = generate(4, n_rows=40_000, drift=drift)
    found = measure_drift(made.rows(), made.P, made.means.mean(axis=0), 100.0)
    if drift:
        assert all(found.drifts)
        assert found.spread == pytest.approx(np.full(6, drift / 2**0.5), abs=0.03)
        shares = np.linspace(0.01, 0.99, 50)
        assert np.abs(found.path(shares) - made.means[(shares * 40_000).astype(int)]).max() < 0.12
        assert found.floor > 0
    else:
        assert sum(found.drifts) <= 1
        assert found.e2 < 1


def test_a_state_that_every_action_reaches_alike_tells_nothing(tmp_path):
    rng = np.random.default_rng(0)
    n = 30_000
    action = rng.integers(10, size=n)
    common = rng.random(n) < 0.3
    state = np.where(common, 2, rng.random(n) < action / 10).astype(int)
    loss = (rng.random(n) < np.array([0.2, 0.8, 0.9])[state]).astype(int)
    found = audit_log(
        write_columns({"action": action, "state": state, "loss": loss}, tmp_path / "log.parquet"), horizon=500
    )
    assert [found.counts.states[s] for s in found.states.silent] == ["2"]


def test_the_fitted_instance_has_the_logs_effects_and_delays(audit):
    _, found = audit
    instance = found.fitted.instance(0)
    assert instance.effects is not None
    assert instance.horizon == 2_000
    assert np.median(found.fitted.delays(0)) == pytest.approx(100 * np.log(2), rel=0.2)
    assert found.fitted.instance(0).effects.tolist() == instance.effects.tolist()


def test_everything_follows_from_the_seed(tmp_path):
    path = generate(1, n_actions=5, n_rows=3_000).write(tmp_path / "log.parquet")
    first, second = (audit_log(path, horizon=500, seconds=5, seed=3).document for _ in range(2))
    assert first == second
