"""kill -9 under load, two hundred times: all that was acknowledged is there, once, by the clients' own record."""

import json
import time

import pytest

from live.killed import CATALOGUE, Clients, Embedded, OverHTTP, Record, kill_embedded, kill_with_children, moments
from live.postgres import Server
from live.service.servers import Served

pytestmark = pytest.mark.soak

KILLS = {"embedded": 80, "embedded on PostgreSQL": 20, "service": 50, "PostgreSQL": 50}


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.stop()


def test_two_hundred_kills():
    assert sum(KILLS.values()) == 200


def test_embedded_clients_are_killed(tmp_path):
    url, record = f"sqlite:///{tmp_path}/pool.db", Record()
    for n, seconds in enumerate(moments(KILLS["embedded"], longest=0.3, seed=1)):
        kill_embedded(url, "home", record, f"run{n}", seconds)
        record.check(url, "home")
    assert len(record.told) > 10 * KILLS["embedded"]


def test_embedded_clients_of_postgresql_are_killed(server):
    record = Record()
    for n, seconds in enumerate(moments(KILLS["embedded on PostgreSQL"], longest=0.3, seed=2)):
        kill_embedded(server.url(), "killed", record, f"run{n}", seconds)
        record.check(server.url(), "killed")
    assert len(record.told) > 10 * KILLS["embedded on PostgreSQL"]


def test_the_service_is_killed(tmp_path):
    url, record = f"sqlite:///{tmp_path}/pool.db", Record()
    (tmp_path / "map.json").write_text(json.dumps({name: CATALOGUE[name] for name in ("P", "actions", "states")}))
    served = [None]

    def start():
        served[0] = Served("--store", url, "--map", str(tmp_path / "map.json"), "--quiet")

    start()
    with Clients(lambda: OverHTTP(served[0].address, "home"), record) as clients:
        for seconds in moments(KILLS["service"], longest=0.3, seed=3):
            clients.wait_for_more(20)
            time.sleep(seconds)
            served[0].end(9)
            start()
    served[0].end(9)
    record.check(url, "home")
    assert len(record.told) > 20 * KILLS["service"]


def test_the_postgresql_server_is_killed(server):
    record, url = Record(), server.url()
    Embedded(url, "home").pool.close()
    with Clients(lambda: Embedded(url, "home"), record) as clients:
        for seconds in moments(KILLS["PostgreSQL"], longest=0.3, seed=4):
            clients.wait_for_more(20)
            time.sleep(seconds)
            kill_with_children(server._process.pid)
            server._process.wait()
            server.start()
    record.check(url, "home")
    assert len(record.told) > 20 * KILLS["PostgreSQL"]
