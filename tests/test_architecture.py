"""The picture of the modules is that of the import graph, and the page names files that are there."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
PAGE = ROOT / "docs" / "architecture.md"


@pytest.fixture
def draw_modules(monkeypatch):
    monkeypatch.syspath_prepend(str(PICTURES))
    import draw_modules

    yield draw_modules
    for name in ("draw", "draw_modules"):
        sys.modules.pop(name, None)


def test_the_picture_and_the_table_are_drawn_from_the_imports(draw_modules, tmp_path):
    draw_modules.main(tmp_path, tmp_path / "architecture.md")
    advice = "run python docs/pictures/draw_modules.py"
    for theme in ("light", "dark"):
        name = f"modules-{theme}.svg"
        assert (tmp_path / name).read_bytes() == (PICTURES / name).read_bytes(), advice
    without_counts = [re.sub(r"\| \d+ \|", "|", each.read_text()) for each in (tmp_path / "architecture.md", PAGE)]
    assert without_counts[0] == without_counts[1], advice


def test_every_file_that_is_named_is_there():
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", PAGE.read_text())
    assert len(named) > 25
    assert [name for name in named if not (ROOT / "src" / "statepool" / name).exists()] == []
