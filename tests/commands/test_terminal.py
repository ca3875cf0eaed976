"""What commands print: at the terminal's width, with whole headings, equal numbers once; what they say meanwhile."""

import io
import re
import subprocess
import sys

import pytest
from rich.console import Console

import statepool
from statepool.cli import main
from statepool.commands import working
from statepool.frames import terminal_width
from statepool.report.sheet import Value
from statepool.studies import STUDIES
from statepool.studies.report import Record, print_study
from statepool.studies.study import Table

HEADINGS = ["interleaved State-EXP3", "Zimmert-Seldin", "Safe-Pool", "action-level EXP3", "uniform play", "BestState"]


@pytest.fixture
def printed():
    study = next(iter(STUDIES.values()))

    def show(width, how="digit"):
        rows = {"funnel": dict.fromkeys(HEADINGS, Value(1234.5, se=12.0, digits=1))}
        published = {"digit": "1234.5", "not met": "1334.5"}[how]
        table = Table("Regret", rows)
        records = [
            Record(study.name, "Regret", "funnel", name, rows["funnel"][name], published, True, "") for name in HEADINGS
        ]
        out = io.StringIO()
        print_study(Console(file=out, width=width), study, [table], records, quick=False)
        return out.getvalue()

    return show


@pytest.mark.parametrize("width", [80, 100, 140, 200])
def test_tables_fit_and_no_word_of_a_heading_is_broken(printed, width):
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    for word in " ".join(HEADINGS).split():
        assert word in text
    assert "= published, to the digit" in re.sub(r"\s+", " ", text)


def test_headings_stand_on_one_line_where_there_is_room(printed):
    room = sum(len(heading) + 3 for heading in HEADINGS) + 20
    assert all(heading in printed(room) for heading in HEADINGS)
    assert not all(heading in printed(80) for heading in HEADINGS)


def test_equal_numbers_stand_once_and_different_ones_with_their_difference(printed):
    assert printed(200).count("1234.5") == len(HEADINGS)
    assert printed(200, "not met").count("1334.5 -100") == len(HEADINGS)


def test_the_width_is_the_terminals(monkeypatch):
    for columns, width in (("60", 80), ("133", 133), ("400", 200)):
        monkeypatch.setenv("COLUMNS", columns)
        assert terminal_width() == width


def test_the_first_run_says_that_it_compiles(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("statepool.compiling.cache_folder", lambda: str(tmp_path))
    for terminal in (True, False):
        out = io.StringIO()
        with working("working", Console(file=out, force_terminal=terminal, width=80)):
            pass
        assert ("working" in out.getvalue()) == terminal
        assert capsys.readouterr().err == "The first run on this machine compiles the learners: a minute or two.\n"


def test_nothing_is_said_elsewhere_where_everything_is_compiled(monkeypatch, tmp_path, capsys):
    (tmp_path / "kernel.nbi").write_text("")
    monkeypatch.setattr("statepool.compiling.cache_folder", lambda: str(tmp_path))
    out = io.StringIO()
    with working("working", Console(file=out, force_terminal=False, width=80)):
        pass
    assert not out.getvalue() + capsys.readouterr().err


def test_version():
    done = subprocess.run(
        [sys.executable, "-c", "from statepool.cli import main; main()", "--version"], capture_output=True, text=True
    )
    assert done.stdout == f"statepool {statepool.__version__}\n"


def test_ctrl_c_is_one_sentence(monkeypatch, capsys):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("statepool.commands.research.read_map", interrupted)
    monkeypatch.setattr(sys, "argv", ["statepool", "dimension", "map.csv"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "statepool: interrupted; finished work is kept\n"
