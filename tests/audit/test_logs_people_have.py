"""Logs of the shapes that shops keep, each with a truth that is known: the answer is the true one, or *cannot tell*."""

import io
import json

import numpy as np
import pytest
from generated import generate, write_columns
from rich.console import Console
from windowed import DAY, make_windowed

import statepool as sp
from statepool.audit import sentences
from statepool.commands.audit import print_audit
from statepool.commands.serve import _open_map
from statepool.live.stores import open_store

QUICK = {"horizon": 300, "seconds": 0.1}
STAGES = np.array(["checkout", "cart", "browse", "bounce"], dtype=object)


def shop(seed=0, n=12_000, K=6, days=180.0, window=30.0, chances=(0.6, 0.35, 0.1, 0.02)):
    """A shop whose state is all that matters: items, funnel stages, conversions within a window, constant means."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, 1.0), K)
    item = rng.integers(K, size=n)
    stage = (rng.random(n)[:, None] > P[item].cumsum(axis=1)).sum(axis=1).clip(0, 3)
    decided = np.sort(rng.uniform(0, days * DAY, n))
    won = rng.random(n) < np.array(chances)[stage]
    wait = np.minimum(rng.exponential(8 * DAY, n), window * DAY)
    return rng, item, stage, decided, won, wait


def test_blank_unless_converted_is_refused_with_the_ways_out(tmp_path):
    _, item, stage, decided, won, _ = shop()
    columns = {"item_id": item, "funnel_stage": STAGES[stage], "converted": np.where(won, 1.0, np.nan), "ts": decided}
    path = write_columns(columns, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"every recorded 'converted' is 1 .* --missing 0 .* --missing drop"):
        sp.audit_log(path, **QUICK)
    found = sp.audit_log(path, missing=0, **QUICK)
    assert found.advice.verdict == "pool"
    assert found.counts.k.sum() == 12_000
    late = found.lateness
    assert late.come + late.waiting + late.gone == pytest.approx(1)


@pytest.mark.parametrize("window", ["30d", None])
def test_outcomes_of_a_window_that_is_not_over_are_not_drift(window, tmp_path):
    _, item, stage, decided, won, wait = shop(1)
    known = decided + np.where(won, wait, 30 * DAY)
    loss = np.where(known <= decided[-1], 1.0 - won, np.nan)
    times = np.where(known <= decided[-1], known, np.nan)
    columns = {"action": item, "state": STAGES[stage], "loss": loss, "decided_at": decided, "resolved_at": times}
    full = columns | {"loss": 1.0 - won, "resolved_at": known}
    told = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), window=window, **QUICK)
    naive = sp.audit_log(tmp_path / "log.parquet", window=0, **QUICK)
    true = sp.audit_log(write_columns(full, tmp_path / "full.parquet"), window=0, **QUICK)
    assert told.maturity.window == pytest.approx(30 * DAY, rel=0.01)
    assert max(told.drift.spread) <= 0.03 + 1.5 * max(true.drift.spread)
    assert told.drift.floor <= 1 + 1.5 * true.drift.floor
    assert max(naive.drift.spread) > 0.05  # the trap is one
    assert told.counts.n.sum() == 12_000  # immature rows enter the map


def test_zeros_of_the_last_month_are_not_outcomes_yet(tmp_path):
    _, item, stage, decided, won, wait = shop(2)
    come = won & (decided + wait <= decided[-1])
    columns = {
        "sku": item, "step": STAGES[stage], "converted": come.astype(int), "event_time": decided,
        "converted_at": np.where(come, decided + wait, np.nan),
    }  # fmt: skip
    found = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), **QUICK)
    assert found.maturity.how == "found"
    assert 0.9 * 30 * DAY < found.maturity.window < 1.1 * 30 * DAY
    assert found.lateness.waiting > 0.1
    assert max(found.drift.spread) < 0.03
    sentence = found.document["window"]["sentence"]
    assert "Assumed" in sentence
    assert "--window 0" in sentence
    assert found.document["settings"]["default_loss"] == 1.0
    assert found.document["settings"]["expire_after"] == found.maturity.window


def test_a_log_that_tried_one_action_cannot_tell(tmp_path):
    rng = np.random.default_rng(0)
    made = generate(0, n_actions=10, n_rows=30_000, drift=0.0)
    action = np.where(rng.random(30_000) < 0.986, 3, rng.integers(10, size=30_000))
    state = (rng.random(30_000)[:, None] > made.P[action].cumsum(axis=1)).sum(axis=1).clip(0, 5)
    loss = (rng.random(30_000) < made.means[0][state]).astype(float)
    columns = {"action": action, "state": state, "loss": loss, "decided_at": np.arange(30_000.0) * 60}
    found = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert found.advice.needed.holdout
    assert "a holdout of 10%" in found.document["advice"]["would_change_it"][0]


def test_two_hundred_rows_cannot_tell(tmp_path):
    found = sp.audit_log(generate(5, n_actions=8, n_rows=200).write(tmp_path / "log.parquet"), **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert found.advice.needed.more > 200
    assert "more rows" in found.document["advice"]["would_change_it"][0]


def test_nothing_is_mature_yet(tmp_path):
    made = make_windowed(3, kind="blank until known, all dated", n_rows=4_000)
    path = write_columns(made.columns(), tmp_path / "log.parquet")
    span = made.decided[-1] - made.decided[0]
    found = sp.audit_log(path, window=2 * span, **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert "window" in found.advice.missing
    assert "wait for about" in found.document["advice"]["would_change_it"][0]
    page = found.write(tmp_path / "report").read_text()
    print_audit(found, Console(width=100, file=(told := io.StringIO())))
    for invented in ("In none of", "regret", "as good", "drift", "worth merging", "What each state is worth"):
        assert invented not in "\n".join(sentences.reasons(found))
        assert invented not in told.getvalue().replace("no mean, drift", "")
        assert invented not in page.replace("no mean, drift", "")
    assert "behave like" in told.getvalue()  # the map needs no outcome


@pytest.fixture(scope="module")
def large():
    """Half a million rows in which the action matters a great deal beyond the state."""
    rng = np.random.default_rng(0)
    n = 500_000
    action, state = rng.integers(2, size=n), rng.integers(2, size=n)
    loss = (rng.random(n) < np.where(action == state, 0.3, 0.7) - 0.2 * action).astype(int)
    return {"action": action, "state": state, "loss": loss}


@pytest.mark.parametrize("times", ["none", "days", "moments"])
def test_a_long_log_is_sampled_by_rows_not_by_cells(times, large, tmp_path):
    n = large["loss"].size
    clock = {
        "none": {},
        "days": {"decided_at": np.arange(n) // 5_000 * DAY},
        "moments": {"decided_at": np.arange(n) * 7.3},
    }
    columns = large | clock[times]
    found = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), **QUICK)
    assert found.advice.verdict == "do not pool"
    rows = found.rows
    assert 100_000 < rows.action.size < 140_000
    cells = np.bincount(rows.action * 2 + rows.state, minlength=4) / rows.action.size
    assert cells == pytest.approx(found.counts.n.ravel() / n, abs=0.005)
    if times != "none":
        stretches = np.histogram(rows.decided, 10)[0] / rows.action.size
        assert stretches == pytest.approx(np.full(10, 0.1), abs=0.01)


def test_however_a_long_log_is_stored_the_sample_is_the_same(large, tmp_path):
    n = large["loss"].size
    columns = large | {"decided_at": np.arange(n) * 7.3}
    order = np.random.default_rng(1).permutation(n)
    one = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), **QUICK)
    (tmp_path / "parts").mkdir()
    for i, part in enumerate(np.array_split(order, 40)):
        write_columns({k: v[part] for k, v in columns.items()}, tmp_path / "parts" / f"{i:02}.parquet")
    many = sp.audit_log(tmp_path / "parts", **QUICK)
    documents = [json.loads(json.dumps(audit.document)) for audit in (one, many)]
    for document in documents:
        document["log"]["name"] = ""
    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("converted", "rewards"), ("total_revenue", "rewards"), ("purchase", "rewards"), ("clicked", "rewards"),
     ("returned", "losses"), ("churned", "losses"), ("isChurned", "losses")],
)  # fmt: skip
def test_which_way_is_good_is_read_off_the_name(name, kind, tmp_path):
    _, item, stage, decided, won, _ = shop(3, n=3_000)
    path = write_columns(
        {"variant": item, "stage": STAGES[stage], name: won.astype(int), "ts": decided}, tmp_path / "x.csv"
    )
    found = sp.audit_log(path, outcome=name, **QUICK)
    best = "checkout" if kind == "rewards" else "bounce"
    assert found.counts.states[0] == best
    assert found.document["reading"]["sentence"].startswith(
        f"Outcomes ({name}) are read as {kind}, by its name: best state {best}"
    )
    turned = sp.audit_log(path, outcome=name, reward=kind == "losses", **QUICK)
    assert turned.counts.states[-1] == best


def test_a_direction_nobody_told_is_said_to_be_assumed(tmp_path):
    _, item, stage, decided, won, _ = shop(3, n=3_000)
    path = write_columns(
        {"variant": item, "stage": STAGES[stage], "outcome": won.astype(int), "ts": decided}, tmp_path / "x.csv"
    )
    assert "assumed; --reward turns it round" in sp.audit_log(path, **QUICK).document["reading"]["sentence"]


def test_the_learner_advised_is_beaten_by_none_in_its_own_table(tmp_path):
    for seed in range(2):
        made = generate(seed, n_actions=12, n_rows=20_000, shared=0.06)
        found = sp.audit_log(made.write(tmp_path / "log.parquet"), horizon=3_000, seconds=0.1, seed=seed)
        for expected in found.advice.expected:
            assert expected.behind >= -2 * expected.behind_error - 1e-9, (seed, expected)


def test_near_ties_are_called_ties(tmp_path):
    made = generate(0, n_actions=12, n_rows=20_000, shared=0.06)
    found = sp.audit_log(made.write(tmp_path / "log.parquet"), horizon=300, seconds=0.1)
    assert found.advice.ties
    assert "as good within noise" in " ".join(found.document["advice"]["reasons"])


def test_revenue_is_reported_in_its_own_unit_and_a_pool_takes_it(tmp_path):
    rng, item, stage, decided, won, _ = shop(4, n=20_000)
    revenue = np.where(won, rng.uniform(10, 90, won.size), 0.0)
    path = write_columns(
        {"item": item, "stage": STAGES[stage], "revenue": revenue, "ts": decided}, tmp_path / "log.parquet"
    )
    found = sp.audit_log(path, rescale=True, **QUICK)
    assert found.unit.name == "revenue"
    means = {row["state"]: row["mean"] for row in found.document["sufficiency"]["states"]}
    assert means["checkout"] == pytest.approx(revenue[stage == 0].mean(), rel=1e-6)
    settings = found.document["settings"]
    assert settings["reward_bounds"] == [0.0, pytest.approx(90, abs=0.1)]
    found.write(tmp_path / "audit")
    store = open_store(f"sqlite:///{tmp_path}/p.db")
    _open_map(store, tmp_path / "audit" / "AUDIT.json", "home")  # what `serve --map` does
    with sp.Pool.open(store, "home") as pool:
        decision = pool.decide()
        pool.observe(decision.ticket, "checkout")
        pool.resolve(decision.ticket, reward=42.0)
    store.close()


@pytest.mark.parametrize("window", ["soon", "-3d", -1, "3 fortnights", True, [1]])
def test_a_window_that_is_no_length_of_time(window, tmp_path):
    path = generate(0, n_actions=3, n_rows=100).write(tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"window: is .* expected a length of time"):
        sp.audit_log(path, window=window)


@pytest.mark.parametrize("window", ["30", 30, "1e3"])
def test_a_bare_number_is_no_window_where_times_are_dates(window, tmp_path):
    days = [f"2026-01-{day:02}" for day in range(1, 21)]
    columns = {"action": [0, 1] * 10, "state": [0, 0, 1, 1] * 5, "loss": [0, 1, 1, 0] * 5, "decided_at": days}
    path = write_columns(columns, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=rf"window: is {window!r}, expected a unit, such as 30d, 12h or 30s"):
        sp.audit_log(path, window=window)
    assert sp.audit_log(path, window="0", **QUICK).maturity.window is None
    numbers = write_columns(columns | {"decided_at": list(range(20))}, tmp_path / "numbers.parquet")
    assert sp.audit_log(numbers, window=window, **QUICK).maturity.window == float(window)


def test_a_window_without_decision_times_and_odd_blanks(tmp_path):
    path = write_columns({"action": [0, 1], "state": [0, 1], "loss": [0, 1]}, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="window: needs decision times"):
        sp.audit_log(path, window="3d")
    with pytest.raises(ValueError, match="missing: is 'maybe', expected a number"):
        sp.audit_log(path, missing="maybe")


def test_everything_missing_is_said_at_once(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("when,what\n1,2\n")
    with pytest.raises(
        ValueError, match=r"(?s)action: no column.*state: no column.*outcome: no column.*--action, --state, --outcome"
    ):
        sp.audit_log(path)


@pytest.mark.parametrize("timed", [True, False])
def test_figures_of_a_sample_are_those_of_the_whole_log(timed, tmp_path, monkeypatch):
    made = generate(7, n_actions=10, n_rows=120_000, shared=0.1)
    columns = {"action": made.action, "state": made.state, "loss": made.loss}
    columns |= {"decided_at": made.decided, "resolved_at": made.resolved} if timed else {}
    path = write_columns(columns, tmp_path / "log.parquet")
    whole = sp.audit_log(path, **QUICK)
    monkeypatch.setattr("statepool.audit.sample.MOST_ROWS", 50_000)
    monkeypatch.setattr("statepool.audit.sample.SAMPLED", 40_000)
    part = sp.audit_log(path, **QUICK)
    assert part.rows.action.size < 50_000 < whole.rows.action.size
    assert part.advice.verdict == whole.advice.verdict
    assert np.array_equal(part.map.P, whole.map.P)
    for first, second in zip(part.sufficiency.states, whole.sufficiency.states, strict=True):
        assert abs(first.size - second.size) < 3 * np.hypot(first.size_error, second.size_error)
    assert part.effects.blind == pytest.approx(whole.effects.blind, abs=0.03)
    if timed:
        assert part.lateness.decisions[1] == pytest.approx(whole.lateness.decisions[1], rel=0.1)
        assert part.drift.spread == pytest.approx(whole.drift.spread, abs=0.02)
