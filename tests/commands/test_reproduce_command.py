"""`statepool reproduce` as a person runs it: killed, resumed, on a cluster, with bad input."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import command_line
import statepool

STATEPOOL = str(Path(sys.executable).with_name("statepool"))
STUDY = "effective-dimension"
reproduce = partial(command_line.statepool, "reproduce")


def stored(folder):
    return {path: path.stat().st_mtime_ns for path in (folder / "cells").rglob("*.json")}


def outputs(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "cells" not in path.relative_to(folder).parts
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    done = reproduce(STUDY, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_json_is_all_there_is_on_standard_output(undisturbed):
    done = reproduce(STUDY, "--json", "--out", undisturbed)
    records = json.loads(done.stdout)
    wanted = {"study", "cell", "column", "published", "ours", "se", "met", "shown"}
    assert all(wanted <= set(record) for record in records)
    assert any(record["published"] is not None for record in records)


def test_one_study_leaves_the_report_of_all_alone(undisturbed):
    whole = ("report.html", "records.json")
    for name in whole:
        (undisturbed / name).write_text("of all studies")
    assert reproduce(STUDY, "--out", undisturbed).returncode == 0
    assert reproduce(STUDY, "--quick", "--out", undisturbed).returncode == 0
    for name in whole:
        assert (undisturbed / name).read_text() == "of all studies"
        stem, kind = name.split(".")
        assert (undisturbed / f"{stem}-{STUDY}.{kind}").exists()
        assert (undisturbed / f"{stem}-{STUDY}-quick.{kind}").exists()
        (undisturbed / name).unlink()
    for path in undisturbed.glob(f"*-{STUDY}-quick.*"):
        path.unlink()


def test_a_quick_run_says_so_on_every_table(tmp_path):
    done = reproduce(STUDY, "--quick", "--out", tmp_path)
    assert done.stdout.count("QUICK") == 1
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_second_run_computes_nothing(undisturbed):
    before = stored(undisturbed)
    reproduce(STUDY, "--out", undisturbed)
    assert stored(undisturbed) == before


def test_a_damaged_entry_is_computed_again(undisturbed):
    victim = min(stored(undisturbed))
    right = victim.read_text()
    victim.write_text("damaged")
    assert reproduce(STUDY, "--out", undisturbed).returncode == 0
    assert victim.read_text() == right


def test_killed_twice_it_loses_nothing_and_ends_the_same(undisturbed, tmp_path):
    chance = random.Random(7)
    kept: dict[Path, int] = {}
    for _ in range(2):
        process = subprocess.Popen(
            [STATEPOOL, "reproduce", STUDY, "--jobs", "1", "--out", str(tmp_path)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(chance.uniform(0.8, 2.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = stored(tmp_path)
        assert kept.items() <= now.items(), "a finished cell was lost or computed again"
        kept = now
    done = reproduce(STUDY, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert outputs(tmp_path) == outputs(undisturbed)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["funel"], "did you mean funnel?"),
        (["funnel", "--jobs", "0"], "jobs: is 0"),
        (["funnel", "--out", "/dev/null/x"], "out: cannot write"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, tmp_path):
    done = reproduce(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.soak
def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path):
    """In a process of its own: Dask leaves the thread of a client that never connected to the end of one."""
    command = [STATEPOOL, "reproduce", "funnel", "--cluster", "tcp://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "statepool: cluster: no scheduler answers at tcp://127.0.0.1:1 (OSError)\n"


class Cluster:
    """A Dask scheduler and its workers, in processes of their own."""

    def __init__(self, folder):
        found = folder / "scheduler.json"
        self._processes = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", found)
        wait_for(lambda: found.exists() and found.stat().st_size)  # Dask writes it after creating it
        self.address = json.loads(found.read_text())["address"]

    def worker(self, **environment):
        options = ("--no-nanny", "--no-dashboard", "--nthreads", "1")
        return self._start("worker", self.address, *options, env={**os.environ, **environment})

    def _start(self, *arguments, **options):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._processes.append(subprocess.Popen(command, **silent, **options))
        return self._processes[-1]

    def stop(self):
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def test_a_cluster_that_loses_a_worker_gives_the_same_bits(undisturbed, tmp_path, cluster):
    workers = [cluster.worker() for _ in range(2)]
    out = tmp_path / "out"
    run = subprocess.Popen(
        [STATEPOOL, "reproduce", STUDY, "--cluster", cluster.address, "--out", str(out)], stdout=subprocess.DEVNULL
    )
    wait_for(lambda: len(stored(out)) >= 10)
    workers[0].kill()
    assert len(stored(out)) < 120, "the worker was killed too late to matter"
    assert run.wait(timeout=180) == 0
    assert outputs(out) == outputs(undisturbed)


@pytest.mark.soak
def test_a_worker_with_other_sources_is_refused(tmp_path, cluster):
    """Its results would be stored under the hash of sources that did not compute them."""
    package = Path(statepool.__file__).parent
    shutil.copytree(package, tmp_path / "other" / "statepool", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "other" / "statepool" / "kernels.py").open("a") as file:
        file.write("\n# Another release.\n")
    cluster.worker(PYTHONPATH=str(tmp_path / "other"))
    done = reproduce(STUDY, "--quick", "--cluster", cluster.address, "--out", tmp_path / "out")
    assert done.returncode == 2
    progress, sentence = done.stderr.strip().splitlines()
    assert "0/10" in progress
    assert "computes with something else (sources " in sentence
    assert stored(tmp_path / "out") == {}


def wait_for(condition, seconds=90):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "nothing happened in time"
        time.sleep(0.05)
