"""One PostgreSQL server for all tests of a process, and a place of each kind to keep pools in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.places import Place, PostgresPlace, SQLitePlace
from live.postgres import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def database(server: Server) -> str:
    """One for all tests: each takes a pool of its own."""
    return server.url()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        place: Place = SQLitePlace(tmp_path / "pool.db")
    else:
        place = PostgresPlace(request.getfixturevalue("database"))
    yield place
    place.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Place]:
    place = SQLitePlace(tmp_path / "pool.db")
    yield place
    place.close()
