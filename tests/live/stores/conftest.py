"""A new store of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from statepool.live.stores import open_store
from statepool.live.stores.store import Store


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/pool.db"
    return request.getfixturevalue("server").emptied()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = open_store(url)
    store.ensure("home")
    yield store
    store.close()
