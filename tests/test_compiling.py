"""The on-disk cache of compiled functions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statepool import compiling

PACKAGE = Path(compiling.__file__).parent
PLAIN = "import statepool as sp; print(sp.simulate(sp.families.spread(0, horizon=50), sp.Uniform(), 1, 1).regret)"


def run(code, folder, **options):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **options.pop("environment", {})}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled")
    assert run(PLAIN, folder).returncode == 0
    return folder


def stored_in(folder):
    found = {each: each.stat().st_mtime_ns for each in folder.rglob("*.nbc")}
    assert [each for each in found if "_play_rounds" in each.name], "the package's own learners are cached"
    return found


def test_the_second_process_compiles_nothing(filled):
    before = stored_in(filled)
    assert run(PLAIN, filled).returncode == 0
    assert stored_in(filled) == before


def test_a_learner_of_another_package_does_not_spoil_the_cache(filled):
    """A process that cannot import the learner must still be able to read the cache."""
    before = stored_in(filled)
    example = PACKAGE.parents[1] / "examples" / "outside"
    code = "from statepool_mine import FollowTheLeader; " + PLAIN.replace("sp.Uniform()", "FollowTheLeader()")
    first = run(code, filled, environment={"PYTHONPATH": os.pathsep.join([str(example), str(PACKAGE.parent)])})
    assert first.returncode == 0, first.stderr
    second = run(PLAIN, filled)
    assert second.returncode == 0, second.stderr
    assert stored_in(filled) == before


def test_a_change_of_any_source_is_another_cache(tmp_path, monkeypatch):
    compiling.cache_folder.cache_clear()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    first = compiling.cache_folder()
    compiling.cache_folder.cache_clear()
    read = Path.read_bytes
    changed = PACKAGE / "learners" / "uniform.py"
    monkeypatch.setattr(Path, "read_bytes", lambda self: read(self) + (b"#" if self == changed else b""))
    assert compiling.cache_folder() != first
    compiling.cache_folder.cache_clear()


def test_the_layer_is_small_and_uses_public_names_only():
    assert len((PACKAGE / "compiling.py").read_text().splitlines()) <= 80
    private = ("numba.core", "numba.np", "llvmlite.binding", "uvicorn.protocols")
    sources = {each: each.read_text() for each in PACKAGE.rglob("*.py")}
    assert [str(each) for each, text in sources.items() if any(name in text for name in private)] == []
