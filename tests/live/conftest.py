"""One PostgreSQL server for all tests of a process, and a place of each kind to keep pools in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.places import Clock, Place
from live.postgres import Server


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
