"""Compiling side by side: others compile what a command has not come to yet, and only on a new machine."""

import os
import subprocess
import sys

import pytest

from command_line import statepool
from statepool.commands import audit
from statepool.commands.ahead import DIMENSION, compile_all, compiling_ahead
from statepool.learners import find

CODE = """
import time, os
from pathlib import Path
from statepool.commands.ahead import compiling_ahead
from statepool.kernels import draw_outcome
with compiling_ahead(["uniform"]):
    draw_outcome(0.5, 0.5)
    until = time.monotonic() + 60
    while not list(Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*_play_rounds*.nbc")):
        assert time.monotonic() < until, "nobody has compiled the loop"
        time.sleep(0.05)
"""


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core has nothing to spare")
def test_others_compile_what_has_not_been_come_to(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_where_nothing_is_compiled_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    with compiling_ahead(["uniform"]):
        pass


def test_names_are_those_of_learners():
    assert all(find(name) for name in audit.AHEAD if name != DIMENSION)


def test_every_name_can_be_compiled():
    compile_all(["uniform", DIMENSION])


def test_the_command_leaves_nothing_to_compile(tmp_path):
    """Neither for a simulation nor for a live pool."""
    code = (
        "from statepool.commands.ahead import compile_all; from statepool.compiling import told_of_compiling\n"
        "with told_of_compiling(print): compile_all(['uniform'])"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for arguments in (["-m", "statepool", "compile", "uniform"], ["-c", code]):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_learner_that_is_not_there_is_named():
    done = statepool("compile", "self-tune")
    assert done.returncode == 2
    assert "self-tuned" in done.stderr
