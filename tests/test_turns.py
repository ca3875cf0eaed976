"""Turns between processes."""

import signal
import subprocess
import sys
import time

import pytest

from statepool.turns import PATIENCE, Turns

HOLDING = """
import sys, time
from pathlib import Path
from statepool.turns import Turns
turns = Turns(Path(sys.argv[1]))
print(all([turns.take(name) for name in sys.argv[2:]]), flush=True)
time.sleep(60)
"""


INNER = [f"inner {n}" for n in range(8)]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "turns"


@pytest.fixture
def holder(file):
    command = [sys.executable, "-c", HOLDING, str(file), "one", *INNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_what_somebody_has_is_waited_for_and_nothing_else(file, holder):
    turns = Turns(file, patience=0.3)
    assert turns.take("two")
    begun = time.monotonic()
    assert not turns.take("one")
    assert time.monotonic() - begun >= 0.3


def test_who_is_killed_has_it_no_more(file, holder):
    turns = Turns(file, patience=30)
    holder.kill()
    assert turns.take("one")


def test_what_is_ended_is_free_for_others(file):
    ours = Turns(file)
    assert ours.take("one")
    command = [sys.executable, "-c", HOLDING, str(file), "one"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(0.5)
        ours.end("one")
        assert process.stdout.readline() == "True\n"
        process.kill()
    assert ours.take("one")


def test_a_file_that_cannot_be_is_no_obstacle(tmp_path):
    turns = Turns(tmp_path / "nowhere" / "turns")
    assert not turns.take("one")
    turns.end("one")


def test_who_is_stopped_with_many_turns_holds_up_nobody_for_long(file, holder):
    """As one who is stopped while it compiles, which takes a turn of each function inside another."""
    holder.send_signal(signal.SIGSTOP)
    turns, begun = Turns(file, patience=0.25), time.monotonic()
    assert not any(turns.take(name) for name in ["one", *INNER])
    assert 0.25 <= time.monotonic() - begun < 1.5, "and not nine times as long as once"
    assert turns.take("another")


def test_nobody_is_waited_for_so_long_that_a_start_fails():
    """Who opens a pool beside a process that was stopped goes on within a minute."""
    assert 2 * PATIENCE < 60
