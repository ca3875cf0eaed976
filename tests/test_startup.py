"""Starting up: what is imported."""

import os
import subprocess
import sys

HEAVY = (
    "scipy.optimize",
    "scipy.linalg",
    "scipy.special",
    "scipy.sparse",
    "scipy.stats",
    "matplotlib",
    "joblib",
    "pandas",
    "typer",
    "rich",
)


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_import_stays_light():
    """Names come when they are used; Numba itself imports scipy's empty top, and nothing of ours adds to it."""
    code = """
import sys
import statepool
print(*[name for name in ("numba", "numpy") if name in sys.modules])
import numba
before = set(sys.modules)
statepool.simulate, statepool.SelfTuned, statepool.families.funnel
print(*sorted(set(sys.modules) - before))
"""
    first, added = python(code).split("\n")[:2]
    assert first == ""
    assert "statepool.engine" in added.split()
    assert not [name for name in added.split() if name.startswith(HEAVY)]


def test_help_needs_neither_numba_nor_numpy():
    code = """
import sys
from statepool.cli import app
try:
    app(["--help"])
except SystemExit:
    pass
print([name for name in ("numba", "numpy", "scipy", "matplotlib") if name in sys.modules])
"""
    assert python(code).splitlines()[-1] == "[]"


def test_parts_are_reachable_after_the_import():
    code = "import statepool as sp; print(sp.live, sp.grouping, sp.audit, sp.client, sp.testing)"
    assert python(code).count("<module 'statepool.") == 5


def test_a_cache_folder_that_cannot_be_written_is_no_obstacle(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    places = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"), str(blocked))
    code = "import numpy as np; from statepool.kernels import draw_row; print(draw_row(np.array([1.0]), 0.5))"
    assert python(code, TMPDIR=str(tmp_path), **places) == "0\n"
    assert list(tmp_path.rglob("statepool-*/**/*.nbc")), "a private folder"


def test_a_pool_and_its_service_need_neither_matplotlib_nor_joblib(tmp_path):
    code = f"""
import sys
sys.modules.update(dict.fromkeys(("matplotlib", "joblib", "duckdb")))  # importing them raises
import statepool as sp
import statepool.live.service.app, statepool.live.dashboard
P = [[1.0, 0.0], [0.0, 1.0]]
pool = sp.Pool.open("sqlite:///{tmp_path}/pool.db", "home", P, ["a", "b"], ["s", "t"], learner="uniform")
made = pool.decide()
pool.observe(made.ticket, "s" if made.action == "a" else "t")
pool.resolve(made.ticket, loss=1.0)
print([row["loss"] for row in pool.rows()])
pool.close()
"""
    assert python(code) == "[1.0]\n"
