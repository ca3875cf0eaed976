"""`statepool dimension`: what it reads, says and draws."""

import json
from functools import partial

import numpy as np
import pytest

import statepool as sp
from command_line import statepool
from statepool.commands.research import read_map

dimension = partial(statepool, "dimension")
P = np.array([[0.8, 0.2], [0.4, 0.6], [0.0, 1.0]])


def csv(folder, text):
    path = folder / "map.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "0.8,0.2\n0.4,0.6\n0,1\n",
        "click,none\n0.8,0.2\n0.4,0.6\n0,1\n",
        "item,click,none\na,0.8,0.2\nb,0.4,0.6\nc,0,1\n",
        "\ufeff0.8,0.2\r\n0.4,0.6\r\n\r\n0,1\r\n",
    ],
)
def test_csv_with_and_without_names(tmp_path, text):
    np.testing.assert_array_equal(read_map(csv(tmp_path, text)), P)


def test_npy(tmp_path):
    np.save(tmp_path / "map.npy", P)
    np.testing.assert_array_equal(read_map(tmp_path / "map.npy"), P)


def test_json_agrees_with_the_library(tmp_path):
    done = dimension(csv(tmp_path, "0.8,0.2\n0.4,0.6\n0,1\n"), "--json")
    seen = json.loads(done.stdout)
    found = sp.dimension.bracket(P)
    assert (seen["lower"], seen["upper"]) == (found.lower, found.upper)
    assert seen["theorem_1_pooled"] < seen["theorem_1_alone"]


@pytest.fixture
def funnel(tmp_path):
    np.save(tmp_path / "funnel.npy", sp.families.funnel(seed=0, n_actions=25, horizon=1).P)
    return tmp_path / "funnel.npy"


def test_a_map_in_words(funnel):
    done = dimension(funnel)
    assert done.returncode == 0
    assert "Effective dimension between 1.48" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected a non-empty table, one row per action"),
        ("0.8,0.2\n0.4,x\n", "row 1 is '0.4,x', expected numbers, as many as in row 0"),
        ("0.8,0.2\n0.4\n", "row 1 is '0.4', expected numbers, as many as in row 0"),
        ("0.8,0.1\n0.4,0.6\n", "row 0 sums to 0.9, expected 1 within 1e-09"),
        ("1.2,-0.2\n0.4,0.6\n", "entry (0, 1) is -0.2"),
        ("nan,1\n0.4,0.6\n", "entry (0, 0) is nan"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, text, sentence):
    with pytest.raises(ValueError, match="map") as caught:
        read_map(csv(tmp_path, text))
    assert sentence in str(caught.value)


def test_rows_that_are_probabilities_are_kept(tmp_path):
    text = "0,1,0\n1,0,0\n0.25,0.25,0.5\n"
    np.testing.assert_array_equal(read_map(csv(tmp_path, text)), [[0, 1, 0], [1, 0, 0], [0.25, 0.25, 0.5]])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["absent.csv"], "absent.csv: cannot be read"),
        (["map.txt"], "expected one of .csv, .json, .npy"),
        (["funnel.npy", "--gap", "-1"], "gap"),
        (["funnel.npy", "--horizon", "0"], "horizon: is 0"),
    ],
)
def test_bad_input_is_one_sentence(funnel, arguments, sentence):
    done = dimension(funnel.parent / arguments[0], *arguments[1:])
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_files_that_are_not_what_they_say(tmp_path):
    (tmp_path / "map.npy").write_text("not this")
    with pytest.raises(ValueError, match="cannot be read, expected a row of numbers"):
        read_map(tmp_path / "map.npy")


def test_an_audits_map(tmp_path):
    path = tmp_path / "AUDIT.json"
    rows = [[0.5, 0.5], [0.9, 0.1]]
    for P in (rows, {"new": rows}, {"new": {"poster": rows[0]}, "known": {"offer": rows[1]}}):
        path.write_text(json.dumps({"actions": ["poster", "offer"], "states": ["a", "b"], "P": P}))
        np.testing.assert_array_equal(read_map(path), rows)
    assert dimension(path).returncode == 0
    for text in ("{}", "{broken", '{"P": "x"}', "[1, [2]]"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"AUDIT\.json: "):
            read_map(path)
