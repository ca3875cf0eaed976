"""Every Python example in the README and the docs runs, and prints what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from statepool.live.service.monitoring import GAUGES
from statepool.studies import STUDIES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {"__name__": "example"}
    for code, output in re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", page.read_text(), flags=re.S):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if output:
            assert printed.getvalue() == output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """In the repository's view, too: a page that only the site has is named by its file there, and not linked."""
    text = page.read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)", text) + re.findall(r'(?:src|srcset)="([^"#]+)', text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_that_only_the_site_has_are_linked_there():
    """The hook links each by what it is called."""
    hooks = (ROOT / "docs" / "hooks.py").read_text()
    named = {name for page in PAGES for name in re.findall(r"`site/([\w/-]+)\.html`", page.read_text())} - {"index"}
    assert len(named) >= 3
    for name in named:
        assert hooks.count(f'"{name}.md": ') == 2, f"site/{name}.html is named, and docs/hooks.py does not know it"


def test_every_metric_is_in_the_docs():
    source = (ROOT / "src" / "statepool" / "live" / "service" / "monitoring.py").read_text()
    named = {*re.findall(r'"statepool_(\w+)"', source), *GAUGES}
    page = re.findall(r"`statepool_(\w+?)(?:_total)?`", (ROOT / "docs" / "operations.md").read_text())
    assert len(named) > 10
    assert named <= set(page)


def test_every_figure_of_the_papers_studies_is_on_the_site():
    drawn = {figure.name for study in STUDIES.values() if not study.beyond for figure in study.figures}
    assert drawn == {path.stem for path in (ROOT / "docs" / "figures").glob("*.svg")}
