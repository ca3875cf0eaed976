"""Without extras: every command either does its work or says in one sentence what to install."""

import json
import subprocess
import sys

import pytest

from statepool.cli import app, keys
from statepool.extras import how_to_install

BLOCKED = """
import contextlib, io, json, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from statepool.cli import main

for arguments in %r:
    sys.argv, out, err = ["statepool", *arguments], io.StringIO(), io.StringIO()
    code, fault = 0, ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as done:
            code = done.code or 0
        except BaseException as error:
            fault = repr(error)
    print(json.dumps([code, err.getvalue(), fault]))
"""
EXTRAS = {
    "live": [
        "httptools",
        "msgspec",
        "prometheus_client",
        "psycopg",
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "uvloop",
    ],
    "audit": ["duckdb", "ibis"],
    "cluster": ["distributed", "dask"],
}
COMMANDS = {
    "reproduce": (["reproduce", "nothing"], "did you mean"),
    "reproduce --cluster": (["reproduce", "funnel", "--cluster", "tcp://127.0.0.1:1", "--out", "out"], "cluster"),
    "simulate": (["simulate", "spread", "uniform", "--seeds", "1", "--set", "horizon=50", "--json"], None),
    "dimension": (["dimension", "map.csv", "--json"], None),
    "audit": (["audit", "log.csv"], "audit"),
    "whatif": (["whatif", "log.csv"], "audit"),
    "audit of a pool": (["audit", "sqlite:///pool.db"], "audit"),
    "replay": (["replay", "sqlite:///pool.db", "home"], "live"),
    "serve": (["serve"], "live"),
    "serve --demo": (["serve", "--demo"], "live"),
    "keys add": (["keys", "add", "shop", "--role", "decide"], "live"),
    "keys list": (["keys", "list"], "live"),
    "keys drop": (["keys", "drop", "shop"], "live"),
    "keys renew": (["keys", "renew", "shop", "--expires", "never"], "live"),
    "backup": (["backup", "sqlite:///pool.db", "copy.db"], "live"),
    "archive": (["archive", "sqlite:///pool.db", "home", "a.parquet"], "live"),
    "erase": (["erase", "sqlite:///pool.db", "home", "ticket"], "live"),
    "export": (["export", "sqlite:///pool.db", "home", "rows.csv"], "live"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without")
    (folder / "map.csv").write_text("0.8,0.2\n0.4,0.6\n")
    (folder / "log.csv").write_text("action,state,loss\na,s,0\n")
    (folder / "pool.db").write_text("")
    blocked = tuple(name for names in EXTRAS.values() for name in names)
    code = BLOCKED % (blocked, [arguments for arguments, _ in COMMANDS.values()])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(zip(COMMANDS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_without_extras_a_command_works_or_says_what_to_install(answers, command):
    code, said, fault = answers[command]
    wanted = COMMANDS[command][1]
    assert fault == ""
    if wanted is None:
        assert (code, said) == (0, "")
        return
    assert code == 2
    assert said.startswith("statepool: ")
    assert said.count("\n") == 1
    assert f"statepool[{wanted}]" in said if wanted in EXTRAS else wanted in said


def test_every_command_is_asked():
    named = {command.name or command.callback.__name__ for command in app.registered_commands}
    named |= {f"keys {command.name}" for command in keys.registered_commands}
    assert {name for name in named if not any(each.startswith(name) for each in COMMANDS)} == set()


def test_who_is_missing_decides_what_to_install():
    assert how_to_install(ImportError(name="starlette.routing")) == (
        'starlette is not installed, expected pip install "statepool[live]"'
    )
    assert how_to_install(ImportError(name="numba")) == "numba is not installed, expected pip install statepool"
    assert how_to_install(ImportError(name="statepool.nothing")) is None, "a fault of ours is not hidden"
    assert how_to_install(ImportError("no library")) is None


WITHOUT = """
import sys

for name in ("httpx", "matplotlib"):
    sys.modules[name] = None  # as if it were not installed

import statepool as sp

band = sp.families.band(seed=0, n_actions=4, horizon=60)
run, both = sp.simulate(band, sp.Uniform(), seed=1), sp.compare(band, [sp.Uniform()], delays=[1], seeds=range(2))
for use in (lambda: __import__("statepool.client"), lambda: sp.client, run.plot, both.plot):
    try:
        use()
    except ImportError as error:
        print(error)
"""


def test_without_extras_the_client_and_plots_say_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=300)
    client = 'client: httpx is not installed, expected pip install "statepool[client]"'
    plot = 'plot: matplotlib is not installed, expected pip install "statepool[figures]"'
    assert done.stdout.splitlines() == [client, client, plot, plot], done.stderr
