"""The report as bytes and in a browser, and the command."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from generated import generate

sys.path.append(str(Path(__file__).parent.parent / "studies"))
from chromium import Chromium, find_chromium

from command_line import statepool
from statepool.audit import audit_log
from statepool.audit.document import amount, sections_of


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    log = generate(2, n_actions=15, n_rows=8_000, effect=0.08).write(folder / "<b>$log$.parquet")
    return audit_log(log, horizon=100).write(folder / "out")


def test_one_file_that_loads_nothing(report):
    page = report.read_text(encoding="utf-8")
    assert "http" not in page
    assert not re.search(r"<(script|img|iframe)[^>]* src=|@import|url\((?!#)|@[A-Z]+@", page)
    assert [name for name, count in Counter(re.findall(r'\bid="([^"]*)"', page)).items() if count > 1] == []
    assert "<b>$log$" not in page
    assert page.count('class="study"') <= 5
    assert sorted(path.name for path in report.parent.iterdir()) == ["AUDIT.json", "report.html"]


def test_the_answer_is_the_same_everywhere(plain_audit, tmp_path):
    page = re.sub(r"&#39;", "'", plain_audit.write(tmp_path).read_text(encoding="utf-8"))
    for line in (*plain_audit.document["advice"]["reasons"], *plain_audit.document["advice"]["to_do"]):
        assert line.replace("AUDIT.json", f"{tmp_path}/AUDIT.json") in page
    assert len(sections_of(plain_audit)) == 5


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (400, True),
        (1400, False),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in [(400, False), (1400, True)]),
    ],
)
def test_reads_well_in_a_browser(report, width, dark):
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install Debian's chromium, or name a program in CHROMIUM")
    with Chromium(program) as browser:
        browser.open(report, width, dark)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert browser.complaints == []


@pytest.mark.parametrize(
    ("number", "text"), [(0.00001234, "0.000012"), (3.14159, "3.1"), (51_800.0, "51\N{NO-BREAK SPACE}800")]
)
def test_amounts_are_written_without_powers_of_ten(number, text):
    assert amount(number) == text


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return generate(0, n_actions=8, n_rows=3_000).write(tmp_path_factory.mktemp("log") / "log.parquet")


def test_the_command(log, tmp_path):
    done = statepool("audit", log, "--json", "--out", tmp_path / "report", "--horizon", 100)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document)[:6] == ["actions", "states", "P", "learner", "settings", "prior"]
    assert document == json.loads((tmp_path / "report" / "AUDIT.json").read_text())
    shown = statepool("audit", log, "--out", tmp_path / "mine.html", "--horizon", 100)
    assert f"Report: {tmp_path / 'mine.html'}\n" in shown.stdout
    assert "State by state" not in shown.stdout
    assert "State by state" in statepool("audit", log, "--details", "--horizon", 100).stdout


def test_questions_and_bad_input_exit_2_with_one_sentence(log, tmp_path):
    blank = tmp_path / "blank.csv"
    blank.write_text("sku,stage,revenue\n" + "a,x,\nb,y,4\n" * 50)
    for arguments in (
        (tmp_path / "nowhere.csv",),
        (log, "--state", "stat"),
        (log, "--out", "/dev/null/x", "--horizon", 10),
        (blank,),
    ):
        done = statepool("audit", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("statepool: ")
        assert done.stderr.count("\n") == 1


def test_importing_statepool_leaves_the_engines_alone():
    code = (
        "import sys, statepool; assert not {'duckdb', 'ibis'} & set(sys.modules); print(statepool.audit_log.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "audit_log\n"


def test_the_printed_command_names_a_file_that_is_there(plain_audit, tmp_path):
    import io

    from rich.console import Console

    from statepool.commands.audit import print_audit

    for report in (None, plain_audit.write(tmp_path)):
        console = Console(width=400, record=True, file=io.StringIO())
        print_audit(plain_audit, console, report=report)
        said = console.export_text()
        assert ("--out audit, then statepool serve --map audit/AUDIT.json" in said) == (report is None)
        assert (f"serve --map {tmp_path}/AUDIT.json" in said) == (report is not None)
