"""The order of the actions in AUDIT.json: a pool starts on the first."""

import json

import numpy as np
import pandas as pd
import pytest

import statepool as sp
from statepool.audit import sentences

LABELS = ["aardvark", "badger", "zebra"]
"""In the order of the alphabet, and from the worst to the best."""


def log(rows, cart=(0.1, 0.3, 0.6), played=(0.6, 0.3, 0.1), own=(0.0, 0.0, 0.0)):
    rng = np.random.default_rng(4)
    actions = rng.choice(3, p=played, size=rows)
    states = rng.random(rows) < np.array(cart)[actions]
    bought = rng.random(rows) < np.where(states, 0.5, 0.1) + np.array(own)[actions]
    named = [LABELS[a] for a in actions]
    return pd.DataFrame({"item": named, "state": np.where(states, "cart", "left"), "converted": bought.astype(int)})


@pytest.fixture(scope="module")
def pooling():
    return sp.audit_log(log(6_000), horizon=200)


def test_a_pool_starts_on_the_action_that_looks_best(pooling, tmp_path):
    assert pooling.advice.verdict == "pool"
    pooling.write(tmp_path)
    found = json.loads((tmp_path / "AUDIT.json").read_text())
    assert found["actions"] == ["zebra", "badger", "aardvark"]
    assert [row[found["states"].index("cart")] for row in found["P"]] == pytest.approx([0.6, 0.3, 0.1], abs=0.05)
    assert found["map"]["visits"] == sorted(found["map"]["visits"])
    assert found["pooling"]["predicted"] == sorted(found["pooling"]["predicted"])
    assert found["starts_on"]["cannot_be_told_from"] == []
    low, high = found["starts_on"]["interval"]
    assert low < 1 - 0.1 - 0.4 * 0.6 < high
    with sp.Pool.open(
        f"sqlite:///{tmp_path}/pool.db", "home", found["P"], found["actions"], found["states"], seed=1
    ) as pool:
        assert pool.decide().action == "zebra"


def test_monday_names_it_with_its_interval(pooling):
    said = " ".join(sentences.what_to_do(pooling))
    assert "It starts on zebra, which looks best through the states: 0.3" in said
    assert "conversions a decision (95%: 0." in said
    assert "cannot tell" not in said


def test_those_that_cannot_be_told_apart_are_named():
    found = sp.audit_log(log(20_000, cart=(0.1, 0.6, 0.6), played=(0.4, 0.3, 0.3)), horizon=200)
    assert found.advice.verdict == "pool"
    assert "the log cannot tell it apart from " in sentences.where_it_starts(found)
    assert set(found.document["starts_on"]["cannot_be_told_from"]) | {found.document["actions"][0]} == {
        "badger", "zebra",
    }  # fmt: skip


def test_where_pooling_is_not_the_answer_the_most_played_comes_first():
    found = sp.audit_log(log(80, cart=(0.3, 0.3, 0.3)), horizon=200)
    assert found.advice.verdict == "cannot tell"
    assert found.document["actions"] == ["aardvark", "badger", "zebra"]
    assert found.document["starts_on"]["by"] == "how often it was played"


def test_the_sentences_have_units_where_there_are_some():
    plain = log(4_000).rename(columns={"converted": "outcome"})
    found = sp.audit_log(plain, horizon=200, reward=True)
    said = " ".join([*sentences.reasons(found), *sentences.what_to_do(found), sentences.about_regret_itself(found)])
    assert " outcome " not in said.replace("an outcome", "")
    assert "±: one standard error" in said


def test_blanks_are_told_of():
    blank = log(3_000)
    blank["converted"] = blank["converted"].astype(float).where(np.arange(3_000) % 3 > 0)
    found = sp.audit_log(blank, horizon=200)
    assert any("1 000 rows without an outcome" in s.replace("\u202f", " ").replace("\xa0", " ") and "--missing 0" in s
               for s in sentences.about_rows(found))  # fmt: skip
