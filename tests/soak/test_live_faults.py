"""Long faults on live pools, judged by the clients' own record of what was acknowledged, each followed by replay.

SOAK_SHARE=0.1 makes every loop a tenth as long, MACHINE_SECONDS=1200 is the time of the state machine on both stores.
"""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from live.clients import Clients, open_pool
from live.places import Place, play
from live.postgres import Server
from live.test_machine import run_on
from live.test_postgres import TERMINATE
from statepool.live.errors import StoreUnavailable
from statepool.live.maintenance import backup

pytestmark = pytest.mark.soak
SHARE = float(os.environ.get("SOAK_SHARE", "1"))
MACHINE_SECONDS = float(os.environ.get("MACHINE_SECONDS", "1200"))


def times(count):
    """How often a loop runs."""
    return range(max(1, round(SHARE * count)))


@pytest.fixture
def durable():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'pool.db'}"
    return request.getfixturevalue("durable").url()


def test_many_kills_of_four_writers(url, tmp_path):
    clients = Clients(tmp_path, url, "home", twice=True, changes=True)
    clients.until(100)
    for _ in times(200 if url.startswith("postgres") else 100):
        time.sleep(random.random() * 0.6)
        place = random.randrange(4)
        clients.kill(place)
        clients.start(place)
    clients.until(200)
    assert clients.check() > 300


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=["fast", "immediate", "kill"])
def test_the_server_restarts(durable, tmp_path, how):
    clients = Clients(tmp_path, durable.url(), "home")
    for _ in times(5):
        clients.until(200)
        if how is signal.SIGKILL:
            durable.kill()
        else:
            durable._end(how)
        time.sleep(random.random())
        durable.start()
    clients.until(200)
    assert clients.check() > 300


def test_sessions_are_terminated(durable, tmp_path):
    clients = Clients(tmp_path, durable.url(), "home")
    for _ in times(50):
        clients.until(30)
        with psycopg.connect(durable.url(), autocommit=True) as connection:
            connection.execute(TERMINATE)
    assert clients.check() > 30


def test_a_writer_is_stopped_for_ninety_seconds(durable, tmp_path):
    clients = Clients(tmp_path, durable.url(), "home", update_every=5)
    clients.until(200)
    os.kill(clients.pid(0), signal.SIGSTOP)
    for _ in times(9):
        time.sleep(10)
        clients.until(50, seconds=30)
    os.kill(clients.pid(0), signal.SIGCONT)
    clients.until(200)
    clients.check()


@pytest.fixture
def disk():
    """Mounts a file system of so many megabytes, most of which a file takes that can be deleted."""
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    folder.chmod(0o755)

    def mount(size):
        options = ["-t", "tmpfs", "-o", f"size={size}m,mode=755", "tmpfs", folder]
        if subprocess.run(["mount", *options], check=False).returncode:
            pytest.skip("needs the right to mount")
        return folder

    yield mount
    subprocess.run(["umount", "-l", folder], check=False)
    folder.rmdir()


def fill_and_free(pool, filler, recover=lambda: None):
    """Decide until the disk is full, make room, go on; nothing that was acknowledged is lost."""
    acknowledged = []

    def decide():
        for _ in range(100_000):
            acknowledged.extend(each.ticket for each in pool.decide_many(100))

    with pytest.raises(StoreUnavailable):
        decide()
    filler.unlink()
    recover()
    acknowledged += play(pool, 20)
    assert set(acknowledged) <= {row["ticket"] for row in pool.rows()}
    assert pool.replay().ok
    pool.close()


def test_the_disk_is_full_and_has_room_again(disk):
    folder = disk(24)
    (folder / "filler").write_bytes(bytes(20 << 20))
    fill_and_free(open_pool(f"sqlite:///{folder / 'pool.db'}", "home"), folder / "filler")


def test_the_disk_of_a_server_is_full_and_has_room_again(disk, monkeypatch):
    folder = disk(400)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    server = Server("max_wal_size=32MB", "min_wal_size=32MB")
    try:
        pool = open_pool(server.url(), "home")
        room = shutil.disk_usage(folder).free
        (folder / "filler").write_bytes(bytes(room - (8 << 20)))
        fill_and_free(pool, folder / "filler", server.start)  # without room for its log the server ends
    finally:
        server.stop()


def test_clocks_a_day_off(url, tmp_path):
    clients = Clients(tmp_path, url, "home")
    away = [open_pool(url, "home", clock=lambda shift=shift: time.time() + shift) for shift in (86_400, -86_400)]
    away[0].change(window=3_600.0)
    for _ in times(20):
        clients.until(20)
        for pool in away:
            play(pool, 3)
            pool.expire()
    for pool in away:
        pool.close()
    clients.check()


def test_a_backup_is_restored_under_a_running_process(tmp_path):
    pool = open_pool(f"sqlite:///{tmp_path / 'pool.db'}", "home")
    for n in times(20):
        play(pool, 30)
        backup(pool.database, tmp_path / f"copy-{n}.db")
        kept = [row["ticket"] for row in pool.rows()]
        lost = play(pool, 10)
        for end in ("-wal", "-shm", ""):
            (tmp_path / f"pool.db{end}").unlink(missing_ok=True)
        shutil.copy(tmp_path / f"copy-{n}.db", tmp_path / "pool.db")
        new = play(pool, 10)
        there = [row["ticket"] for row in pool.rows()]
        assert there == kept + new
        assert not set(lost) & set(there)
        assert pool.replay().ok
    pool.close()


def test_the_state_machine_for_long(url):
    deadline = time.monotonic() + MACHINE_SECONDS / 2
    while time.monotonic() < deadline:
        run_on(lambda: Place(url), max_examples=50, stateful_step_count=60)
