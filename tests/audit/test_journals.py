"""From live to audit and back: a pool's journal is a log, and an audit's map starts a pool."""

import json

import numpy as np
import pytest

import statepool as sp
from statepool.audit import advice
from statepool.commands.serve import _open_map
from statepool.live.stores import open_store

P = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
STATES, LOSSES = ["bounce", "browse", "cart"], [0.9, 0.5, 0.1]


@pytest.fixture
def file(tmp_path):
    """300 decisions, every tenth without an outcome: expired."""
    draws, now = np.random.default_rng(0), [0.0]
    path = tmp_path / "pool.db"
    settings = {"expire_after": 500.0, "default_loss": 1.0, "clock": lambda: now[0], "seed": 1}
    with sp.Pool.open(f"sqlite:///{path}", "home", P, list("abc"), STATES, sp.Uniform(), **settings) as pool:
        for t, decision in enumerate(pool.decide_many(300)):
            state = int(draws.choice(3, p=P["abc".index(decision.action)]))
            now[0] = float(t)
            pool.observe(decision.ticket, STATES[state])
            if t % 10:
                pool.resolve(decision.ticket, loss=float(draws.random() < LOSSES[state]))
        now[0] = 10_000.0
        assert pool.expire() == 30
    return path


def test_a_journal_is_a_log(file):
    found = sp.audit_log(file, horizon=500, seconds=0.5)
    assert list(found.counts.actions) == ["a", "b", "c"]
    assert found.document["log"]["rows"] == 300
    assert found.document["log"]["with_outcome"] == 270
    assert found.document["delays"]["missing"] == 30


def test_several_pools_are_not_guessed_at(file):
    sp.Pool.open(f"sqlite:///{file}", "other", P, list("abc"), STATES).close()
    with pytest.raises(ValueError, match="holds 2 pools"):
        sp.audit_log(file)


def test_an_audit_starts_a_pool(file, tmp_path):
    found = sp.audit_log(file, horizon=500, seconds=0.5)
    found.write(tmp_path / "audit")
    written = tmp_path / "audit" / "AUDIT.json"
    document = json.loads(written.read_text())
    document["learner"] = "self-tuned"  # whatever so short a log advises
    written.write_text(json.dumps(document))
    store = open_store(f"sqlite:///{tmp_path}/live.db")
    try:
        _open_map(store, written, "home")
        with sp.Pool.open(store, "home") as pool:
            assert pool.decide().action in ("a", "b", "c")
    finally:
        store.close()


def test_settings_of_the_learner_are_not_the_pools(file, tmp_path, monkeypatch):
    """A learner that is advised with settings of its own is started with them."""
    tried = advice.CandidateLearner("pooled-greedy", advice.POOL, (("exploration", 0.1),))
    monkeypatch.setattr(advice, "CANDIDATES", (tried,))
    monkeypatch.setattr("statepool.audit.audit.judge", lambda *_: advice.Verdict(advice.POOL))
    found = sp.audit_log(file, horizon=500, seconds=0.5)
    found.write(tmp_path / "audit")
    store = open_store(f"sqlite:///{tmp_path}/live.db")
    try:
        _open_map(store, tmp_path / "audit" / "AUDIT.json", "home")
        with sp.Pool.open(store, "home") as pool:
            assert pool._fold().learner == sp.PooledGreedy(exploration=0.1)
    finally:
        store.close()
