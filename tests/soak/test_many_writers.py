"""Several writers on one PostgreSQL pool, each with a lane of its own, through all that happens to machines.

Judged by what the clients themselves wrote down, against the tables as they are; then by `replay --redraw`.
"""

import os
import random
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import psycopg
import pytest

from live.killed import FORKS, Clients, Embedded, Record, embedded_client, kill_with_children, listen, moments, wait_for
from live.postgres import Server
from statepool.live.errors import StoreUnavailable
from statepool.live.replay import replay
from statepool.live.stores import open_store

pytestmark = pytest.mark.soak

WRITERS = 4
KILLS = 200
RESTARTS = 20
STOPPED_SECONDS = 90.0


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


def check(record, url, name):
    record.check(url, name)
    store = open_store(url)
    found, _ = replay(store, name, redraw=True)
    store.close()
    assert not found.faults, found.faults[:3]
    assert found.redrawn == found.decisions, "every decision is drawn again, those with candidates too"
    return found


class Writer:
    """A process that plays; what it said is read until it ends."""

    def __init__(self, url, name, prefix, again=()):
        reading, writing = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=embedded_client, args=(url, name, prefix, list(again), writing))
        self.process.start()
        writing.close()
        self.prefix, self._pipe, self.said = prefix, reading, bytearray()
        self._reader = threading.Thread(target=listen, args=(reading.fileno(), self.said))
        self._reader.start()

    def wait(self):
        wait_for(f'"{self.prefix}-'.encode(), self.said)

    def kill(self, record):
        import json

        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        self._reader.join()
        for line in bytes(self.said).split(b"\n")[:-1]:  # the last one may be torn
            record.add(json.loads(line))


def test_writers_are_killed(server):
    url, record = server.url(), Record()
    Embedded(url, "home").pool.close()
    writers = [Writer(url, "home", f"w{n}") for n in range(WRITERS)]
    for n, seconds in enumerate(moments(KILLS, longest=0.2, seed=11)):
        writers[n % WRITERS].wait()
        time.sleep(seconds)
        writers[n % WRITERS].kill(record)
        writers[n % WRITERS] = Writer(url, "home", f"run{n}", record.doubtful())
        if n % 50 == 49:
            record.check(url, "home")  # while the others go on
    for writer in writers:
        writer.wait()
        writer.kill(record)
    found = check(record, url, "home")
    assert found.decisions > 5 * KILLS


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_the_server_is_restarted(server, how):
    url, record = server.url(), Record()
    Embedded(url, "home").pool.close()
    with Clients(lambda: Embedded(url, "home"), record, count=WRITERS) as clients:
        for seconds in moments(RESTARTS, longest=0.3, seed=12):
            clients.wait_for_more(20)
            time.sleep(seconds)
            server._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
            server._process.wait()
            server.start()
    check(record, url, "home")


def test_backends_are_terminated_at_every_statement(server, monkeypatch):
    """The n-th statement of a round of calls finds its backend gone: for every n, until a round has fewer."""
    url, record = server.url(), Record()
    execute, state = psycopg.Connection.execute, {"left": -1, "hit": False}

    def cut(connection, *statement, **how):
        state["left"] -= 1
        if state["left"] == 0:
            state["hit"] = True
            with psycopg.connect(url, autocommit=True) as other:
                execute(other, "SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        return execute(connection, *statement, **how)

    client = Embedded(url, "home")
    client.decide("first")
    monkeypatch.setattr(psycopg.Connection, "execute", cut)
    for n in range(1, 200):
        state["left"], state["hit"] = n, False
        for kind, call in (("decision", "decide"), ("state", "observe"), ("outcome", "resolve")):
            for _ in range(5):
                with suppress(StoreUnavailable):
                    record.add((kind, f"t{n}", getattr(client, call)(f"t{n}")))
                    break
            else:
                pytest.fail(f"statement {n}: {call} never came through")
        if not state["hit"]:
            break
    else:
        pytest.fail("a round has more statements than were cut")
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    assert n > 15
    client.close()
    check(record, url, "home")


def test_a_writer_stands_still_for_long(server):
    url, record = server.url(), Record()
    Embedded(url, "home").pool.close()
    writers = [Writer(url, "home", f"w{n}") for n in range(WRITERS)]
    for writer in writers:
        writer.wait()
    os.kill(writers[0].process.pid, signal.SIGSTOP)
    began, others = time.monotonic(), len(writers[1].said)
    while time.monotonic() - began < STOPPED_SECONDS:
        time.sleep(1)
    assert len(writers[1].said) > others, "the others go on"
    told = len(writers[0].said)
    os.kill(writers[0].process.pid, signal.SIGCONT)
    deadline = time.monotonic() + 60
    while len(writers[0].said) < told + 1_000:
        assert writers[0].process.is_alive()
        assert time.monotonic() < deadline, "it goes on, too"
        time.sleep(0.05)
    for writer in writers:
        writer.kill(record)
    check(record, url, "home")


@contextmanager
def small_disk(folder, megabytes):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill_up(folder):
    """A file that leaves no room."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))
    return ballast


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted, which takes root")
def test_a_disk_is_full_and_has_room_again_under_a_file(tmp_path):
    with small_disk(tmp_path / "disk", 24) as disk:
        url, record = f"sqlite:///{disk}/pool.db", Record()
        Embedded(url, "home").pool.close()
        with Clients(lambda: Embedded(url, "home"), record, count=2) as clients:
            for _ in range(5):
                clients.wait_for_more(60)
                ballast = fill_up(disk)
                time.sleep(1.0)
                ballast.unlink()
        check(record, url, "home")


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted, which takes root")
def test_a_disk_is_full_and_has_room_again_under_a_server(tmp_path, monkeypatch):
    with small_disk(tmp_path / "disk", 400) as disk:
        tmp_path.chmod(0o755)
        for parent in tmp_path.parents:
            if str(parent).startswith("/tmp/"):
                parent.chmod(0o755)
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        server = Server()
        monkeypatch.setattr("tempfile.tempdir", None)
        try:
            url, record = server.url(), Record()
            Embedded(url, "home").pool.close()
            with Clients(lambda: Embedded(url, "home"), record, count=WRITERS) as clients:
                for _ in range(5):
                    clients.wait_for_more(60)
                    ballast = fill_up(disk)
                    time.sleep(2.0)
                    ballast.unlink()
                    if server._process.poll() is not None:  # it gives up when it cannot write its log
                        server.start()
            check(record, url, "home")
        finally:
            kill_with_children(server._process.pid)
            server._process.wait()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_clocks_jump_by_a_day(store, request, tmp_path):
    """Of the processes that decide and report; what was acknowledged is there, and the journal agrees."""
    url = f"sqlite:///{tmp_path}/pool.db" if store == "sqlite" else request.getfixturevalue("server").url()
    record, luck = Record(), random.Random(3)
    clients = [Embedded(url, "home") for _ in range(3)]
    for client in clients:
        client.pool._journal._clock = lambda: time.time() + luck.choice([-86_400, 0, 86_400])
    for n in range(400):
        client = clients[luck.randrange(3)]
        for kind, call in (("decision", "decide"), ("state", "observe"), ("outcome", "resolve")):
            record.add((kind, f"t{n}", getattr(client, call)(f"t{n}")))
    for client in clients:
        client.close()
    check(record, url, "home")
