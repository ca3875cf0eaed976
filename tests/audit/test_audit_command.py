"""`statepool audit`: what it prints, what it writes, and how it fails."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from generated import generate
from rich.console import Console

from command_line import statepool
from statepool.commands.audit import _how_to_serve, print_sentence

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return generate(0, n_actions=8, n_rows=4_000).write(tmp_path_factory.mktemp("log") / "log.parquet")


def test_json_and_nothing_else(log, tmp_path):
    done = statepool("audit", log, "--json", "--out", tmp_path / "report", "--horizon", 500)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document)[:5] == ["actions", "states", "P", "learner", "settings"]
    assert document == json.loads((tmp_path / "report" / "AUDIT.json").read_text())
    assert all(abs(sum(row) - 1) < 1e-9 for row in document["P"])
    assert (tmp_path / "report" / "report.html").exists()


def test_for_people(log, tmp_path):
    done = statepool("audit", log, "--out", tmp_path / "mine.html", "--horizon", 500)
    assert done.returncode == 0, done.stderr
    assert "States: does anything but the state matter?" in done.stdout
    assert (tmp_path / "mine.html").exists()
    assert f"Report: {tmp_path / 'mine.html'}\n" in done.stdout
    assert done.stdout.endswith(f": {tmp_path / 'AUDIT.json'}\n")
    assert "tells: " in done.stdout
    assert "drift: " in done.stdout


def test_how_to_start_the_pool_names_what_was_written():
    assert _how_to_serve(Path("audit/AUDIT.json")) == "statepool serve --map audit/AUDIT.json"
    assert _how_to_serve(Path("my audit/AUDIT.json")) == "statepool serve --map 'my audit/AUDIT.json'"
    assert _how_to_serve(None).startswith("audit again with --out audit")


@pytest.mark.parametrize("width", range(24, 48))
def test_a_number_is_not_broken_between_lines(width):
    out = io.StringIO()
    print_sentence(Console(width=width, file=out), "About 52\N{NO-BREAK SPACE}000 more rows would tell.", "On Monday: ")
    assert "52\N{NO-BREAK SPACE}000" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_bad_input_is_one_sentence(log, tmp_path):
    for arguments in ((tmp_path / "nowhere.csv",), (log, "--state", "stat"), (log, "--out", "/dev/null/x")):
        done = statepool("audit", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("statepool: ")
        assert done.stderr.count("\n") == 1


def test_importing_statepool_leaves_duckdb_alone():
    code = "import sys, statepool; assert 'duckdb' not in sys.modules; print(statepool.audit_log.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "audit_log\n"
