"""What if: estimates against enumerated truths, and against estimators written out row by row."""

import json

import numpy as np
import pytest
from generated import write_columns

import statepool as sp
from command_line import statepool
from statepool.audit import what_if

P = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]])
MEANS = np.array([0.8, 0.5, 0.2])
SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def make(seed=0, n=20_000, effect=0.0):
    rng = np.random.default_rng(seed)
    action = rng.choice(4, size=n, p=SHARES)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, 2)
    delta = effect * np.array([0.0, 1.0, -1.0, 1.0])
    loss = (rng.random(n) < MEANS[state] + delta[action]).astype(float)
    columns = {
        "action": np.array(["a", "b", "c", "d"], dtype=object)[action], "state": state, "loss": loss,
        "decided_at": np.arange(n) * 1.0, "propensity": SHARES[action],
    }  # fmt: skip
    return columns, P @ MEANS + delta


def test_every_estimator_finds_the_truth(tmp_path):
    columns, worth = make()
    path = write_columns(columns, tmp_path / "log.parquet")
    found = what_if(path, ["a", "fixed:c", "uniform", "best"])
    truths = [worth[0], worth[2], worth.mean(), worth[2]]
    for one, truth in zip(found, truths, strict=True):
        for estimate in (one.pooled, one.plain, one.robust):
            assert abs(estimate.value - truth) < 4 * estimate.error + 1e-9
            assert estimate.lower < estimate.value < estimate.upper
        assert one.pooled.error < one.robust.error < 1.01 * one.plain.error
        assert not one.biased
    assert found[0].logged == pytest.approx(columns["loss"].mean())


def test_plain_and_robust_row_by_row(tmp_path):
    columns, _ = make(1, n=3_000)
    found = what_if(write_columns(columns, tmp_path / "log.parquet"), ["uniform"])[0]
    codes = np.searchsorted(["a", "b", "c", "d"], columns["action"].astype(str))
    w = 0.25 / columns["propensity"]
    terms = w * columns["loss"]
    assert found.plain.value == pytest.approx(terms.mean())
    assert found.plain.error == pytest.approx(terms.std() / 3_000**0.5)
    inverse = np.zeros((4, 3))
    np.add.at(inverse, (codes, columns["state"]), 1 / columns["propensity"])
    rows = inverse / inverse.sum(axis=1, keepdims=True)
    means = np.array([columns["loss"][columns["state"] == s].mean() for s in range(3)])
    model = rows @ means
    psi = model.mean() + w * (columns["loss"] - model[codes])
    assert found.robust.value == pytest.approx(psi.mean())
    assert found.robust.error == pytest.approx(psi.std() / 3_000**0.5)
    assert found.pooled.value == pytest.approx(float(rows.mean(axis=0) @ means))


def test_rewards_in_their_own_unit(tmp_path):
    columns, worth = make()
    columns["revenue"] = 50 * (1 - columns.pop("loss"))
    found = what_if(write_columns(columns, tmp_path / "log.parquet"), ["c"])[0]
    assert found.pooled.value == pytest.approx(50 * (1 - worth[2]), rel=0.05)
    assert found.robust.value == pytest.approx(50 * (1 - worth[2]), rel=0.05)


def test_large_effects_are_warned_of_and_the_robust_one_is_right(tmp_path):
    columns, worth = make(2, effect=0.15)
    found = what_if(write_columns(columns, tmp_path / "log.parquet"), ["c"])[0]
    assert found.biased
    assert abs(found.pooled.value - worth[2]) > 3 * found.pooled.error
    assert abs(found.pooled.value - worth[2]) < found.bias + 2 * found.pooled.error
    assert abs(found.robust.value - worth[2]) < 4 * found.robust.error


def test_without_propensities_the_shares_stand_in(tmp_path):
    columns, worth = make()
    del columns["propensity"]
    found = what_if(write_columns(columns, tmp_path / "log.parquet"), ["d"])[0]
    assert not found.exact
    assert found.plain.value == pytest.approx(columns["loss"][columns["action"] == "d"].mean())
    assert abs(found.plain.value - worth[3]) < 4 * found.plain.error


def test_the_policy_of_a_pool(tmp_path):
    columns, worth = make()
    url = f"sqlite:///{tmp_path}/pool.db"
    with sp.Pool.open(url, "home", P, ["a", "b", "c", "d"], [0, 1, 2], sp.Uniform()) as pool:
        pool.decide()
    found = what_if(write_columns(columns, tmp_path / "log.parquet"), [f"{url}#home"])[0]
    assert found.robust.value == pytest.approx(worth.mean(), abs=4 * found.robust.error)


@pytest.mark.parametrize(
    ("policies", "more", "message"),
    [(["bst"], {}, r"policy: 'bst' is not known; did you mean best\?"),
     (["a"], {"level": 3}, "level: is 3")],
)  # fmt: skip
def test_wrong_questions(policies, more, message, tmp_path):
    path = write_columns(make(0, n=400)[0], tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=message):
        what_if(path, policies, **more)


def test_the_command(tmp_path):
    path = write_columns(make(0, n=2_000)[0], tmp_path / "log.parquet")
    done = statepool("whatif", path, "--policy", "c", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["policy"] == "c"
    shown = statepool("whatif", path, "--policy", "c")
    assert "doubly robust" in shown.stdout


def test_contexts_tickets_and_holdouts(tmp_path):
    columns, worth = make(4)
    rng = np.random.default_rng(0)
    columns["device"] = rng.choice(np.array(["phone", "desk"], dtype=object), 20_000)
    columns["ticket"] = np.arange(20_000) % 19_900
    columns["is_holdout"] = (rng.random(20_000) < 0.3).astype(float)
    path = write_columns(columns, tmp_path / "log.parquet")
    found = what_if(path, ["c", "best", "logged"], columns={"context": "device"})
    assert found[0].outcomes < 7_000  # the holdout alone
    assert abs(found[0].robust.value - worth[2]) < 4 * found[0].robust.error
    assert found[1].robust == found[0].robust
    done = statepool(
        "whatif",
        path,
        "--policy",
        "c",
        "--json",
        "--context",
        "device",
        "--ticket",
        "ticket",
        "--holdout",
        "is_holdout",
    )
    assert json.loads(done.stdout)[0]["robust"]["value"] == pytest.approx(found[0].robust.value)


def test_a_context_without_a_final_outcome_is_left_out(tmp_path):
    columns, worth = make(4)
    columns["device"] = np.array(["phone"] * 19_997 + ["watch"] * 3, dtype=object)
    columns["loss"][-3:] = np.nan
    path = write_columns(columns, tmp_path / "log.parquet")
    found = what_if(path, ["c", "uniform", "logged"], columns={"context": "device"})
    assert abs(found[0].robust.value - worth[2]) < 4 * found[0].robust.error
