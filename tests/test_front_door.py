"""What a newcomer meets first: the README's first screen, and the files and pages that it leads to."""

import re
from pathlib import Path

import statepool
from command_line import statepool as command

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FIRST_SCREEN = README.partition("```python")[0]


def test_the_readme_begins_with_the_category_and_is_short():
    assert "**Bandits for delayed outcomes" in FIRST_SCREEN
    assert len(README.splitlines()) <= 140
    assert 'pip install ".[all]"' in README
    for part in ("make reproduce", "make test", "statepool audit", "Who it is not for", "statepool serve"):
        assert part in README


def test_the_readme_shows_what_the_audit_prints(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = re.search(r"    statepool audit examples/shop.csv\n\n```text\n(.*?)```", README, re.DOTALL)
    assert command("audit", "examples/shop.csv", cwd=ROOT).stdout == shown[1]


def test_pictures_serve_narrow_and_dark_pages():
    shown = re.findall(r"<picture>.*?</picture>", README, re.DOTALL)
    assert shown
    for picture in shown:
        assert "max-width: 600px) and (prefers-color-scheme: dark)" in picture
        assert all((ROOT / path).exists() for path in re.findall(r'src(?:set)?="([^"]+)"', picture))


def test_what_a_project_is_expected_to_have():
    for name in ("CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"):
        assert (ROOT / name).read_text().strip()
    released = statepool.__version__.partition(".dev")[0]
    assert f"\n## {released}" in (ROOT / "CHANGELOG.md").read_text()
    assert "\ntitle: statepool\n" in (ROOT / "CITATION.cff").read_text()
    assert set(re.findall(r"docs/notebooks/[\w-]+\.ipynb", README))


def test_the_site_has_its_parts():
    # The theme's own tags (!!python/name) say nothing about pages.
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    parts = set(re.findall(r"^  - ([\w-]+):", nav, re.MULTILINE))
    assert {"Start", "Guides", "Reference", "Research"} <= parts
