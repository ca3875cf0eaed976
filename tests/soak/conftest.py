"""An empty store of each kind, with a server of its own where it takes one."""

import pytest

from live.postgres import Server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/pool.db"
        return
    server = Server()
    yield server.url()
    server.stop()
