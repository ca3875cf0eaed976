"""Every Python example in the README and the docs runs, and prints what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from statepool.studies import STUDIES
from statepool.studies.figures import FIGURES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

GENERATED = {  # from the code, by docs/hooks.py, when the site is built
    ROOT / "docs" / place / f"{name}.md"
    for place in ("reference", "how-to/../reference", "learn/../reference")
    for name in ("cli", "events", "http", "python", "settings")
} | {ROOT / "docs" / "study-figures.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run_and_print_what_they_say(page):
    names: dict[str, object] = {"__name__": "example"}
    for code, output in re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", page.read_text(), flags=re.S):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if output:
            assert printed.getvalue() == output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        written_by_the_build = page.parent / target in GENERATED
        assert written_by_the_build or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_figure_of_the_papers_studies_is_on_the_site():
    studies = {study.name for study in STUDIES.values() if not study.beyond}
    drawn = {figure.name for figure in FIGURES if set(figure.needs) <= studies}
    assert drawn == {path.stem for path in (ROOT / "docs" / "figures").glob("*.svg")}
