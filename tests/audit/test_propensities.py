"""Propensities are used: map, means and price of logs whose actions were chosen for their circumstances."""

import numpy as np
import pytest
from generated import write_columns

import statepool as sp

QUICK = {"horizon": 200, "seconds": 0.1}


def confounded(seed=0, n=40_000):
    """Customers who buy anyway are shown b: the map of rows as they stand flatters it, the weighted one does not."""
    rng = np.random.default_rng(seed)
    keen = rng.random(n) < 0.5
    chance_of_b = np.where(keen, 0.8, 0.2)
    action = (rng.random(n) < chance_of_b).astype(int)
    deep = rng.random(n) < np.where(keen, 0.7, 0.3) - 0.05 * action
    loss = (rng.random(n) < np.where(deep, 0.2, 0.8)).astype(float)
    return {
        "action": np.array(["a", "b"], dtype=object)[action], "state": np.where(deep, "deep", "shallow").astype(object),
        "loss": loss, "decided_at": np.arange(n) * 1.0,
        "propensity": np.where(action == 1, chance_of_b, 1 - chance_of_b),
    }  # fmt: skip


def test_the_map_is_weighted_for_how_actions_were_chosen(tmp_path):
    columns = confounded()
    weighted = sp.audit_log(write_columns(columns, tmp_path / "a.parquet"), **QUICK)
    del columns["propensity"]
    plain = sp.audit_log(write_columns(columns, tmp_path / "b.parquet"), **QUICK)
    assert weighted.map.P[:, 0] == pytest.approx([0.5, 0.45], abs=0.015)  # what chance would have shown
    assert plain.map.P[1, 0] - plain.map.P[0, 0] > 0.1  # the trap is one
    assert weighted.effects.pooled.argmin() == 0
    assert plain.effects.pooled.argmin() == 1


def test_the_number_of_rows_they_are_worth_is_reported(tmp_path):
    columns = confounded()
    found = sp.audit_log(write_columns(columns, tmp_path / "a.parquet"), **QUICK)
    w = 1 / columns["propensity"]
    assert found.propensities.effective == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-6)
    assert found.document["propensities"]["share_effective"] == pytest.approx(found.propensities.effective / 40_000)
    width = (found.map.upper - found.map.lower)[0, 0]
    assert width > 1.1 * 2 * 1.96 * (0.25 / 20_000) ** 0.5  # intervals know it


def test_even_propensities_change_nothing(tmp_path):
    columns = confounded()
    columns["propensity"] = np.full(40_000, 0.5)
    even = sp.audit_log(write_columns(columns, tmp_path / "a.parquet"), **QUICK)
    del columns["propensity"]
    plain = sp.audit_log(write_columns(columns, tmp_path / "b.parquet"), **QUICK)
    assert pytest.approx(plain.map.P) == even.map.P
    assert even.propensities.share_effective == pytest.approx(1)


def test_means_rest_on_the_holdout_where_there_is_enough_of_it(tmp_path):
    columns = confounded()
    held = np.random.default_rng(1).random(40_000) < 0.1
    columns["held"] = held
    found = sp.audit_log(write_columns(columns, tmp_path / "a.parquet"), **QUICK)
    assert found.propensities.held
    assert found.counts.k.sum() == held.sum()
    assert found.counts.n.sum() == 40_000
    columns["held"] = held & (np.arange(40_000) < 5_000)
    few = sp.audit_log(write_columns(columns, tmp_path / "b.parquet"), **QUICK)
    assert not few.propensities.held
