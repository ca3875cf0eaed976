"""The report of an audit, as bytes and in a browser."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from crowded import crowd
from generated import generate

sys.path.append(str(Path(__file__).parent.parent / "studies"))
from chromium import Chromium, find_chromium

from statepool import audit_log


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    log = generate(2, n_actions=15, n_rows=8_000, effect=0.08).write(folder / "<b>$log$.parquet")
    return audit_log(log, horizon=500, seconds=0.5).write(folder / "out")


def test_one_file_that_loads_nothing(report):
    page = report.read_text(encoding="utf-8")
    assert "http" not in page
    assert not re.search(r"<(script|img|iframe)[^>]* src=|@import|url\((?!#)|@[A-Z]+@", page)
    assert [name for name, count in Counter(re.findall(r'\bid="([^"]*)"', page)).items() if count > 1] == []
    assert "<b>$log$" not in page
    assert page.count('class="drawing"') == 6
    assert sorted(path.name for path in report.parent.iterdir()) == ["AUDIT.json", "report.html"]


def test_says_the_advice_what_it_rests_on_what_would_change_it_and_what_to_do(report):
    page = report.read_text(encoding="utf-8")
    assert re.search(r"The advice: <b class=\"\w+\">(pool|pool with corrections|do not pool|cannot tell)</b>", page)
    assert page.count("<li>", page.index('class="why"'), page.index("</ol>", page.index('class="why"'))) >= 3
    for title in ("What it rests on", "What would change it", "What to do on Monday", "What if?"):
        assert title in page


@pytest.fixture(scope="module")
def personal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("personal")
    log = crowd(8, n_contexts=3, n_actions=4, n_rows=12_000, crossed=1.0).write(folder / "log.parquet")
    return audit_log(log, context="context", horizon=300, seconds=0.1).write(folder / "out")


def test_says_who_is_asking_where_that_was_asked(report, personal):
    page = personal.read_text(encoding="utf-8")
    assert "Who is asking" not in report.read_text(encoding="utf-8")
    assert page.count("Who is asking") == 3
    assert "Personalising by context is worth" in page
    assert "What an answer of its own gains each context" in page
    assert page.count('class="drawing"') == 7


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_reads_well_in_a_browser(report, width, dark):
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install Debian's chromium, or name a program in CHROMIUM")
    with Chromium(program) as browser:
        browser.open(report, width, dark)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        sizes = browser.run(
            "[...document.querySelectorAll('.drawing')].map(f => [...f.querySelectorAll('svg')]"
            ".map(s => s.getBoundingClientRect()).filter(b => b.width > 300 && b.height > 80).length)"
        )
        assert sizes == [1] * 6
        assert browser.complaints == []
