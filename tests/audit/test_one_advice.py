"""Verdict, learner, ranking, first action, what-if and the pool that `serve --map` starts never disagree."""

import json
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quick import QUICK
from shops import make_shop

from statepool.audit import audit_log
from statepool.audit.advice import is_alike
from statepool.audit.audit import evaluate
from statepool.commands.serve import read_map
from statepool.learners import find, name_of
from statepool.live import Pool

LEARNERS = {
    "pool": "self-tuned",
    "pool with corrections": "self-tuned",
    "do not pool": "action-thompson",
    "cannot tell": None,
}


@st.composite
def logs(draw):
    """Small logs of all kinds: effects or none, informative states or none, windows, blanks, new actions, contexts."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    K, S, n = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.sampled_from([30, 400, 4_000, 12_000]))
    P = rng.dirichlet(np.full(S, draw(st.sampled_from([0.5, 100.0]))), K)
    mean = np.linspace(0.05, draw(st.sampled_from([0.05, 0.6])), S)
    lift = np.exp(draw(st.sampled_from([0.0, 0.1, 0.7])) * rng.standard_normal(K))
    action = rng.integers(K, size=n)
    if draw(st.booleans()):
        action = np.where(rng.random(n) < 0.7, 0, action)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, S - 1)
    ts = np.sort(rng.uniform(0, 100, n)) * 86_400 + 1.7e9
    wait = rng.exponential(3 * 86_400, n)
    bought = (rng.random(n) < mean[state]) & (wait < 14 * 86_400)
    seen = bought & (ts + wait <= ts[-1])
    amount = np.round(10 * lift[action], 2) if draw(st.booleans()) else 1.0
    log = pd.DataFrame({"sku": action.astype(str), "stage": state.astype(str), "revenue": np.where(seen, amount, 0.0),
                        "ts": ts, "purchased_at": np.where(seen, ts + wait, np.nan)})  # fmt: skip
    if draw(st.booleans()):
        log = log.drop(columns="purchased_at").assign(revenue=np.where(bought, amount, 0.0))
    if draw(st.booleans()):
        new = pd.DataFrame({"sku": "new", "stage": "0", "revenue": 0.0, "ts": ts[-1]}, index=range(3))
        log = pd.concat([log, new], ignore_index=True)
    return log, draw(st.sampled_from([None, "14d", 0]))


def assert_it_starts_so(found):
    """The pool that is opened with the advice shows most what the advice says that it starts on."""
    with TemporaryDirectory() as folder, Pool.open(f"sqlite:///{folder}/pool.db", "home", **found.pool) as pool:
        start = found.document["starts_on"]
        for context, action in (start["by_context"] or {None: start["action"]}).items():
            policy = pool.policy(context)
            # Thompson sampling draws its policy.
            drawn = 0.3 if found.advice.learner == "action-thompson" else 0.0
            assert policy[action] >= max(policy.values()) - drawn, (action, policy)


@settings(max_examples=16, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(logs())
def test_one_advice(made):
    log, window = made
    try:
        found = audit_log(log, window=window, **(QUICK | {"horizon": 50}))
    except ValueError as asked:
        if "--window" not in str(asked):
            raise
        return
    advice, document = found.advice, json.loads(json.dumps(found.document))
    verdict, learner = advice.verdict, LEARNERS[advice.verdict]
    assert advice.learner == document["learner"] == document["advice"]["learner"] == learner
    assert document["advice"]["verdict"] == verdict
    first = found.counts.actions[advice.ranking.order[0]]
    assert document["actions"][0] == first
    if learner is None:
        assert document["starts_on"]["action"] == first
    else:
        assert_it_starts_so(found)
    assert sorted(document["actions"]) == sorted(found.counts.actions)
    least, most = document["pooling"]["share_lost"]
    assert 0 <= least <= most <= 1
    if document["sufficiency"]["direct_effects"] == "found" and not is_alike(found.counts, found.effects):
        assert verdict == "cannot tell" or (verdict == "do not pool") == (least >= 2 / 3)
    low, high = document["starts_on"]["interval"]
    assert low <= document["starts_on"]["mean"] <= high
    assert np.allclose(np.sum(document["P"], axis=1), 1)
    if found.counts.has_outcomes and not found.counts.is_new.all():
        best = evaluate(found, "best")
        fixed = evaluate(found, f"fixed:{first}")
        assert best.robust == fixed.robust
    if learner is None:
        assert document["prior"] is None
        assert advice.missing
    else:
        assert find(learner)().runs_live
        expected = {one["name"]: one for one in document["advice"]["expected"]}
        assert learner in expected
        assert set(document["prior"]["states"]) == set(document["states"])
        assert set(document["prior"]) <= {"states", "curve", "cells"}
        assert document["settings"]["reward_bounds"][1] >= log.revenue.max()


def test_the_pool_that_is_started_is_the_one_advised(plain_audit, priced_audit, tmp_path):
    """From Python and by `serve --map`, without the server."""
    for number, audit in enumerate((plain_audit, priced_audit)):
        audit.write(tmp_path / str(number))
        read = read_map(tmp_path / str(number) / "AUDIT.json")
        assert read == audit.pool
        with Pool.open(f"sqlite:///{tmp_path}/{number}.db", "home", **read) as pool:
            assert name_of(type(pool.status().learner)) == audit.advice.learner
            assert pool.settings.holdout == 0.1
        assert_it_starts_so(audit)
        with Pool.open(f"sqlite:///{tmp_path}/{number}.db", name="home", **audit.pool):
            pass  # the same: nothing differs


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("prices", ["small", "large"])
def test_a_pool_starts_on_what_the_audit_says_where_prices_differ(seed, prices):
    shop = make_shop(4_100_000 + seed, n_products=8, stages=4, conversion=0.1, window=14, windows=4, prices=prices,
                     funnel=0.5, n_rows=20_000)  # fmt: skip
    found = audit_log(shop.log(seed), missing=0, **QUICK)
    if found.advice.learner:
        assert_it_starts_so(found)


def test_no_pool_is_started_from_an_audit_that_cannot_tell(plain_shop, tmp_path):
    found = audit_log(plain_shop.log(0).iloc[:200], missing=0, **QUICK)
    assert found.advice.verdict == "cannot tell"
    found.write(tmp_path)
    for start in (lambda: found.pool, lambda: read_map(tmp_path / "AUDIT.json")):
        with pytest.raises(ValueError, match=r"^pool: the audit cannot tell .* \(About .* more rows .* in this log\)$"):
            start()
