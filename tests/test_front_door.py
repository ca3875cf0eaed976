"""What a newcomer meets first: the README's first screen, and the files and pages that it leads to."""

import re
import tomllib
from pathlib import Path

import statepool

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
FIRST_SCREEN = README.partition("```python")[0]


def test_the_readme_leads_with_the_learner_to_run():
    learners = re.findall(r"^\| (.*?) \|", FIRST_SCREEN, re.MULTILINE)
    assert learners[0] == "learner"
    assert learners[1].startswith("**`SelfTuned`**")
    assert FIRST_SCREEN.index("SelfTuned") < FIRST_SCREEN.index("State-EXP3")
    assert "python benchmarks/first_screen.py" in FIRST_SCREEN


def test_before_the_first_snippet_it_says_whom_it_is_for_and_how_to_install_it():
    places = [FIRST_SCREEN.index(each) for each in ("**It assumes**", "**It is not for you**", "**Install**")]
    assert places == sorted(places)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    told = set(re.findall(r'pip install "\.\[(\w+)\]"', FIRST_SCREEN))
    assert {"live", "audit", "client"} <= told <= extras.keys()
    assert "pip install .  " in FIRST_SCREEN


def test_pictures_serve_narrow_and_dark_pages():
    shown = re.findall(r"<picture>.*?</picture>", README, re.DOTALL)
    assert len(shown) == 2
    for picture in shown:
        assert "max-width: 600px) and (prefers-color-scheme: dark)" in picture
        assert all((ROOT / path).exists() for path in re.findall(r'src(?:set)?="([^"]+)"', picture))


def test_what_a_project_is_expected_to_have():
    for name in ("CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"):
        assert (ROOT / name).read_text().strip()
    assert f"\n## {statepool.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert "\ntitle: statepool\n" in (ROOT / "CITATION.cff").read_text()
    assert len(set(re.findall(r"docs/notebooks/[\w-]+\.ipynb", README))) == 4


def test_the_site_has_its_five_parts():
    # The theme's own tags (!!python/name) say nothing about pages.
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    parts = set(re.findall(r"^  - ([\w-]+):", nav, re.MULTILINE))
    assert {"Learn", "How-to", "Reference", "Explanation", "Studies"} <= parts
