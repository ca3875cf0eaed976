"""The on-disk cache of compiled functions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import int64

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


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A cache that two processes have filled at once, and what each of them printed."""
    folder = tmp_path_factory.mktemp("filled") / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", TELLING % PLAIN]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    printed = [process.communicate(timeout=300)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    return folder, printed


@pytest.fixture
def filled(told, tmp_path):
    """A copy of that cache, and what is in it."""
    folder = shutil.copytree(told[0], tmp_path / "cache")
    return folder, stored_in(folder)


def stored_in(folder):
    found = {each: each.stat().st_mtime_ns for each in folder.rglob("*.nbc")}
    assert [each for each in found if "_play_rounds" in each.name], "the package's own learners are cached"
    return found


def test_processes_that_need_the_same_kernels_at_once_compile_them_once(told):
    """Alone, one compiles so many functions; two at once compile as many between them, or a few parts more."""
    _, printed = told
    assert printed[0][0] == printed[1][0]
    compiled = sorted(int(number) for _, number in printed)
    assert compiled[0] < 0.2 * compiled[1], "the second waited and loaded"


def test_a_function_that_is_compiled_inside_its_own_compiling_ends_every_turn(monkeypatch):
    taken = []
    turns = SimpleNamespace(take=lambda name: taken.append(name) or True, end=taken.remove)
    monkeypatch.setattr(compiling, "_turns", lambda: turns)
    empty = SimpleNamespace(load_overload=lambda *_: None)

    class Dispatcher:
        _cache = compiling._OwnCache(test_code_that_does_call_blas_still_finds_it, "parts", lambda _: empty)

        def compile(self, kinds):
            self._cache.load_overload(kinds, None)
            if not kinds:
                compiling._compile_in_turn(self, (int64,))
                assert len(taken) == 1, "the inner one is over, the outer one not yet"
            else:
                assert len(taken) == 2

    compiling._compile_in_turn(Dispatcher(), ())
    assert taken == []


def test_a_learner_from_outside_does_not_spoil_the_cache_for_others(told, filled, tmp_path):
    """Whoever reads the list of what is kept of the loop would have to import whatever is in it."""
    folder, before = filled
    (tmp_path / "mine.py").write_text(EXAMPLE)
    first = run("import mine", folder, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    second = run(TELLING % PLAIN, folder, cwd="/")
    assert second.stdout.split() == [told[1][0][0], "0"], second.stderr
    assert before.items() <= stored_in(folder).items()


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


def test_a_copy_of_the_package_elsewhere_finds_what_was_compiled(told, filled, tmp_path):
    folder, before = filled
    package = Path(compiling.__file__).parent
    shutil.copytree(package, tmp_path / "there" / "statepool", ignore=shutil.ignore_patterns("__pycache__"))
    code = f"import statepool; assert statepool.__file__.startswith({str(tmp_path)!r})" + TELLING % PLAIN
    there = run(code, folder, cwd=tmp_path / "there")
    assert there.stdout.split() == [told[1][0][0], "0"], there.stderr
    assert stored_in(folder) == before, "nothing was compiled again"
