"""Floods from this machine without any key: the process stays small and goes on answering."""

import resource
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from live.service.servers import serving

pytestmark = pytest.mark.soak

CONNECTIONS, PIECES = 100, 64


def resident(process):
    """MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.fixture
def sockets():
    """More of them than a process has by default."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    made = []
    yield made
    for each in made:
        each.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def served(tmp_path):
    with serving("--store", f"sqlite:///{tmp_path}/pools.db", "--quiet") as found:
        assert found.get("/healthz").status_code == 200
        yield found


def connect(served, sockets):
    host, port = served.address.split(":")
    sockets.append(socket.create_connection((host, int(port)), timeout=5))
    return sockets[-1]


def test_four_hundred_megabytes_of_headers(served, sockets):
    before, sent = resident(served.process), 0
    for _ in range(CONNECTIONS):
        connection = connect(served, sockets)
        with suppress(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx: ")
            for _ in range(PIECES):
                connection.sendall(b"a" * 65536)
                sent += 65536
    after = resident(served.process)
    print(f"headers: {sent / 1e6:.0f} MB sent, {before:.0f} to {after:.0f} MB")
    assert after - before < 50
    assert served.get("/healthz").status_code == 200


def test_eleven_hundred_half_open_requests(served, sockets):
    for _ in range(1100):
        connect(served, sockets).sendall(b"GET /healthz HTTP/1.1\r\nhost:")
    began = time.monotonic()
    assert served.get("/healthz").status_code == 200
    print(f"beside 1100 half-open connections: answered in {time.monotonic() - began:.2f} s")
    time.sleep(12)
    held = 0
    for connection in sockets:
        connection.settimeout(0.001)
        try:
            held += connection.recv(1) != b""
        except TimeoutError:
            held += 1
        except OSError:
            pass
    assert held == 0, "they are cut within twelve seconds"


def test_requests_sent_without_waiting_for_answers(served, sockets):
    before = resident(served.process)
    for _ in range(50):
        with suppress(OSError):
            connect(served, sockets).sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * 40_000)
    assert served.get("/healthz").status_code == 200
    after = resident(served.process)
    print(f"two million queued requests: {before:.0f} to {after:.0f} MB")
    assert after - before < 100
