"""A pool's own rows: its window and its default are known, and its database and an export are read alike."""

from dataclasses import replace

import numpy as np
import pytest
from quick import QUICK

import statepool as sp
from statepool.audit import audit_log
from statepool.audit.document import summary_of
from statepool.live.maintenance import export

DAY = 86_400.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A pool of 40 days with a window of 14: purchases are reported when they come, silence by the window."""
    folder, now, rng = tmp_path_factory.mktemp("pool"), 1.7e9, np.random.default_rng(0)
    url, P = f"sqlite:///{folder}/pool.db", np.array([[0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])
    with sp.Pool.open(
        url, "home", P, ["a", "b", "c"], ["view", "cart"], sp.Uniform(), reward_bounds=(0, 50), window=14 * DAY,
        clock=lambda: now,
    ) as pool:  # fmt: skip
        coming = []
        for day in range(40):
            now = 1.7e9 + day * DAY
            made = pool.decide_many(60)
            seen = [rng.random() < P["abc".index(one.action), 1] for one in made]
            pool.observe_many([(one.ticket, "cart" if cart else "view") for one, cart in zip(made, seen, strict=True)])
            bought = rng.random(60) < np.where(seen, 0.5, 0.05)
            waits = np.minimum(rng.exponential(3.0, 60), 13.0)
            coming += [(day + waits[i], one.ticket) for i, one in enumerate(made) if bought[i]]
            pool.resolve_many(rewards={ticket: 20.0 for when, ticket in coming if day <= when < day + 1})
            pool.expire()
        export(pool.rows(), folder / "rows.parquet")
    return url, folder / "rows.parquet"


def test_the_pool_s_own_window_and_default_are_used(store):
    found = audit_log(f"{store[0]}#home", **QUICK)
    assert (found.maturity.window, found.maturity.how) == (14 * DAY, "given")
    assert found.unit.outcome(found.maturity.default) == 0
    assert found.document["settings"]["window"] == 14 * DAY
    assert found.counts.rows == found.counts.total == 2_400
    assert audit_log(store[0], window="20d", **QUICK).maturity.window == 20 * DAY


@pytest.mark.soak
def test_an_export_is_read_as_rewards_like_the_database(store):
    here, there = audit_log(store[0], **QUICK), audit_log(store[1], missing=0, window="14d", **QUICK)
    assert here.log.columns.outcome == there.log.columns.outcome == "reward"
    assert here.log.columns.is_reward
    assert there.log.columns.is_reward
    assert there.counts.state_means == pytest.approx(here.counts.state_means, abs=0.02)
    assert audit_log(store[1], outcome="loss", missing="drop", window="14d", **QUICK).log.columns.outcome == "loss"


def test_a_running_pool_is_not_to_be_started(store):
    found = audit_log(store[0], **QUICK)
    assert found.log.runs == "uniform"
    told = replace(found, advice=replace(found.advice, verdict="pool"))
    assert summary_of(told).todo[0].startswith("The pool runs uniform, and self-tuned is right: start another pool: ")
    same = summary_of(replace(told, log=replace(found.log, runs="self-tuned"))).todo
    assert same[0] == "Let the pool go on: it runs self-tuned, which is right for this log."
    assert same[1].startswith("A new pool would start on ")


def test_a_pool_that_is_not_there_is_one_sentence(store):
    with pytest.raises(
        ValueError, match="holds the pools home, expected the name of one after a #, or a table with --table"
    ):
        audit_log(f"{store[0]}#other")


def test_a_young_pool_is_not_told_to_start_no_pool(tmp_path):
    url, now = f"sqlite:///{tmp_path}/young.db", 1.7e9
    with sp.Pool.open(
        url, "home", np.array([[0.8, 0.2], [0.5, 0.5]]), ["a", "b"], ["view", "cart"], reward_bounds=(0, 50),
        window=14 * DAY, clock=lambda: now,
    ) as pool:  # fmt: skip
        for _ in range(2):
            for made in pool.decide_many(30):
                pool.observe(made.ticket, "cart")
            now += DAY
    found = audit_log(f"{url}#home", **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert found.document["advice"]["to_do"] == ["The first window closes in 13 days; ask again then."]


def test_an_old_pool_that_cannot_tell_goes_on(store):
    found = audit_log(store[0], **QUICK)
    unclear = replace(found, advice=replace(found.advice, verdict="cannot tell", expected=()))
    assert summary_of(unclear).todo[1] == "Let the pool go on, then audit again."
