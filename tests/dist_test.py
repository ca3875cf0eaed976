"""The wheel and the sdist, installed into empty environments, with each extra alone: `make dist-test` runs this.

Every Python from 3.11 to 3.14 that is found gets the wheel without extras; the one this runs with gets every extra too,
and the sdist. Each environment then does what that extra is for, away from the sources.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEEDED = (
    "statepool/py.typed",
    "statepool/studies/published.toml",
    "statepool/studies/texts.toml",
    "statepool/live/dashboard/static/dashboard.css",
)

CORE = """
import json, subprocess, sys, importlib.util
import statepool
assert "site-packages" in statepool.__file__, statepool.__file__
run = [sys.executable, "-m", "statepool"]
assert subprocess.run([*run, "--version"], capture_output=True, text=True).stdout.split()[1] == statepool.__version__
simulate = [*run, "simulate", "spread", "--seeds", "1", "--set", "horizon=50", "--json"]
found = subprocess.run(simulate, capture_output=True)
assert len(json.loads(found.stdout)) == 2, found.stderr
there = [name for name in {absent!r} if importlib.util.find_spec(name)]
assert not there, there
"""
WORK = {
    "": (("matplotlib", "joblib", "httpx", "apsw", "duckdb", "starlette"), """
done = subprocess.run([*run, "reproduce", "effective-dimension"], capture_output=True, text=True)
assert 'matplotlib is not installed, expected pip install "statepool[figures]"' in done.stderr, done.stderr
"""),
    "client": (("matplotlib", "apsw"), "from statepool.client import Client; Client('http://127.0.0.1:9').close()"),
    "figures": (("apsw", "httpx"), """
run = statepool.simulate(statepool.families.spread(seed=0, horizon=50), statepool.StateEXP3(), 5, seed=1)
run.plot().figure.savefig("run.png")
"""),
    "live": (("matplotlib", "joblib", "duckdb"), """
with statepool.Pool.open("sqlite:///pool.db", "home", [[0.7, 0.3], [0.2, 0.8]], ["a", "b"], ["left", "cart"]) as pool:
    decision = pool.decide()
    pool.observe(decision.ticket, "cart")
    pool.resolve(decision.ticket, loss=0.0)
from statepool.live.service import Service
from statepool.live.database import Database
Service(Database("sqlite:///pool.db"))
"""),
    "audit": (("apsw", "starlette"), """
import random
rows = ["action,state,loss"] + [f"{a},{s},{int(random.random() < .5)}" for a in "ab" for s in "xy" for _ in range(300)]
open("log.csv", "w").write("\\n".join(rows))
done = subprocess.run([*run, "audit", "log.csv", "--out", "out", "--horizon", "100"], capture_output=True, text=True)
assert done.returncode == 0, done.stderr
"""),
    "cluster": (("apsw", "duckdb"), "import distributed"),
}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        for version, python in interpreters().items():
            extras = list(WORK) if version == own else [""]
            for extra in extras:
                check(folder, python, wheel, extra)
                print(f"Python {version}: wheel{f'[{extra}]' if extra else ''} works", flush=True)
        check(folder, interpreters()[own], sdist, "")
        print(f"Python {own}: sdist works")


def build(folder: Path) -> tuple[Path, Path]:
    """Both archives, from a copy of what a fresh clone holds, with what they must hold looked at."""
    sources = folder / "sources"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for path in filter(None, listed.split("\0")):
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, sources / path)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(sources)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    [wheel], [sdist] = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert set(NEEDED) <= inside, set(NEEDED) - inside
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{path}" for path in NEEDED} <= packed
    return wheel, sdist


def interpreters() -> dict[str, str]:
    """The Pythons that are there, by version; asked, since a name alone may be a stub."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for version in PYTHONS:
        for candidate in candidates(version):
            asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            said = subprocess.run(asked, capture_output=True, text=True, check=False)
            if said.stdout.strip() == version:
                found.setdefault(version, candidate)
    return dict(sorted(found.items()))


def candidates(version: str) -> list[str]:
    named = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return ([named] if named else []) + [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]


def check(folder: Path, python: str, archive: Path, extra: str) -> None:
    place = Path(tempfile.mkdtemp(dir=folder))
    subprocess.run([python, "-m", "venv", str(place / "venv")], check=True)
    binary = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = f"{archive}[{extra}]" if extra else str(archive)
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([str(binary), "-m", "pip", "install", *quiet, wanted], check=True, cwd=place)
    absent, work = WORK[extra]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["NUMBA_CACHE_DIR"] = str(folder / "kernels")
    code = CORE.format(absent=absent) + work
    subprocess.run([str(binary), "-c", code], check=True, cwd=place, env=environment)
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
