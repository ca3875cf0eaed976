"""The report, as bytes and as a reader sees it: in a real browser, both themes, on a phone and on a desk."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium, find_chromium
from made_up import made_up

from statepool.studies import STUDIES
from statepool.studies.report import heading_of, write_report

SOME = ["effective-dimension", "matched-difficulty", "phase-diagram"]


@pytest.fixture(scope="module", params=[SOME, pytest.param(list(STUDIES), marks=pytest.mark.soak)], ids=["some", "all"])
def studies(request: pytest.FixtureRequest) -> list[str]:
    return request.param


@pytest.fixture(scope="module")
def figures(studies: list[str]) -> list[str]:
    drawn = [figure for name in studies for figure in STUDIES[name].figures if set(figure.others) <= set(studies)]
    return [figure.name for figure in drawn]


@pytest.fixture(scope="module")
def report(studies: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"), *made_up(studies), quick=False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install Debian's chromium, or name a program in CHROMIUM")
    with Chromium(program) as opened:
        yield opened


def test_holds_every_study_and_figure_and_loads_nothing(report: Path, studies: list[str], figures: list[str]) -> None:
    page = report.read_text(encoding="utf-8")
    assert "http" not in page
    assert not re.search(r"<(script|img|iframe)[^>]* src=|@import|url\((?!#)", page)
    assert [name for name in studies if f'<section id="{name}"' not in page] == []
    assert [name for name in figures if f'id="figure-{name}"' not in page] == []
    assert not re.search(r"@[A-Z]+@", page)
    twice = [name for name, count in Counter(re.findall(r'\bid="([^"]*)"', page)).items() if count > 1]
    assert twice == []


def test_same_bytes_twice(tmp_path: Path) -> None:
    run = made_up(["effective-dimension", "hostile-maps"])
    first, second = (write_report(tmp_path / name, *run, quick=False).read_bytes() for name in ("a", "b"))
    assert first == second


def test_says_what_was_met_and_why_not(tmp_path: Path) -> None:
    studies, tables, records, results = made_up(["representation"])
    page = write_report(tmp_path, studies, tables, records, results, quick=False).read_text(encoding="utf-8")
    count = Counter(record.how for record in records["representation"] if record.how)
    assert f"<b>{count['digit']} of {count.total()}</b> published numbers are met to the digit" in page
    assert f"The {count.total() - count['digit']} not met to the digit" in page
    assert "published from Monte Carlo" in page


def test_no_table_names_a_number_of_seeds_that_a_quick_run_does_not_have() -> None:
    _, tables, _, _ = made_up()
    texts = [f"{table.title} {table.note}" for found in tables.values() for table in found]
    assert [text for text in texts if re.search(r"(?i)(two|three|four|five|ten|twenty|\d+) seeds", text)] == []


def test_a_quick_run_says_so_at_the_top_and_on_every_table(tmp_path: Path) -> None:
    studies, tables, records, results = made_up(["unknown-map", "certified-dimension"], seeds=2)
    page = write_report(tmp_path, studies, tables, records, results, quick=True).read_text(encoding="utf-8")
    assert page.count("quick: fewer seeds") == sum(len(found) for found in tables.values())
    assert page.index("Quick run") < page.index("<h1>")
    slow = write_report(tmp_path, studies, tables, records, results, quick=False).read_text(encoding="utf-8")
    assert "uick run" not in slow


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (400, True),
        (1400, False),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in [(400, False), (1400, True)]),
    ],
)
def test_reads_well_in_a_browser(report: Path, figures: list[str], browser: Chromium, width: int, dark: bool) -> None:
    browser.complaints.clear()
    browser.open(report, width, dark)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    sizes = browser.run(
        "[...document.querySelectorAll('.drawing')].map(f => [...f.querySelectorAll('svg')]"
        ".map(s => s.getBoundingClientRect()).filter(b => b.width > 300 && b.height > 100).length)"
    )
    assert sizes == [1] * len(figures)
    brightness = browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    assert (sum(brightness) < 150) is dark
    letters = browser.run("getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).map(Number)")
    assert abs(sum(letters) - sum(brightness)) > 450
    assert browser.complaints == []


def test_theme_can_be_switched(report: Path, browser: Chromium) -> None:
    browser.open(report, 1400, dark=False)
    before = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.run("document.getElementById('theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != before
    browser.run("document.getElementById('theme').click(), localStorage.clear()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == before


def test_values_are_shown_on_pointing(report: Path, browser: Chromium) -> None:
    browser.open(report, 1400, dark=False)
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    spot = browser.run(
        "(() => { const t = document.querySelector('#figure-phase-diagram .tip');"
        " t.scrollIntoView({block: 'center'}); const b = t.getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2, t.dataset.tip] })()"
    )
    browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=spot[0], y=spot[1])
    assert browser.run("document.getElementById('tip').hidden") is False
    assert browser.run("document.getElementById('tip').textContent") == spot[2]
    assert browser.run("getComputedStyle(document.querySelector('.tip.lit path')).strokeOpacity") == "1"


def test_a_report_of_one_study_says_so():
    """The heading is of what is in it."""
    paper = [study for study in STUDIES.values() if not study.beyond]
    assert heading_of(paper) == "The paper, reproduced"
    assert heading_of(paper[:1]) == "One study of the paper"
    assert heading_of([study for study in STUDIES.values() if study.beyond][:1]) == "One study beyond the paper"
