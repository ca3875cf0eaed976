"""A service in this process, over a SQLite file."""

import pytest

from live.service.clients import POOL, Client
from statepool.live.database import Database
from statepool.live.service import Service


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'pools.db'}"


@pytest.fixture
def database(url):
    with Database(url) as database:
        yield database


@pytest.fixture
def start(url):
    """A client of a service of the one database; it stops with the test, or with `client.stop()`."""
    started = []

    def begin(pool=POOL, **options):
        client = Client(Service(Database(url, read_only=options.get("follow", False)), **options))
        started.append(client)
        if pool is not None:
            assert client.put("/v1/pools/home", json=pool).status_code in (200, 201)
        return client

    yield begin
    for client in started:
        client.stop()


@pytest.fixture
def client(start):
    return start()
