"""The on-disk cache of compiled functions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from statepool import compiling

EXAMPLE = (Path(__file__).parent.parent / "docs" / "learners.md").read_text().split("```python\n")[1].split("```")[0]
PLAIN = "import statepool as sp; print(sp.simulate(sp.families.spread(0, horizon=50), sp.Uniform(), 1, 1).regret)"
TELLING = """
from statepool.compiling import told_of_compiling
begun = []
with told_of_compiling(begun.append):
    %s
print(sum(begun))
"""


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


def test_processes_that_need_the_same_kernels_at_once_compile_them_once(tmp_path):
    """Alone, one compiles so many functions; two at once compile as many between them, or a few parts more."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", TELLING % PLAIN]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    told = [process.communicate(timeout=300)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert told[0][0] == told[1][0]
    compiled = sorted(int(number) for _, number in told)
    assert compiled[0] < 0.2 * compiled[1], "the second waited and loaded"


def test_a_kept_kernel_serves_python_and_what_is_compiled_later(tmp_path):
    """What Python calls is kept as machine code alone: code that calls it is compiled from its part."""
    code = """
import numba, numpy as np
from statepool.kernels import dot, draw_outcome
ours = draw_outcome(0.3, 0.9) + dot(np.arange(3.0), np.arange(3.0))
theirs = numba.njit(lambda a: draw_outcome(0.3, 0.9) + dot(a, a))(np.arange(3.0))
print(ours, theirs, len(draw_outcome.stats.cache_hits))
"""
    answers = [run(code, tmp_path) for _ in range(2)]
    assert [answer.stderr for answer in answers] == ["", ""]
    assert [answer.stdout for answer in answers] == ["6.0 6.0 0\n", "6.0 6.0 1\n"], "the second time it was loaded"


def test_code_that_does_call_blas_still_finds_it():
    code = "import statepool.compiling, numba, numpy as np; print(numba.njit(lambda a: np.dot(a, a))(np.arange(3.0)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "5.0\n", done.stderr


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
