"""Long faults on live pools, judged by the clients' own record of what was acknowledged, each followed by replay."""

import os
import random
import shutil
import signal
import subprocess
import time

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
MACHINE_SECONDS = float(os.environ.get("MACHINE_SECONDS", "1200"))


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
    for _ in range(200 if url.startswith("postgres") else 100):
        time.sleep(random.random() * 0.6)
        place = random.randrange(4)
        clients.kill(place)
        clients.start(place)
    clients.until(200)
    assert clients.check() > 1_000


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=["fast", "immediate", "kill"])
def test_the_server_restarts(durable, tmp_path, how):
    clients = Clients(tmp_path, durable.url(), "home")
    for _ in range(5):
        clients.until(200)
        if how is signal.SIGKILL:
            durable.kill()
        else:
            durable._end(how)
        time.sleep(random.random())
        durable.start()
    clients.until(200)
    assert clients.check() > 1_000


def test_sessions_are_terminated(durable, tmp_path):
    clients = Clients(tmp_path, durable.url(), "home")
    for _ in range(50):
        clients.until(30)
        with psycopg.connect(durable.url(), autocommit=True) as connection:
            connection.execute(TERMINATE)
    assert clients.check() > 1_000


def test_a_writer_is_stopped_for_ninety_seconds(durable, tmp_path):
    clients = Clients(tmp_path, durable.url(), "home", update_every=5)
    clients.until(200)
    os.kill(clients.pid(0), signal.SIGSTOP)
    for _ in range(9):
        time.sleep(10)
        clients.until(50, seconds=30)
    os.kill(clients.pid(0), signal.SIGCONT)
    clients.until(200)
    clients.check()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], check=False).returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_the_disk_is_full_and_has_room_again(small_disk, tmp_path):
    pool = open_pool(f"sqlite:///{small_disk / 'pool.db'}", "home")
    filler = small_disk / "filler"
    acknowledged = []
    with filler.open("wb") as file:
        file.write(bytes(20 << 20))

    def fill():
        for _ in range(100_000):
            acknowledged.extend(each.ticket for each in pool.decide_many(100))

    with pytest.raises(StoreUnavailable):
        fill()
    filler.unlink()
    acknowledged += play(pool, 20)
    assert set(acknowledged) <= {row["ticket"] for row in pool.rows()}
    assert pool.replay().ok
    pool.close()


def test_clocks_a_day_off(url, tmp_path):
    clients = Clients(tmp_path, url, "home")
    away = [open_pool(url, "home", clock=lambda shift=shift: time.time() + shift) for shift in (86_400, -86_400)]
    away[0].change(window=3_600.0)
    for _ in range(20):
        clients.until(20)
        for pool in away:
            play(pool, 3)
            pool.expire()
    for pool in away:
        pool.close()
    clients.check()


def test_a_backup_is_restored_under_a_running_process(tmp_path):
    pool = open_pool(f"sqlite:///{tmp_path / 'pool.db'}", "home")
    for n in range(20):
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
