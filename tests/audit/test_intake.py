"""Logs as they come: a clear sentence or a sensible answer, never a traceback, and every dropped row counted."""

import json

import numpy as np
import pandas as pd
import pytest
from generated import generate, write_columns

from statepool.audit import audit_log, what_if
from statepool.audit.document import sections_of

QUICK = {"horizon": 50}


def lines(path, *rows):
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def usual():
    rng = np.random.default_rng(0)
    state = rng.integers(3, size=600)
    return {
        "action": rng.integers(4, size=600).astype(str).astype(object),
        "state": np.array(["browse", "click", "cart"], dtype=object)[state],
        "loss": (rng.random(600) < np.array([0.9, 0.5, 0.1])[state]).astype(float),
        "decided_at": np.arange(600.0),
        "resolved_at": np.arange(600.0) + 5,
    }


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_every_format_gives_the_same(ending, usual, tmp_path):
    found = audit_log(write_columns(usual, tmp_path / f"log{ending}"), **QUICK)
    assert found.counts.states == ("cart", "click", "browse")
    assert found.counts.rows == 600
    assert found.counts.dropped == {}
    assert found.lateness.time[1] == 5
    same = audit_log(write_columns(usual, tmp_path / "x.parquet"), **QUICK)
    assert np.array_equal(found.map.P, same.map.P)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_frames(package, usual, tmp_path):
    module = pytest.importorskip(package)
    make = module.table if package == "pyarrow" else module.DataFrame
    found = audit_log(make({name: values.tolist() for name, values in usual.items()}), **QUICK)
    assert found.counts.rows == 600
    assert package in found.log.name


def test_missing_values_are_counted_by_reason(tmp_path):
    rows = ["ticket,action,state,loss,decided_at,resolved_at"]
    rows += [f"{i},{'ab'[i % 2]},{'xy'[i % 2]},{i % 2},{i},{i + 3}" for i in range(100)]
    rows += [
        "100,,x,1,100,103",
        "101,a,,1,101,104",
        "102,a,x,oops,102,105",
        "103,a,x,1,,106",
        "104,a,x,,104,",
        "5,a,x,1,5,8",
    ]
    found = audit_log(lines(tmp_path / "log.csv", *rows), **QUICK)
    assert found.counts.dropped == {
        "repeated ticket": 1, "no decision time": 1, "outcome is not a number": 1, "no action": 1, "no state": 1,
    }  # fmt: skip
    assert found.counts.total == 106
    assert found.counts.rows == 101
    assert found.document["log"]["dropped"] == found.counts.dropped


def test_order_does_not_matter(usual, tmp_path):
    order = np.random.default_rng(1).permutation(600)
    sorted_ = audit_log(write_columns(usual, tmp_path / "a.parquet"), **QUICK)
    shuffled = audit_log(write_columns({k: v[order] for k, v in usual.items()}, tmp_path / "b.parquet"), **QUICK)
    first, second = sorted_.document, shuffled.document
    first["log"]["name"] = second["log"]["name"] = ""
    assert first == second


def test_of_a_ticket_seen_twice_the_row_with_an_outcome_is_kept(tmp_path):
    rows = ["ticket,action,state,loss,decided_at", "1,a,x,,0", "1,a,x,1,0", "2,b,y,0,1", "3,a,y,1,2"]
    found = audit_log(lines(tmp_path / "log.csv", *rows), **QUICK)
    assert found.counts.dropped == {"repeated ticket": 1}
    assert found.counts.k.sum() == 3


def test_a_state_never_seen_with_an_outcome(usual, tmp_path):
    usual["state"][:30] = "return"
    usual["loss"][:30] = np.nan
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK)
    assert found.counts.states[-1] == "return"
    assert np.isfinite(found.map.P).all()


def test_one_action_only(usual, tmp_path):
    usual["action"][:] = "only"
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert "only one action" in found.document["advice"]["reasons"][0]


def test_one_state_only(usual, tmp_path):
    usual["state"][:] = "seen"
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert "only one state" in found.advice.missing


def test_where_every_outcome_is_the_same_nothing_else_is_said(usual, tmp_path):
    usual["loss"][:] = 1.0
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), window=0, **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert found.document["advice"]["reasons"] == ["Every outcome is the same."]
    assert "best state" not in found.document["reading"]["sentence"]


@pytest.mark.parametrize("column", ["decided_at", "resolved_at"])
def test_a_time_in_the_far_future_does_not_move_the_end_of_the_log(column, usual, tmp_path):
    usual["resolved_at"][usual["loss"] == 1] = np.nan
    row = np.flatnonzero(usual["loss"] == 0)[-1]
    usual[column][row] = 1e6
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), window=50, **QUICK)
    assert found.counts.notes["time far from all others"] == 1
    assert 590 < found.rows.latest < 610
    assert found.rows.pace == pytest.approx(1.0, rel=0.02)
    assert 40 < (found.rows.decided > found.maturity.cut).sum() <= 51


def test_outcomes_of_any_range_are_read(usual, tmp_path):
    usual["loss"] = usual["loss"] * 40 - 10
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK)
    assert found.counts.loss.min() >= 0
    assert (found.counts.loss <= found.counts.k).all()
    assert found.document["settings"]["loss_bounds"] == [-20, 60]


def test_rewards_are_turned_into_losses(usual, tmp_path):
    plain = audit_log(write_columns(usual, tmp_path / "a.parquet"), **QUICK)
    usual["reward"] = 1 - usual.pop("loss")
    turned = audit_log(write_columns(usual, tmp_path / "b.parquet"), **QUICK)
    assert turned.counts.loss == pytest.approx(plain.counts.loss)
    assert turned.log.columns.is_reward


def test_mixed_types(tmp_path):
    states, losses = [1, "x", 2.5], [0, True, "0.5", 1.0]
    made = [
        {"action": i % 7 if i % 2 else str(i % 4), "state": states[i % 3], "loss": losses[i % 4]} for i in range(400)
    ]
    rows = [json.dumps(row) for row in made]
    found = audit_log(lines(tmp_path / "log.jsonl", *rows, "{broken", '"not an object"'), **QUICK)
    assert found.counts.n_states == 3
    assert found.counts.rows == 400
    assert sum(found.counts.dropped.values()) == 2


def test_ragged_and_undecodable_lines(tmp_path):
    path = tmp_path / "log.csv"
    good = "".join(f"{'ab'[i % 2]},{'xy'[i // 2 % 2]},{i % 2}\n" for i in range(50))
    path.write_bytes(b"action,state,loss\n" + good.encode() + b"a\n" + b"a,\xff\xfe,1\n" + b"b,x,1,7,8\n")
    found = audit_log(path, **QUICK)
    assert found.counts.total == 53
    assert found.counts.rows + sum(found.counts.dropped.values()) == 53


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".txt"])
def test_empty_files(ending, tmp_path):
    path = tmp_path / f"log{ending}"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"log.*(is empty|ends in)"):
        audit_log(path)


def test_header_only(tmp_path):
    with pytest.raises(ValueError, match=r"log\.csv: has no rows"):
        audit_log(lines(tmp_path / "log.csv", "action,state,loss"))


def test_ten_thousand_actions_with_one_row_each(tmp_path):
    rng = np.random.default_rng(0)
    n = 10_000
    state = rng.integers(5, size=n)
    columns = {"action": np.arange(n), "state": state, "loss": rng.integers(2, size=n), "decided_at": np.arange(n)}
    found = audit_log(write_columns(columns, tmp_path / "log.parquet"), horizon=100)
    assert found.counts.n_actions == n
    assert found.sufficiency.p > 0.01
    assert np.isfinite(found.effects.price)


def test_odd_times_and_propensities(usual, tmp_path):
    usual["decided_at"][:5] = np.nan
    usual["decided_at"][5] = np.inf
    usual["resolved_at"][6:9] = -1.0
    usual["resolved_at"][9] = np.inf
    usual["propensity"] = np.full(600, 0.25)
    usual["propensity"][:20] = [0, -1, 2, np.nan] * 5
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK)
    assert found.counts.dropped == {"no decision time": 6}
    assert "3 outcome before its decision" in found.document["log"]["notes"]
    assert found.counts.notes["propensity outside (0, 1]"] == 10
    assert found.counts.weighted


def test_the_end_of_the_log_is_its_last_time_of_any_kind(usual, tmp_path):
    usual["resolved_at"][usual["state"] == "browse"] = np.nan
    usual["resolved_at"][0], usual["state"][0] = 700.0, "cart"
    assert audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK).rows.latest == 700


def test_dates_are_seconds(tmp_path):
    rows = ["action,state,loss,decided_at,resolved_at"]
    for i in range(300):
        clock = f"{i // 60:02}:{i % 60:02}:00"
        rows.append(f"{'ab'[i % 2]},{'xy'[i // 2 % 2]},{i % 2},2024-01-01T{clock}Z,2024-01-02 {clock}")
    found = audit_log(lines(tmp_path / "log.csv", *rows), **QUICK)
    assert found.seconds
    assert found.lateness.time[1] == 86_400


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"action": "acton"}, r"action column: 'acton' is not known; did you mean action\?"),
        ({"state": "action"}, r"state: is column 'action', which is the action too"),
        ({"outcome": "state"}, r"outcome: is column 'state', which is the state too"),
        ({"seed": -1}, "seed: is -1"),
        ({"horizon": 0}, "horizon: is 0"),
        ({"delay": -1}, "delay: is -1"),
        ({"level": 2}, "level: is 2"),
    ],
)
def test_wrong_settings(settings, message, usual, tmp_path):
    with pytest.raises(ValueError, match=message):
        audit_log(write_columns(usual, tmp_path / "log.parquet"), **settings)


def test_wrong_sources(tmp_path):
    with pytest.raises(ValueError, match="is not a file"):
        audit_log(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="log: is list, expected"):
        audit_log([1, 2])
    with pytest.raises(ValueError, match=r"cannot be read as a log"):
        audit_log(lines(tmp_path / "log.parquet", "no parquet"))
    with pytest.raises(ValueError, match=r"state: no column is called state or"):
        audit_log(lines(tmp_path / "log.csv", "action,loss", "a,1"))


def test_too_many_states(tmp_path):
    columns = {"action": np.zeros(3_000), "state": np.arange(3_000), "loss": np.zeros(3_000)}
    with pytest.raises(ValueError, match=r"state: has 3000 different values.*right column"):
        audit_log(write_columns(columns, tmp_path / "log.parquet"))


def test_a_large_log_is_sampled_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("statepool.audit.counts.MOST_ROWS", 5_000)
    monkeypatch.setattr("statepool.audit.counts.SAMPLED", 2_500)
    made = generate(0, n_actions=10, n_rows=20_000)
    found = audit_log(made.write(tmp_path / "log.parquet"), **QUICK)
    assert found.counts.rows == 20_000
    assert 2_000 < found.rows.action.size < 3_000
    assert found.lateness.time[1] == pytest.approx(100 * np.log(2), rel=0.25)


@pytest.mark.parametrize("row", [b"\xff,x,1\n", b"a,\xff,1\n"])
def test_undecodable_lines_are_counted_in_whichever_column(row, tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"action,state,loss\n" + 20 * row + 15 * b"a,x,1\nb,y,0\n")
    found = audit_log(path, **QUICK)
    assert (found.counts.total, found.counts.dropped) == (50, {"line cannot be read": 20})


def test_an_undecodable_line_of_json_is_counted(tmp_path):
    path = tmp_path / "log.jsonl"
    row = b'{"action": "%s", "state": "x", "loss": 1}\n'
    path.write_bytes(9 * (row % b"a" + row % b"b") + row % b"\xff")
    found = audit_log(path, **QUICK)
    assert (found.counts.total, found.counts.dropped) == (19, {"line cannot be read": 1})


def test_line_breaks_inside_quotes(tmp_path):
    found = audit_log(lines(tmp_path / "log.csv", "action,state,loss", *20 * ['"a, 1","x\ny",1', "b,y,0"]), **QUICK)
    assert found.counts.states == ("y", "x\ny")
    assert found.counts.rows == 40


def test_a_range_that_is_not_finite(usual, tmp_path):
    usual["loss"] = np.resize([-1e308, 1e308], 600)
    with pytest.raises(ValueError, match=r"outcome: runs from .* expected a finite range"):
        audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK)


def test_a_window_longer_than_the_log(usual, tmp_path):
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), window=10_000, **QUICK)
    assert found.advice.verdict == "cannot tell"
    assert "window is as long as the log" in found.advice.missing
    found.write(tmp_path / "out")


@pytest.mark.parametrize("window", ["soon", "-3d", -1, "3 fortnights", True, [1]])
def test_a_window_that_is_no_length_of_time(window, usual, tmp_path):
    with pytest.raises(ValueError, match=r"window: is .* expected a length of time"):
        audit_log(write_columns(usual, tmp_path / "log.parquet"), window=window)


@pytest.mark.parametrize(("name", "kind"), [("revenue", "rewards"), ("is_converted", "rewards"), ("churned", "losses")])
def test_which_way_is_good_is_read_from_the_name(name, kind, usual, tmp_path):
    usual[name] = usual.pop("loss")
    found = audit_log(write_columns(usual, tmp_path / "log.parquet"), **QUICK).document["reading"]
    assert found["outcomes_are"] == kind


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("amount_eur", "rewards", "EUR"), ("revenue_usd", "rewards", "USD"), ("order_value", "rewards", "order_value"),
        ("Revenue (€)", "rewards", "€"), ("delay_minutes", "losses", "minutes"),
        ("orderValue", "rewards", "orderValue"),
    ],
)  # fmt: skip
def test_outcomes_are_found_with_their_unit_which_every_figure_is_in(name, kind, unit, usual, tmp_path):
    usual[name] = 40 * usual.pop("loss")
    log = write_columns(usual, tmp_path / "log.parquet")
    found = audit_log(log, **QUICK)
    reading = found.document["reading"]
    assert (found.log.columns.outcome, reading["outcomes_are"], reading["unit"]) == (name, kind, unit)
    shown = {heading for section in sections_of(found) for table in section.tables for heading in table.headings}
    assert {f"mean {unit}", f"{unit} per decision"} <= shown
    assert what_if(log, ["best"])[0].unit == unit


def test_one_question_at_a_time_with_the_option_that_answers_it(tmp_path):
    log, named = lines(tmp_path / "log.csv", "thing,seen,gained", "a,b,1"), {}
    for part, column in (("action", "thing"), ("state", "seen"), ("outcome", "gained")):
        with pytest.raises(ValueError, match=rf"^{part}: [^;]*; expected one of [^;]* to be named with --{part}$"):
            audit_log(log, **named)
        named[part] = column
    with pytest.raises(ValueError, match=r"^outcome: the name 'gained' .* --reward if more is better, --loss"):
        audit_log(log, **named)


@pytest.mark.parametrize("name", ["y", "outcome", "measure_eur"])
def test_a_name_that_does_not_say_which_way_is_good_is_asked_about(name, usual, tmp_path):
    usual[name] = 40 * usual.pop("loss")
    log = write_columns(usual, tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=rf"outcome: the name '{name}' .* --reward if .* --loss if") as asked:
        audit_log(log, outcome=name, **QUICK)
    assert "\n" not in str(asked.value)
    assert audit_log(log, outcome=name, reward=True, **QUICK).document["reading"]["outcomes_are"] == "rewards"


def test_undated_outcomes_are_said_to_leave_the_window_open(usual, tmp_path):
    del usual["resolved_at"]
    log = write_columns(usual, tmp_path / "log.parquet")
    assert "window is not known" in audit_log(log, **QUICK).document["window"]["sentence"]
    assert audit_log(log, window=0, **QUICK).document["window"]["sentence"] == ""
    del usual["decided_at"]
    untimed = write_columns(usual, tmp_path / "untimed.parquet")
    assert "--decided COLUMN and --window" in audit_log(untimed, **QUICK).document["window"]["sentence"]


@pytest.fixture
def shop_export():
    """A log whose names are those of a spreadsheet, with times that no name gives away."""
    rng = np.random.default_rng(1)
    state, start = rng.integers(3, size=1_200), np.datetime64("2026-03-01")
    visited = start + np.sort(rng.integers(40 * 86_400, size=1_200)) * np.timedelta64(1, "s")
    sold = rng.random(1_200) < np.array([0.02, 0.1, 0.5])[state]
    bought = visited + rng.integers(1, 5 * 86_400, size=1_200) * np.timedelta64(1, "s")
    return pd.DataFrame({
        "visit_id": np.arange(1_200), "product": rng.integers(4, size=1_200).astype(str),
        "Funnel Step": np.array(["view", "cart", "pay"])[state], "revenue (EUR)": np.where(sold, 20.0, 0.0),
        "visited": visited.astype(str), "bought": np.where(sold, bought.astype(str), ""),
    })  # fmt: skip


def test_names_with_blanks_capitals_and_units_are_found(shop_export):
    found = audit_log(shop_export, window=0, **QUICK).log.columns
    assert (found.action, found.state, found.outcome) == ("product", "Funnel Step", "revenue (EUR)")
    assert (found.decided, found.resolved) == (None, None)
    assert audit_log(shop_export.assign(revenue=1.0), window=0, **QUICK).log.columns.outcome == "revenue"


def test_columns_of_times_without_a_part_are_asked_about(shop_export):
    question = (
        "is 'visited' the time of decision and 'bought' the time of outcome.*--decided visited --resolved bought if so"
    )
    with pytest.raises(ValueError, match=question + r".*--decided visited --window 14d.*--window 0 if they always"):
        audit_log(shop_export, **QUICK)
    with pytest.raises(ValueError, match=r"is 'bought' the time of outcome.*--resolved bought if so, --window 14d"):
        audit_log(shop_export, decided="visited", **QUICK)
    with pytest.raises(ValueError, match=r"is 'visited' the time of decision.*--decided visited if so"):
        what_if(shop_export, ["best"], columns={"resolved": "bought"})
    found = audit_log(shop_export, decided="visited", resolved="bought", **QUICK)
    assert found.maturity.how == "found"


def test_a_day_beside_the_moment_and_a_log_without_times_are_not_asked_about(shop_export):
    log = shop_export.drop(columns=["bought"]).rename(columns={"visited": "ts"})
    found = audit_log(log.assign(day=log.ts.str[:10]), **QUICK)
    assert "--window 14d" in found.document["window"]["sentence"]
    untimed = audit_log(log.drop(columns="ts"), **QUICK).document["window"]["sentence"]
    assert "--decided COLUMN and --window 14d" in untimed


def test_times_and_named_columns_are_not_offered_as_the_outcome(shop_export):
    log = shop_export.drop(columns="revenue (EUR)").assign(paid=1.0)
    with pytest.raises(ValueError, match=r"outcome: no column .* expected one of visit_id, paid to be named"):
        audit_log(log, **QUICK)
    log = log.rename(columns={"paid": "sales"}).assign(bought=shop_export.index)
    assert audit_log(log, decided="visited", resolved="bought", window=0, **QUICK).log.columns.outcome == "sales"
