"""Whoever uses the client under `mypy --strict` finds it typed: right uses pass, wrong ones are told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

USER = Path(__file__).with_name("user_of_the_client.py")
SOURCES = Path(__file__).parents[2] / "src"


def mypy(path, cache):
    """Run where no settings of ours are found."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", str(path)]
    environment = {**os.environ, "MYPYPATH": str(SOURCES)}
    return subprocess.run(command, cwd=cache, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_a_users_file_is_right(cache):
    assert "Success: no issues found" in mypy(USER, cache)


def test_a_wrong_use_is_told(cache):
    wrong = cache / "wrong.py"
    wrong.write_text(USER.read_text() + "\n\nnumber: int = Client('http://x').pool('home').decide().ticket\n")
    said = mypy(wrong, cache)
    assert 'expression has type "str", variable has type "int"' in said
    assert "Found 1 error" in said
