"""Contexts: the map by context, the test, what personalising is worth, and a pool that starts from it."""

import json

import numpy as np
import pytest
from crowded import Crowded, ask, context_alarms, counts_of, crowd, judged_crowds
from generated import write_columns

import statepool as sp
from command_line import statepool
from statepool.audit.context_map import context_maps
from statepool.audit.contrasts import BesideOthers
from statepool.audit.sample import Rows
from statepool.audit.sentences import what_to_do

QUICK = {"horizon": 200, "seconds": 0.1}


@pytest.fixture(scope="module")
def made() -> Crowded:
    return crowd(8, n_contexts=3, n_actions=4, n_rows=12_000, crossed=1.0)


@pytest.fixture(scope="module")
def columns(made):
    rows = made.rows
    return {
        "device": np.array(["phone", "tablet", "desk"], dtype=object)[rows.context],
        "hour": rows.context // 2, "item": np.array([f"item {a}" for a in rows.action], dtype=object),
        "state": rows.state, "converted": 1 - rows.loss, "decided_at": rows.decided, "resolved_at": rows.resolved,
    }  # fmt: skip


@pytest.fixture(scope="module")
def log(columns, tmp_path_factory):
    return write_columns(columns, tmp_path_factory.mktemp("contexts") / "log.parquet")


@pytest.fixture(scope="module")
def audit(log):
    return sp.audit_log(log, context="device", **QUICK)


def test_worth_is_right_on_some_logs():
    found = judged_crowds(range(40_000, 40_006))
    assert np.mean([covers for _, covers, _ in found]) >= 0.6
    clear = [(truth, said) for _, _, (truth, said) in found if truth]
    assert clear
    assert all(said in (truth, "cannot tell") for truth, said in clear)


def test_few_false_alarms():
    assert context_alarms(range(40_000, 40_040), n_rows=4_000) <= 0.15


def test_few_rows_cannot_tell_and_the_rows_named_would():
    few = ask(crowd(1, n_contexts=4, n_actions=6, n_rows=1_000, crossed=0.8), 1)
    assert few.worth.verdict == "cannot tell"
    assert few.more > 0
    more = ask(crowd(1, n_contexts=4, n_actions=6, n_rows=1_000 + 4 * few.more, crossed=0.8), 1)
    assert more.worth.verdict != "cannot tell"


def test_maps_by_context_lean_where_rows_are_few_and_not_where_they_are_many():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(4), 5)
    alike = np.array([rng.multinomial(40, row) for _ in range(6) for row in rows]).reshape(6, 5, 4).astype(float)
    P, strength, lean = context_maps(alike)
    plain = alike / alike.sum(axis=2, keepdims=True)
    assert np.abs(P - rows).mean() < 0.5 * np.abs(plain - rows).mean()
    assert min(strength, lean) > 100
    apart = rng.dirichlet(np.ones(4), (6, 5))
    n = np.array([rng.multinomial(4_000, row) for row in apart.reshape(-1, 4)]).reshape(6, 5, 4).astype(float)
    P, strength, _ = context_maps(n)
    assert strength < 50
    assert np.abs(P - apart).max() < 0.05
    assert np.allclose(P.sum(axis=2), 1)


def test_contrasts_are_least_squares_with_a_mean_for_every_stretch():
    rng = np.random.default_rng(1)
    n, labels = 640, 5
    label, state = rng.integers(labels, size=n), np.repeat([0, 1], n // 2)
    loss = rng.random(n) + 0.1 * label + np.sin(np.arange(n) / 50)
    rows = Rows(label, state, loss, np.arange(n) * 1.0, np.full(n, np.nan), n, True, float(n), np.nan)
    beside = BesideOthers.of(rows, labels)
    dummies = np.zeros((n, labels + beside.sizes.size))
    dummies[np.arange(n), label] = 1
    dummies[np.arange(n), labels + beside.stretch] = 1
    fitted = np.linalg.lstsq(dummies, loss, rcond=None)[0][:labels]
    found = beside.effects
    assert np.allclose(found - found.mean(), fitted - fitted.mean(), atol=0.01)
    weights = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    residual = loss - dummies @ np.linalg.lstsq(dummies, loss, rcond=None)[0]
    covariance = np.linalg.pinv(dummies.T @ dummies) * (residual**2).sum() / (n - np.linalg.matrix_rank(dummies))
    expected = weights @ covariance[:labels, :labels] @ weights
    assert beside.variance(weights, np.zeros(2)) == pytest.approx(expected, rel=0.15)


def test_the_answer(audit, made):
    personal, document = audit.personal, audit.document
    assert personal.worth.verdict == "pays"
    said = document["personalising"]["sentences"][0]
    assert said.startswith("Personalising by device is worth 0.")
    assert "conversions a decision (" in said
    found = document["personalising"]["worth"]
    assert found["lower"] <= made.worth <= found["upper"]
    order = [audit.personal.contexts.names.index(name) for name in ("phone", "tablet", "desk")]
    states = np.argsort([int(state) for state in audit.counts.states])
    assert np.abs(personal.P[order][:, :, states] - made.P).mean() < 0.02
    assert list(document["P"]) == ["desk", "phone", "tablet"]
    assert 1 <= personal.dimension[0] <= personal.dimension[1] <= 5
    assert json.loads(json.dumps(document)) == document


def test_several_columns_are_one_joint_context(columns, log):
    found = sp.audit_log(log, context=["device", "hour"], **QUICK)
    assert found.personal.contexts.names == ("desk / 1", "phone / 0", "tablet / 0")
    assert np.allclose(found.personal.contexts.rows, np.bincount(columns["hour"] * 0 + _order(columns["device"])))


def _order(device):
    return np.searchsorted(["desk", "phone", "tablet"], device.astype(str))


def test_blank_contexts_are_counted_and_enter_all_else(columns, tmp_path):
    device = columns["device"].copy()
    device[:500], device[500:700] = None, " "
    found = sp.audit_log(write_columns(columns | {"device": device}, tmp_path / "log.csv"), context="device", **QUICK)
    assert found.personal.contexts.blank == 700
    assert found.counts.rows == len(device)
    assert any("700 rows have no device" in line for line in found.document["personalising"]["sentences"])


def test_propensities_weigh_the_maps(tmp_path):
    """Actions chosen for a mood that moves the state: counted plainly they look as if they had moved it."""
    rng = np.random.default_rng(5)
    n = 20_000
    context, mood = rng.integers(2, size=n), rng.integers(2, size=n)
    chance = np.where(mood, 0.8, 0.2)
    action = (rng.random(n) < chance).astype(int)
    state = (rng.random(n) < 0.2 + 0.5 * mood + 0.1 * action * context).astype(int)
    loss = (rng.random(n) < 0.3 + 0.4 * state).astype(float)
    columns = {
        "segment": np.array(["old", "new"], dtype=object)[context], "action": action, "state": state, "loss": loss,
        "propensity": np.where(action, chance, 1 - chance), "decided_at": np.arange(n) * 1.0,
    }  # fmt: skip
    found = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), context="segment", **QUICK)
    assert found.personal.contexts.names == ("new", "old")
    assert found.personal.contexts.rows.sum() == n > found.personal.contexts.whole.n.sum()
    assert np.allclose(found.personal.P[0, :, 1], [0.45, 0.55], atol=0.03)
    assert np.allclose(found.personal.P[1, :, 1], [0.45, 0.45], atol=0.03)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("devise", "context column: 'devise' is not known"),
        ("item", "context: is column 'item', which is the action too"),
        ("state", "context: is column 'state', which is the state too"),
        ("converted", "context: is column 'converted', which is the outcome too"),
        (["device", "device"], "context: column 'device' is named twice"),
        ("id", "context: id has 12000 different values for 4 actions"),
        ("nothing", "context: column nothing is blank in every row"),
    ],
)
def test_bad_contexts_are_one_sentence(context, said, columns, tmp_path):
    n = len(columns["device"])
    more = {"id": np.arange(n), "nothing": np.array([""] * n, dtype=object)}
    with pytest.raises(ValueError, match="context") as caught:
        sp.audit_log(write_columns(columns | more, tmp_path / "log.parquet"), context=context, **QUICK)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_context_and_actions_that_are_not_offered(columns, tmp_path):
    one = columns | {"device": np.array(["phone"] * len(columns["device"]), dtype=object)}
    found = sp.audit_log(write_columns(one, tmp_path / "one.parquet"), context="device", **QUICK)
    assert found.personal.worth is None
    assert "device is phone in every row" in found.document["personalising"]["sentences"][0]
    kept = ~((columns["device"] == "desk") & (columns["item"] == "item 0"))
    some = {name: values[kept] for name, values in columns.items()}
    found = sp.audit_log(write_columns(some, tmp_path / "some.parquet"), context="device", **QUICK)
    assert sorted(found.document["P"]["desk"]) == ["item 1", "item 2", "item 3"]
    assert isinstance(found.document["P"]["phone"], list)


def test_long_logs_are_split_where_they_lie(log, audit, monkeypatch):
    monkeypatch.setattr("statepool.audit.sample.MOST_ROWS", 3_000)
    monkeypatch.setattr("statepool.audit.sample.SAMPLED", 2_000)
    found = sp.audit_log(log, context="device", **QUICK)
    assert found.rows.action.size < 3_000
    assert sum(part.n.sum() for part in found.personal.contexts.parts) == found.counts.rows
    assert np.array_equal(found.personal.contexts.whole.n, audit.personal.contexts.whole.n)
    assert np.allclose(np.bincount(found.personal.contexts.part, minlength=4) / found.rows.action.size, 0.25, atol=0.06)


def test_a_pool_starts_from_it(log, tmp_path):
    done = statepool("audit", log, "--context", "device", "--out", tmp_path, "--horizon", 200, "--seconds", 0.1)
    assert done.returncode == 0, done.stderr
    assert "Personalising by device is worth" in " ".join(done.stdout.split())
    from statepool.commands.serve import _open_map
    from statepool.live.stores import open_store

    store = open_store(f"sqlite:///{tmp_path}/pool.db")
    try:
        _open_map(store, tmp_path / "AUDIT.json", "home")
        pool = sp.Pool(store, "home")
        decision = pool.decide(context="tablet")
        pool.observe(decision.ticket, "4")
        pool.resolve(decision.ticket, reward=1.0)
        pool.close()
    finally:
        store.close()
    seen = statepool("dimension", tmp_path / "AUDIT.json", "--json")
    assert json.loads(seen.stdout)["actions"] == 12
    assert any("phone: item" in str(pair) for pair in json.loads(seen.stdout)["pairs"])


def test_counts_of_the_study_are_those_of_the_log(made, audit):
    counts = counts_of(made.rows, 4, 5)
    states = np.argsort([int(state) for state in audit.counts.states])
    assert np.array_equal(counts.n, audit.counts.n[:, states])


def test_actions_that_are_alike_for_all_together_but_not_for_each_context(tmp_path):
    """What one half gains the other loses: nothing to choose for all, much for each."""
    rng, n = np.random.default_rng(3), 12_000
    rows = {("new", "a"): [0.7, 0.2, 0.1], ("new", "b"): [0.3, 0.4, 0.3]}
    rows |= {("known", "a"): [0.3, 0.4, 0.3], ("known", "b"): [0.7, 0.2, 0.1]}
    who, shown = rng.choice(["new", "known"], n), rng.choice(["a", "b"], n)
    step = [int(rng.choice(3, p=rows[pair])) for pair in zip(who, shown, strict=True)]
    won = rng.random(n) < np.array([0.02, 0.1, 0.4])[step]
    lines = (f"{u},{a},s{s},{int(x)}" for u, a, s, x in zip(who, shown, step, won, strict=True))
    path = tmp_path / "log.csv"
    path.write_text("user,action,state,converted\n" + "\n".join(lines) + "\n")
    apart, together = sp.audit_log(path, context="user", **QUICK), sp.audit_log(path, **QUICK)
    assert (apart.advice.verdict, together.advice.verdict) == ("pool", "do not pool")
    assert "alike" in what_to_do(together)[0]
    assert "serve --map" in what_to_do(apart)[0]
