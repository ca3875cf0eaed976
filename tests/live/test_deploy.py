"""What deploy/ tells systemd to run, run here; and that its files are valid."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from statepool.live import Pool

DEPLOY = Path(__file__).parents[2] / "deploy"
PLACES = {"/var/lib/statepool": "lib", "/var/backups/statepool": "backups"}


def commands(unit, folder):
    """The commands of a unit as systemd would run them, in other folders."""
    text = (DEPLOY / unit).read_text()
    for place, here in PLACES.items():
        text = text.replace(place, str(folder / here))
    text = text.replace("/opt/statepool/bin/statepool", f"{sys.executable} -m statepool").replace("%%", "%")
    text = text.replace("--owner=statepool --group=statepool ", "")  # a user that is not on this machine
    return [line.replace("$$", "$") for line in re.findall(r"^ExecStart(?:Pre)?=\+?(.*)$", text, re.M)]


def test_the_nightly_backup_is_a_database_that_replays(tmp_path):
    url = f"sqlite:///{tmp_path}/pools.db"
    with Pool.open(url, "home", [[0.7, 0.3], [0.2, 0.8]], ["tea", "cake"], ["left", "cart"]) as pool:
        for decision in pool.decide_many(10):
            pool.observe(decision.ticket, "cart")
            pool.resolve(decision.ticket, loss=0.5)
    for command in commands("statepool-backup.service", tmp_path):
        environment = os.environ | {"STATEPOOL_STORE": url}
        subprocess.run(["/bin/sh", "-c", command], env=environment, check=True, capture_output=True)
    [copy] = (tmp_path / "backups").glob("*.db")
    with Pool.open(f"sqlite:///{copy}", "home") as pool:
        assert pool.status().decisions == 10


def test_options_of_the_unit_and_the_container_are_known():
    shown = subprocess.run(
        [sys.executable, "-m", "statepool", "serve", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for file in ("statepool.service", "Containerfile"):
        text = (DEPLOY / file).read_text()
        [line] = re.findall(r"statepool serve (.*)", text)
        for option in re.findall(r"--[a-z-]+", line):
            assert option in shown, (file, option)


def test_proxies_pass_on_what_the_service_reads():
    nginx = (DEPLOY / "nginx.conf").read_text()
    for line in ("Host $http_host", "X-Forwarded-Proto $scheme", "client_max_body_size", "limit_req "):
        assert line in nginx
    assert "reverse_proxy 127.0.0.1:8000" in (DEPLOY / "Caddyfile").read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_every_unit(tmp_path):
    units = [*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")]
    assert len(units) == 3
    for unit in units:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/statepool/bin/statepool", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", *(tmp_path / unit.name for unit in units)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
