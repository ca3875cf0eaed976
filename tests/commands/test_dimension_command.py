"""`statepool dimension`: what it reads, says and draws."""

import json
from functools import partial

import duckdb
import numpy as np
import pytest

import statepool as sp
from command_line import statepool
from statepool.commands.mapfile import read_map

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


def test_npy_and_parquet(tmp_path):
    np.save(tmp_path / "map.npy", P)
    np.testing.assert_array_equal(read_map(tmp_path / "map.npy"), P)
    path = tmp_path / "map.parquet"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES ('a', .8, .2), ('b', .4, .6), ('c', 0, 1)) t(name, x, y)) TO '{path}'")
    np.testing.assert_allclose(read_map(path), P)


def test_json_agrees_with_the_library_and_the_picture_is_drawn(tmp_path):
    done = dimension(csv(tmp_path, "0.8,0.2\n0.4,0.6\n0,1\n"), "--json", "--picture", tmp_path / "map.png")
    seen = json.loads(done.stdout)
    found = sp.dimension.bracket(P)
    assert (seen["lower"], seen["upper"]) == (found.lower, found.upper)
    assert seen["pairs"][0] == {"first": 0, "second": 2, "dimension": pytest.approx(0.8 + (0.2**2 + 1) / 1.2)}
    assert seen["theorem_1_pooled"] < seen["theorem_1_alone"]
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_a_built_in_map_in_words():
    done = dimension("--funnel", "25")
    assert done.returncode == 0
    assert "Effective dimension between 1.48" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("0.8,0.2\n0.4,x\n", "row 1, column 1 is 'x'"),
        ("0.8,0.2\n0.4\n", "row 1 has 1 columns, expected 2"),
        ("0.8,0.1\n0.4,0.6\n", "row 0 sums to 0.9, expected 1 within 1e-09; --normalise"),
        ("1.2,-0.2\n0.4,0.6\n", "entry (0, 1) is -0.2"),
        ("nan,1\n0.4,0.6\n", "entry (0, 0) is nan"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, text, sentence):
    with pytest.raises(ValueError, match="map") as caught:
        read_map(csv(tmp_path, text))
    assert sentence in str(caught.value)


NUMBERED = {
    "header": "0,1,2\n.7,.2,.1\n.2,.4,.4\n",
    "header of years": "2024,2026,2025\n.7,.2,.1\n.2,.4,.4\n",
    "names": "17,.7,.2,.1\n4,.2,.4,.4\n",
    "names from 0": "0,.7,.2,.1\n1,.2,.4,.4\n",
    "both": ",0,1,2\n0,.7,.2,.1\n1,.2,.4,.4\n",
    "both, a corner": "item,0,1,2\n11,.7,.2,.1\n12,.2,.4,.4\n",
    "header over names": "item,0,1,2\na,.7,.2,.1\nb,.2,.4,.4\n",
}


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("text", NUMBERED.values(), ids=NUMBERED)
def test_labels_that_are_numbers_are_no_data(tmp_path, text, normalise):
    np.testing.assert_allclose(read_map(csv(tmp_path, text), normalise), [[0.7, 0.2, 0.1], [0.2, 0.4, 0.4]])


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0,1,2\n70,20,10\n20,40,40\n", "row 0 is 0, 1, 2: data, or names?"),
        ("1,2,3,4\n7,2,1,1\n", "row 0 is 1, 2, 3, …: data, or names?"),
        ("5,70,20\n6,20,40\n7,20,80\n", "column 0 is 5, 6, 7: data, or names?"),
    ],
)
def test_what_may_be_labels_over_counts_is_not_guessed_at(tmp_path, text, what, normalise):
    with pytest.raises(ValueError, match="names") as caught:
        read_map(csv(tmp_path, text), normalise)
    assert what in str(caught.value)


def test_rows_that_are_probabilities_are_kept(tmp_path):
    text = "0,1,0\n1,0,0\n0.25,0.25,0.5\n"
    np.testing.assert_array_equal(read_map(csv(tmp_path, text)), [[0, 1, 0], [1, 0, 0], [0.25, 0.25, 0.5]])


def test_normalise_scales_rows(tmp_path):
    np.testing.assert_allclose(read_map(csv(tmp_path, "8,2\n4,6\n0,5\n"), normalise=True), P)
    with pytest.raises(ValueError, match="row 1 sums to 0"):
        read_map(csv(tmp_path, "8,2\n0,0\n"), normalise=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "expected a file, or --funnel K"),
        (["absent.csv"], "absent.csv: cannot be read"),
        (["map.txt"], "expected one of .csv, .json, .npy, .parquet"),
        (["--funnel", "25", "--gap", "-1"], "gap"),
        (["--funnel", "0"], "n_actions: is 0"),
        (["--funnel", "25", "--picture", "/dev/null/x.png"], "picture: cannot write"),
        (["--funnel", "25", "--horizon", "0"], "horizon: is 0"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    done = dimension(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_files_that_are_not_what_they_say(tmp_path):
    for name in ("map.npy", "map.parquet"):
        (tmp_path / name).write_text("not this")
        with pytest.raises(ValueError, match="is not a"):
            read_map(tmp_path / name)


def test_an_audits_map_and_the_names_of_its_rows(tmp_path):
    path = tmp_path / "AUDIT.json"
    path.write_text(json.dumps({"actions": ["poster", "offer"], "states": ["a", "b"], "P": [[0.5, 0.5], [0.9, 0.1]]}))
    np.testing.assert_array_equal(read_map(path), [[0.5, 0.5], [0.9, 0.1]])
    done = dimension(path)
    assert done.returncode == 0, done.stderr
    assert "poster and offer" in " ".join(done.stdout.split())
    for text in ("{}", "{broken", '{"P": "x"}', "[1, [2]]"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"AUDIT\.json: "):
            read_map(path)
