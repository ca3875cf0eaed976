"""Contexts: maps, the test, what personalising gains, and the pool it makes."""

from collections import Counter

import numpy as np
import pytest
from generated import write_columns
from quick import QUICK

from statepool.audit import audit_log
from statepool.audit.contexts import context_maps


def make(seed=0, n=16_000, crossed=1.0, K=4, C=3):
    """Contexts that prefer different actions by `crossed`."""
    rng = np.random.default_rng(seed)
    base, own = rng.normal(0, 0.3, (1, K, 3)), rng.normal(0, crossed, (C, K, 3))
    P = np.exp(base + own)
    P /= P.sum(axis=2, keepdims=True)
    context, action = rng.integers(C, size=n), rng.integers(K, size=n)
    state = (rng.random(n)[:, None] > P[context, action].cumsum(axis=1)).sum(axis=1).clip(0, 2)
    means = np.array([0.1, 0.4, 0.8])
    columns = {
        "device": np.array(["phone", "tablet", "desk"], dtype=object)[context],
        "sku": action.astype(str).astype(object),
        "state": state, "converted": (rng.random(n) > means[state]).astype(float), "decided_at": np.arange(n) * 1.0,
    }  # fmt: skip
    c = P @ means
    return columns, float(c.mean(axis=0).min() - c.min(axis=1).mean())


def test_a_context_that_pays_is_in_the_pool(tmp_path):
    columns, gain = make()
    found = audit_log(write_columns(columns, tmp_path / "log.parquet"), context="device", **QUICK)
    assert found.contexts.pays
    assert found.contexts.gain.lower <= gain <= found.contexts.gain.upper
    document = found.document
    assert set(document["P"]) == {"phone", "tablet", "desk"}
    assert document["personalising"]["in_pool"]
    found.write(tmp_path)


def test_the_first_action_of_each_context_is_said_and_is_the_pool_s(tmp_path):
    from statepool.live import Pool

    columns, _ = make()
    found = audit_log(write_columns(columns, tmp_path / "log.parquet"), context="device", **QUICK)
    best = found.document["starts_on"]["by_context"]
    (said,) = [line for line in found.document["advice"]["to_do"] if line.startswith("It starts on")]
    assert all(f"{action} for {name}" in said for name, action in best.items())
    assert f"For all together the best is {found.document['starts_on']['action']}" in said
    assert any(line.endswith("All without the choice by device.") for line in found.document["advice"]["reasons"])
    with Pool.open(f"sqlite:///{tmp_path}/pool.db", "home", **found.pool) as pool:
        for name, action in best.items():
            chosen = Counter(pool.decide(context=name).action for _ in range(40))
            assert chosen.most_common(1)[0][0] == action


def test_best_actions_of_contexts_are_corrected_for_direct_effects():
    import pandas as pd

    columns, _ = make()
    dear = columns["sku"] == "2"
    columns["revenue"] = (1 - columns.pop("converted")) * np.where(dear, 100.0, 10.0)
    found = audit_log(pd.DataFrame(columns), context="device", **QUICK)
    assert found.effects.direct.spread > 0
    assert set(found.document["personalising"]["best"].values()) == {"2"}


def test_one_that_does_not_is_left_out(tmp_path):
    columns, _ = make(1, crossed=0.0, n=30_000)
    columns["sku"] = np.where(columns["sku"] == "3", "2", columns["sku"])
    found = audit_log(write_columns(columns, tmp_path / "log.parquet"), context="device", **QUICK)
    assert not found.contexts.pays
    assert isinstance(found.document["P"], list)


def test_gains_are_covered():
    covered = []
    for seed in range(12):
        columns, gain = make(seed, n=6_000, crossed=[0.0, 0.4, 1.0][seed % 3])
        import pandas as pd

        found = audit_log(pd.DataFrame(columns), context="device", **QUICK).contexts.gain
        covered.append(found.lower <= gain <= found.upper)
    assert np.mean(covered) >= 0.8


def test_maps_lean_where_rows_are_few():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), (5, 4))
    many = np.array([[rng.multinomial(5_000, row) for row in rows] for rows in P]).astype(float)
    rows = many.sum(axis=0) / many.sum(axis=(0, 2))[:, None]
    assert np.abs(context_maps(many, rows)[0] - P).max() < 0.05
    few = np.array([[rng.multinomial(2, row) for row in rows] for rows in P]).astype(float)
    found, strength = context_maps(few, rows)
    assert strength > 0.5
    assert np.allclose(found.sum(axis=2), 1)


@pytest.mark.parametrize(
    ("context", "message"),
    [("devic", r"context column: 'devic' is not known; did you mean device\?"),
     ("sku", "context: is column 'sku', which is the action"),
     (["device", "device"], "'device', which is the context too"),
     ("blank", "context: column blank is blank in every row"),
     ("decided_at", "context: is column 'decided_at', which is the decided too")],
)  # fmt: skip
def test_bad_contexts_are_one_sentence(context, message, tmp_path):
    columns, _ = make(n=500)
    columns["blank"] = np.array([""] * 500, dtype=object)
    with pytest.raises(ValueError, match=message):
        audit_log(write_columns(columns, tmp_path / "log.parquet"), context=context, decided="decided_at", **QUICK)


def test_joint_contexts_blanks_and_actions_that_are_not_offered(tmp_path):
    columns, _ = make()
    columns["new"] = np.arange(16_000) % 2 == 0
    columns["device"] = np.where(np.arange(16_000) % 10 == 0, None, columns["device"])
    columns["sku"] = np.where((columns["device"] == "desk") & (columns["sku"] == "0"), "1", columns["sku"])
    found = audit_log(write_columns(columns, tmp_path / "log.parquet"), context=["device", "new"], **QUICK)
    assert "desk / true" in found.contexts.names
    assert found.contexts.blank == 1_600
    assert not found.contexts.offered[found.contexts.names.index("desk / true"), 0]


def test_few_rows_are_no_evidence_that_a_context_does_not_pay():
    import pandas as pd

    columns, gain = make(2, n=300, crossed=1.0)
    found = audit_log(pd.DataFrame(columns), context="device", **QUICK)
    assert found.contexts.gain.upper >= gain
    assert found.contexts.gain.verdict != "does not pay"


def test_a_given_context_is_always_spoken_of(plain_shop):
    log = plain_shop.log(0).iloc[:200].assign(device=["phone", "desk"] * 100)
    found = audit_log(log, missing=0, context="device", **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert found.document["personalising"]["sentence"] in found.document["advice"]["to_do"]
