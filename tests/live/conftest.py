"""One PostgreSQL server for all tests of a process, and a place of each kind to keep pools in."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from live.places import Clock, Place
from live.postgres import Server

MEMORY = Path("/dev/shm")
"""Where bringing a file to disk costs nothing; tests of what survives a power cut are not among these."""


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=MEMORY, prefix="statepool-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server("fsync=off")
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    on_sqlite = request.param == "sqlite"
    place = Place(f"sqlite:///{tmp_path / 'pool.db'}" if on_sqlite else request.getfixturevalue("server").url())
    yield place
    place.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Place]:
    place = Place(f"sqlite:///{tmp_path / 'pool.db'}")
    yield place
    place.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()
