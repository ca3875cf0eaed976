"""The examples run."""

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from live.service.clients import POOL
from live.service.servers import serving

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_embedded(tmp_path):
    assert run(sys.executable, EXAMPLES / "embedded.py", cwd=tmp_path).startswith("200 decisions")
    assert run(sys.executable, EXAMPLES / "embedded.py", cwd=tmp_path).startswith("400 decisions")


@pytest.mark.soak
def test_a_classifier_is_worth_its_rows():
    told = run(sys.executable, EXAMPLES / "own_model.py")
    ignoring, own, best = (float(found) for found in re.findall(r"\d\.\d+", told))
    # Of what knowing everything would add, most; learning takes some visitors and purchases are chance, hence not all.
    assert own - ignoring > 0.5 * (best - ignoring) > 0.02


def test_the_service_with_curl_and_the_client(url):
    with serving("--store", url) as served:
        for _ in range(2):
            lines = [json.loads(line) for line in run(EXAMPLES / "service.sh", served.url).split("\n") if line]
            assert lines[1]["ticket"] == "visit-1"
            rows = {line["ticket"]: line for line in lines[-2:]}
            assert rows["visit-1"]["loss"] == 0.0
            assert rows["visit-2"]["action"] in ("discount", "gift")
        assert "with probability" in run(sys.executable, EXAMPLES / "client.py", served.url, "curl")


ANY = {
    "euros": ({"settings": {"loss_bounds": [-20, 300]}}, []),
    "rewards": ({"settings": {"reward_bounds": [0, 100]}}, []),
    "learnt": ({"P": None, "learn_map": True}, []),
    "contexts": ({"P": {"new": POOL["P"], "known": POOL["P"]}}, ["--context", "known"]),
}


def test_the_client_on_any_pool(url):
    with serving("--store", url) as served:
        for name, (more, arguments) in ANY.items():
            made = httpx.put(f"{served.url}/v1/pools/{name}", json=POOL | more)
            assert made.status_code == 201, made.text
            told = run(sys.executable, EXAMPLES / "client.py", served.url, name, *arguments)
            assert "with probability" in told
            assert httpx.get(f"{served.url}/v1/pools/{name}").json()["counts"]["outcome"] == 1


def test_the_client_says_what_was_refused(url):
    with serving("--store", url) as served:
        command = [sys.executable, str(EXAMPLES / "client.py"), served.url, "away"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "client: pool: 'away' is not in this store" in done.stderr
