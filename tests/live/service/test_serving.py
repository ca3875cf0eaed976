"""`statepool serve` and `statepool keys` as people run them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from command_line import statepool
from live.service.clients import DECISIONS, POOL
from live.service.servers import MAIN, Served, serving
from statepool import Pool


@pytest.fixture
def map_file(tmp_path):
    file = tmp_path / "map.json"
    file.write_text(json.dumps({**POOL, "written_by": "something else"}))
    return str(file)


def test_serve_stop_and_go_on(url, map_file):
    with serving("--store", url, "--map", map_file) as served:
        before = served.post(DECISIONS, json={"ticket": "t"}).json()
        assert served.get("/").status_code == 200
        assert served.end(signal.SIGTERM) == 0
        lines = [json.loads(line) for line in served.said[1:]]
        asked = [line["path"] for line in lines if "path" in line]
        assert asked == ["/v1/pools/{name}/decisions", "/"]
    with Pool.open(url, "home") as pool:
        pool.change(holdout=0.5)
    with serving("--store", url, "--map", map_file, "--quiet") as served:  # the pool has other settings by now
        assert served.post(DECISIONS, json={"ticket": "t"}).json() == before
        assert served.get("/v1/pools/home").json()["decisions"] == 1
        assert served.end(signal.SIGINT) == 0
        assert served.said[1:] == [f"statepool: pool 'home' goes on as it is, {map_file} was not read\n"]


def test_a_stop_finishes_what_is_in_flight(url, map_file):
    """Eight clients ask without pause; what each was told before the stop is stored."""
    told, stopped = [], threading.Event()

    def ask(address, client):
        with httpx.Client(base_url=address, timeout=120) as http:
            while not stopped.is_set():
                try:
                    answer = http.post(DECISIONS, json={"ticket": f"{client} {len(told)}"})
                except httpx.TransportError:
                    return
                assert answer.status_code == 200
                told.append(answer.json())

    with serving("--store", url, "--map", map_file) as served:
        threads = [threading.Thread(target=ask, args=(served.url, client)) for client in range(8)]
        for thread in threads:
            thread.start()
        while len(told) < 40:
            assert any(thread.is_alive() for thread in threads)
        assert served.end(signal.SIGTERM) == 0
        stopped.set()
        for thread in threads:
            thread.join()
    with serving("--store", url) as served:
        rows = [json.loads(line) for line in served.get("/v1/pools/home/rows").iter_lines()]
    known = {row["ticket"]: row["action"] for row in rows}
    assert len(known) == len(rows)
    assert all(known[decision["ticket"]] == decision["action"] for decision in told)


def test_keys_by_command(url):
    key = statepool("keys", "add", "shop", "--role", "admin", "--store", url).stdout.strip()
    assert statepool("keys", "list", "--store", url).stdout == "shop\tadmin\tnever expires\tall pools\n"
    with serving("--store", url, "--host", "0.0.0.0") as served:
        port = served.address.split(":")[1]
        address = f"http://127.0.0.1:{port}/v1/pools"
        assert httpx.get(address).status_code == 401
        assert httpx.get(address, headers={"authorization": f"Bearer {key}"}).json() == {"pools": []}
    assert statepool("keys", "drop", "shop", "--store", url).returncode == 0
    assert statepool("keys", "drop", "shop", "--store", url).returncode == 2


@pytest.mark.soak
def test_two_workers_share_a_store(url, map_file):
    with serving("--store", url, "--map", map_file, "--workers", "2") as served:
        made = {}
        for number in range(12):  # a connection each, so that both get some
            made[number] = served.post(DECISIONS, json={"ticket": str(number)}).json()
        for number, decision in made.items():
            assert served.post(DECISIONS, json={"ticket": str(number)}).json() == decision
        assert served.get("/v1/pools/home").json()["decisions"] == 12
        found = set(re.findall(r'statepool_requests_total{.*worker="(\d+)"}', served.get("/metrics").text))
        assert found in ({"1"}, {"2"}), "the worker that has answered"
        assert served.end(signal.SIGTERM) == 0


@pytest.mark.soak
def test_the_demo_moves_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with serving("--demo") as served:
        deadline = time.monotonic() + 60
        while served.get("/v1/pools/demo").json()["counts"]["state"] < 20:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert served.get("/").status_code == 200
        assert served.end(signal.SIGTERM) == 0
        assert "Traceback" not in "".join(served.said)
    assert not list(tmp_path.glob("statepool-*/*.db"))


@pytest.mark.soak
def test_64_clients_race_on_one_outcome_across_four_processes(server, map_file):
    with serving("--store", server.emptied(), "--map", map_file, "--workers", "4") as served:
        served.post(DECISIONS, json={"ticket": "t"}).raise_for_status()

        def send(number):
            loss = {"loss": 0.25 if number % 2 else 0.75}
            return served.put(f"{DECISIONS}/t/outcome", json=loss).status_code

        with ThreadPoolExecutor(64) as threads:
            statuses = list(threads.map(send, range(64)))
        assert (statuses.count(200), statuses.count(409)) == (32, 32)
        pool = served.get("/v1/pools/home").json()
        assert pool["counts"]["outcome"] == pool["outcomes"]["learner"]["count"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--store", "nothing"], "expected sqlite:///"),
        (["--store", "sqlite:////no/such/folder/x.db"], "the folder"),
        (["--host", "0.0.0.0"], "has no keys"),
        (["--host", "256.1.1.1", "--open"], "cannot listen"),
        (["--workers", "0"], "workers: is 0"),
        (["--workers", "2", "--demo"], "demo: runs in one process"),
        (["--port", "70000"], "port: is 70000"),
        (["--map", "missing.json"], "cannot be read"),
        (["--map", __file__], "cannot be read, expected an AUDIT.json"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_sentence(url, tmp_path, arguments, says):
    done = statepool("serve", *(["--store", url] if "--store" not in arguments else []), *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("statepool: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken(url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = statepool("serve", "--store", url, "--port", str(taken.getsockname()[1]))
    assert (done.returncode, "cannot listen" in done.stderr) == (2, True)
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_without_the_extra_it_is_said_what_to_install(tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ImportError('no', name='uvicorn')")
    (tmp_path / "sqlalchemy.py").write_text("raise ImportError('no', name='sqlalchemy')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    for command in (["serve"], ["keys", "list"]):
        done = subprocess.run([*MAIN, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.endswith('is not installed, expected pip install "statepool[live]"\n')


def test_other_commands_import_none_of_it():
    code = "import sys, statepool, statepool.cli, statepool.commands.serve; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"starlette", "uvicorn", "msgspec", "sqlalchemy", "psycopg", "jinja2"} & set(loaded.stdout.split())


def test_kill_and_go_on(url, map_file):
    served = Served("--store", url, "--map", map_file)
    told = [served.post(DECISIONS, json={"ticket": str(i)}).json() for i in range(5)]
    served.end(signal.SIGKILL)
    with serving("--store", url) as again:
        for i, decision in enumerate(told):
            assert again.post(DECISIONS, json={"ticket": str(i)}).json() == decision
