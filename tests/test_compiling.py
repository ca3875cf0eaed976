"""The on-disk cache of compiled functions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from statepool import compiling

EXAMPLE = (Path(__file__).parent.parent / "docs" / "learners.md").read_text().split("```python\n")[1].split("```")[0]
PLAIN = "import statepool as sp; print(sp.simulate(sp.families.spread(0, horizon=50), sp.StateEXP3(), 1, 1).regret)"


def run(code, folder, **options):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False, **options)


def test_a_learner_from_outside_does_not_spoil_the_cache_for_others(tmp_path):
    (tmp_path / "mine.py").write_text(EXAMPLE)
    first = run("import mine", tmp_path / "cache", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    second = run(PLAIN, tmp_path / "cache", cwd="/")
    assert second.returncode == 0, second.stderr
    stored = set((tmp_path / "cache").rglob("*_play_rounds*.nbc"))
    again = run(PLAIN, tmp_path / "cache", cwd="/")
    assert again.stdout == second.stdout
    assert set((tmp_path / "cache").rglob("*_play_rounds*.nbc")) == stored
    assert stored, "the package's own learners are cached"


@pytest.mark.parametrize("package", sorted(compiling._WITHOUT_KERNELS))
def test_what_the_cache_does_not_follow_compiles_nothing(package):
    place = Path(compiling.__file__).parent / package
    sources = [place] if place.is_file() else list(place.rglob("*.py"))
    assert sources
    assert not [source for source in sources if "compiling import compiled" in source.read_text()]


def test_a_copy_of_the_package_elsewhere_finds_what_was_compiled(tmp_path):
    package = Path(compiling.__file__).parent
    for place in ("here", "there"):
        shutil.copytree(package, tmp_path / place / "statepool", ignore=shutil.ignore_patterns("__pycache__"))
        told = run(PLAIN, tmp_path / "cache", cwd=tmp_path / place)
        assert told.returncode == 0, told.stderr
        stored = set((tmp_path / "cache").rglob("*.nbc"))
        if place == "here":
            first, times = stored, {each: each.stat().st_mtime_ns for each in stored}
    assert stored == first
    assert {each: each.stat().st_mtime_ns for each in stored} == times, "nothing was compiled again"
