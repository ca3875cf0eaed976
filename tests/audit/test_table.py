"""What a shop was once answered wrongly: each log of the table in the issue, and the answer that is true."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from quick import QUICK
from rich.console import Console
from shops import make_shop

from statepool.audit import audit_log, what_if
from statepool.audit.document import document_of, sections_of, summary_of
from statepool.commands.audit import print_audit


def number(action):
    return int(action.rpartition("-")[2])


def test_blank_unless_bought_is_asked_about_first_and_in_one_sentence(plain_shop, plain_audit):
    with pytest.raises(ValueError, match=r"rows of 'revenue' are blank .* --missing 0 if nothing happened") as asked:
        audit_log(plain_shop.log(0))
    assert "\n" not in str(asked.value)
    assert plain_audit.advice.verdict == "pool"


def test_prices_by_product_rank_by_the_estimate_that_corrects_for_them(priced_shop, priced_audit):
    advice, worth = priced_audit.advice, priced_shop.worth
    assert priced_audit.sufficiency.p < 1e-10
    first = priced_audit.document["starts_on"]
    assert worth[number(first["action"])] >= 0.9 * worth.max()
    low, high = first["interval"]
    assert low <= worth[number(first["action"])] <= high
    asked = what_if(priced_shop.log(0), ["best"], missing=0)[0]
    assert asked.robust.lower <= first["mean"] <= asked.robust.upper
    assert priced_audit.effects.lost.max() <= 1.0
    assert advice.verdict == "pool with corrections"
    assert advice.learner == "self-tuned"


def test_a_state_without_information_is_not_pooled_and_learnt_by_action():
    shop = make_shop(
        4_000_001,
        n_products=10,
        stages=4,
        conversion=0.12,
        prices="large",
        funnel=0.0,
        n_rows=40_000,
        window=10,
        windows=5,
    )
    found = audit_log(shop.log(0), missing=0, **QUICK)
    assert found.advice.verdict == "do not pool"
    assert found.advice.learner == found.document["learner"] == "action-thompson"
    assert shop.worth[number(found.document["actions"][0])] >= 0.9 * shop.worth.max()


def test_products_newer_than_the_window_are_kept_and_marked(plain_shop, tmp_path):
    log = plain_shop.log(0, n_new=2)
    document = audit_log(log, missing=0, window="14d", **QUICK).document
    assert set(document["new_actions"]) <= {"sku-10", "sku-11"}
    assert len(document["actions"]) == len(document["P"]) == 12
    log = log[(log.ts < log.ts.max() - pd.Timedelta("14D")) | (log.sku != "sku-11")]
    late = pd.DataFrame(
        {"sku": "sku-99-new", "stage": ["view", "bounce", "cart"], "revenue": np.nan, "ts": log.ts.max()}
    )
    found = audit_log(pd.concat([log, late]), missing=0, window="14d", **QUICK)
    found.write(tmp_path)
    document = json.loads((tmp_path / "AUDIT.json").read_text())
    assert "sku-99-new" in document["actions"]


def test_a_window_without_a_curve_marks_new_products(plain_shop):
    log = plain_shop.log(0).drop(columns="purchased_at").assign(revenue=lambda log: log.revenue.fillna(0))
    late = pd.DataFrame({"sku": "sku-99-new", "stage": ["view", "bounce"], "revenue": 0.0, "ts": log.ts.max()})
    found = audit_log(pd.concat([log, late]), window="14d", **QUICK).document
    assert found["new_actions"] == ["sku-99-new"] == found["actions"][-1:]


def test_a_purchase_in_the_far_future_does_not_hide_the_window(plain_shop, plain_audit):
    log = plain_shop.log(0)
    log.loc[log.purchased_at.first_valid_index(), "purchased_at"] = pd.Timestamp("2036-01-01")
    found = audit_log(log, missing=0, **QUICK)
    assert found.counts.notes == {"time far from all others": 1}
    assert found.maturity.window == pytest.approx(plain_audit.maturity.window, rel=0.01)


ODD = {
    "outcome without a time of its own": lambda log, row: {"purchased_at": pd.NaT},
    "outcome before its decision": lambda log, row: {"purchased_at": log.ts[row] - pd.Timedelta("3D")},
    "negative outcome": lambda log, row: {"revenue": -20 * log.revenue[row]},
    "time far from all others": lambda log, row: {"ts": pd.Timestamp("1970-01-01")},
}


@pytest.mark.parametrize("why", ODD)
def test_one_odd_purchase_is_named_and_counts_for_no_more_than_itself(why, plain_shop, plain_audit):
    log = plain_shop.log(0)
    row = log.index[log.revenue.notna()][100]
    for column, value in ODD[why](log, row).items():
        log.loc[row, column] = value
    with pytest.raises(ValueError, match="what is a blank"):
        audit_log(log, **QUICK)
    found = audit_log(log, missing=0, **QUICK)
    assert found.counts.notes == {why: 1}
    assert f"Rows: 1 kept ({why})." in summary_of(found).reading
    assert found.advice.verdict == plain_audit.advice.verdict
    assert found.maturity.window == pytest.approx(plain_audit.maturity.window, rel=0.01)
    assert found.counts.state_means == pytest.approx(plain_audit.counts.state_means, abs=0.01)
    assert found.effects.at_most == pytest.approx(plain_audit.effects.at_most, abs=0.01)
    assert found.advice.expected[-1].regret == pytest.approx(plain_audit.advice.expected[-1].regret, rel=0.02)
    assert found.document["settings"]["reward_bounds"] == [-1600.0 if "negative" in why else 0.0, 80.0]


@pytest.mark.parametrize(("text", "read"), [("€{:.2f}", "decimal point"), ("{:.2f} EUR", "decimal point")])
def test_amounts_with_a_currency_are_read_and_said(plain_shop, plain_audit, text, read):
    log = plain_shop.log(0)
    log["revenue"] = log.revenue.map(text.format, na_action="ignore")
    found = audit_log(log, missing=0, **QUICK)
    assert any(read in note for note in found.log.notes)
    assert found.document["starts_on"] == plain_audit.document["starts_on"]


def test_decimal_commas_are_read_if_all_agree(plain_shop, plain_audit):
    log = plain_shop.log(0)
    log["revenue"] = log.revenue.map("{:.2f} €".format, na_action="ignore").str.replace(".", ",")
    assert audit_log(log, missing=0, **QUICK).document["starts_on"] == plain_audit.document["starts_on"]


def test_text_that_is_no_number_is_refused_with_an_example(plain_shop):
    log = plain_shop.log(0)
    log["revenue"] = log.revenue.map(lambda value: f"about {value}", na_action="ignore")
    with pytest.raises(ValueError, match=r"are not numbers, for example 'about 40.0'; expected .* --outcome"):
        audit_log(log, missing=0)


def test_few_unreadable_outcomes_are_dropped_and_counted(plain_shop):
    log = plain_shop.log(0)
    text = log.revenue.astype(object).where(log.revenue.notna(), "0")
    text.iloc[:100] = "?"
    found = audit_log(log.assign(revenue=text), **QUICK)
    assert found.counts.dropped == {"outcome is not a number": 100}


def test_repeated_ids_spellings_and_time_zones_are_named_with_counts(plain_shop):
    log = plain_shop.log(0)
    log["visit_id"] = np.arange(len(log)) % (len(log) - 300)
    log.loc[log.index[:50], "stage"] = log.stage[:50].str.upper() + " "
    zones = np.array(["Z", "+02:00", ""])[np.arange(len(log)) % 3]
    shifted = log.ts + pd.to_timedelta(np.where(zones == "+02:00", 2, 0), unit="h")
    log["ts"] = shifted.dt.strftime("%Y-%m-%dT%H:%M:%S.%f") + zones
    found = audit_log(log, missing=0, **QUICK)
    said = " ".join(found.document["log"]["notes"])
    assert "300 rows repeat a visit_id" in said
    assert "--ticket visit_id" in said
    assert sum(found.counts.merged.values()) == 50
    assert found.counts.n_states == 4
    rows = next(line for line in summary_of(found).reading if line.startswith("Rows: "))
    assert re.search(r"^Rows: 50 merged \(.*'VIEW ' as 'view': \d+", rows)
    assert re.search(r"rejects others: send '(\w+)', not '\w+ '", rows)
    assert said.count("300 rows repeat") == " ".join(summary_of(found).reading).count("300 rows repeat") == 1
    assert f"3 time zones (Z in {len(log) // 3}" in said.replace("none in", "Z in", 0) or "3 time zones" in said
    assert np.allclose(
        np.sort(found.rows.decided),
        np.sort(plain_shop.log(0).ts.astype("int64") / 10 ** (9 if "ns" in str(plain_shop.log(0).ts.dtype) else 6)),
        atol=1e-3,
    )


def test_a_context_that_does_not_pay_is_left_out_of_the_pool(plain_shop):
    log = plain_shop.log(0)
    log["device"] = np.random.default_rng(3).choice(["phone", "desk"], len(log))
    found = audit_log(log, missing=0, context="device", **QUICK)
    assert not found.contexts.pays
    assert isinstance(found.document["P"], list)
    assert "does not pay" in " ".join(summary_of(found).todo)


@pytest.mark.parametrize(
    ("p", "said"), [(0.3, "do not differ beyond"), (0.01, "a hint of direct"), (1e-6, "differ beyond")]
)
def test_one_statement_about_direct_effects_everywhere(p, said, priced_audit):
    for amounts in (False, True):
        corrected = [1.0, p, 1.0, 1.0, *([p] if amounts else [])]
        found = replace(priced_audit, sufficiency=replace(priced_audit.sufficiency, corrected=corrected))
        statement = sections_of(found)[1].lines[0]
        assert said in statement
        assert f"p = {p:.1g})" in statement
        assert any(line.startswith(statement) for line in summary_of(found).reasons)
        assert [row[-1] for row in sections_of(found)[1].tables[0].rows] == [f"{each:.2g}" for each in corrected]
        assert found.sufficiency.effects == document_of(found)["sufficiency"]["direct_effects"]
        assert ("loses" in summary_of(found).reasons[0]) == (said == "differ beyond")


def test_figures_are_in_the_unit_of_the_column(plain_audit):
    found = replace(plain_audit, unit=replace(plain_audit.unit, column="revenue_eur"))
    said = " ".join((*summary_of(found).reasons, *summary_of(found).todo, sections_of(found)[0].tables[0].title))
    assert len(re.findall(r"\d EUR per decision", said)) == 2
    assert said.endswith("in EUR")
    assert "revenue" not in said


def test_actions_drawn_at_random_are_not_asked_for(plain_shop):
    few = plain_shop.log(0).iloc[:300]
    uneven = few[(few.sku < "sku-06") | (few.index % 3 == 0)]
    chosen = few.assign(propensity=np.linspace(0.02, 0.2, 300))
    cases = (few, "drawing actions at random"), (uneven, "Give 10 % of the"), (chosen, "choosing actions as in this")
    for log, said in cases:
        found = audit_log(log, missing=0, window=0, **QUICK)
        assert found.advice.verdict == "cannot tell"
        assert said in summary_of(found).todo[1]


def test_baselines_are_what_people_would_use(plain_audit):
    names = [one.name for one in plain_audit.advice.expected]
    assert names == ["self-tuned", "action-thompson", "state-exp3", "always the first", "blind choice"]
    first = plain_audit.document["actions"][0]
    said = " ".join(summary_of(plain_audit).reasons)
    assert f"Always showing {first} would lose" in said
    assert "Thompson sampling per action" in said


def test_always_showing_the_first_is_compared_with_the_pool_under_its_condition(plain_audit):
    expected = {one.name: one for one in plain_audit.advice.expected}
    said = " ".join(summary_of(plain_audit).reasons)
    found = re.search(
        r"would lose (\S+ revenue|nothing) in 200 simulated decisions, if the log is right and nothing changes\. "
        r"The pool would lose (\S+) revenue in all \(\S+ to \S+\), as it keeps checking the others",
        said,
    )
    own = expected["self-tuned"].regret * plain_audit.unit.scale
    assert float(found[2].replace("\N{NO-BREAK SPACE}", "")) == pytest.approx(own, rel=0.06)


def test_the_simulated_pool_gets_purchases_first_and_the_log_s_curve(plain_shop, plain_audit):
    late = plain_audit.lateness
    assert late.window == round(plain_audit.maturity.window * plain_audit.rows.pace)
    assert late.draws.max() < late.window
    mean = plain_audit.maturity.curve.knots.mean() / 86_400
    true = plain_shop.wait - 1 / (np.exp(1 / plain_shop.wait) - 1)
    assert mean == pytest.approx(14 * true, rel=0.1)


def test_bounds_have_headroom_and_the_log_is_carried_into_the_pool(plain_audit):
    document = plain_audit.document
    low, high = document["settings"]["reward_bounds"]
    assert low == 0
    assert high >= 2 * 40
    assert document["settings"]["default_reward"] == 0
    assert document["settings"]["window"] == pytest.approx(plain_audit.maturity.window)
    states = document["prior"]["states"]
    assert sum(n for _, n in states.values()) == pytest.approx(plain_audit.counts.k.sum(), rel=1e-6)
    assert set(document["prior"]["curve"]) == {"tau", "weight"}


@pytest.fixture(scope="module")
def context_audit(priced_shop):
    device = np.random.default_rng(3).choice(["phone", "desk"], priced_shop.n_rows)
    return audit_log(priced_shop.log(0).assign(device=device), missing=0, context="device", **QUICK)


@pytest.fixture(scope="module")
def unclear_audit(plain_shop):
    return audit_log(plain_shop.log(0).iloc[:900].assign(visit_id=0), missing=0, **QUICK)


@pytest.mark.parametrize("name", ["plain_audit", "priced_audit", "context_audit", "unclear_audit"])
def test_the_terminal_shows_fifteen_lines_at_most(name, request):
    console = Console(width=80, record=True, file=io.StringIO())
    print_audit(request.getfixturevalue(name), console, report=Path("audit/report.html"))
    text = console.export_text()
    assert len(text.strip().splitlines()) <= 15
    assert "e+" not in text
    assert "101" not in text


def test_waits_are_never_told_in_powers_of_ten(plain_shop):
    few = plain_shop.log(0).iloc[:300]
    found = audit_log(few, missing=0, window=0, **QUICK)
    assert found.advice.verdict == "cannot tell"
    said = " ".join(summary_of(found).todo)
    assert "e+" not in said
    assert "would tell" in said
