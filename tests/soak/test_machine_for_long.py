"""The state machine of pools for half an hour, on chance that is new each time; a failure prints how to repeat it."""

import time
from pathlib import Path
from tempfile import mkdtemp

import pytest

from live.places import PostgresPlace, SQLitePlace
from live.postgres import Server
from live.test_machine import run_on


def run_for(minutes, make_place):
    ends, rounds = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < ends:
        run_on(make_place, max_examples=20, stateful_step_count=40)
        rounds += 20
    print(f"{rounds} runs of 40 steps in {minutes} minutes")


@pytest.mark.soak
def test_sqlite_for_twenty_minutes(tmp_path):
    def make_place():
        return SQLitePlace(Path(mkdtemp(dir=tmp_path)) / "pool.db")

    run_for(20, make_place)


@pytest.mark.soak
def test_postgresql_for_ten_minutes():
    server = Server()
    try:
        run_for(10, lambda: PostgresPlace(server.url()))
    finally:
        server.stop()
