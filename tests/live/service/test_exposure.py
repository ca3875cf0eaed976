"""Without keys a service that others can reach answers nobody, in whichever process and at whatever time."""

import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from command_line import statepool
from live.service.clients import DECISIONS, POOL, Client
from live.service.servers import serving
from statepool.commands.serve import make_service
from statepool.live.service.keys import add_key

ADDRESSES = ("/", "/login", "/readyz", "/schema", "/metrics", "/v1/pools", "/v1/pools/home", "/pools/home")


def check_nobody_is_answered(url, **options):
    """A process that was started after the last key was dropped, as a worker is that takes another's place."""
    client = Client(make_service(url, quiet=True, **options))
    try:
        for address in ADDRESSES:
            assert client.get(address).status_code in (303, 401, 403), f"{address} was answered"
        assert client.post(DECISIONS).status_code in (401, 403), "a decision was made"
        assert client.put("/v1/pools/mine", json=POOL).status_code in (401, 403), "a pool was made"
    finally:
        client.stop()


def test_a_process_that_others_can_reach(url):
    check_nobody_is_answered(url, exposure="none")


def test_a_process_of_a_service_that_was_started_with_keys(url):
    for exposure in ("anyone", "localhost", "none"):
        client = Client(make_service(url, exposure, keyed=True, quiet=True))
        assert client.get("/v1/pools").status_code == 401
        client.stop()


def test_it_is_said_why_and_the_process_counts_as_alive(url, database):
    client = Client(make_service(url, "none", quiet=True))
    assert "statepool keys add" in client.get("/v1/pools").json()["error"]
    assert client.get("/healthz").status_code == 200
    key = add_key(database, "first", "admin")
    client.app.gate.reload()
    assert client.get("/v1/pools").status_code == 401
    assert client.get("/v1/pools", headers={"authorization": f"Bearer {key}"}).status_code == 200
    client.stop()


@pytest.mark.soak
def test_a_worker_that_takes_anothers_place(url):
    """With real workers: the parent saw a key, the last one is dropped, a worker is killed and another begins."""
    statepool("keys", "add", "shop", "--role", "admin", "--store", url)
    with serving("--store", url, "--host", "0.0.0.0", "--workers", "2", "--quiet") as served:
        address = f"http://127.0.0.1:{served.address.split(':')[1]}/v1/pools"
        assert httpx.get(address, timeout=60).status_code == 401
        assert statepool("keys", "drop", "shop", "--store", url).returncode == 0
        killed = _workers(served.process.pid)
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        # The parent asks each worker whether it lives; one that dies while it is asked is waited for, a minute.
        deadline = time.monotonic() + 150
        while len(_workers(served.process.pid) - killed) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(6):
            assert httpx.get(address, timeout=60).status_code == 401


def _workers(parent):
    """Its children, by the system's account; the one that only tracks resources does not listen."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()}
