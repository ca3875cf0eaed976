"""What deploy/ tells systemd to run, run here: the nightly backup of a store that was compacted restores all of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from live.places import raw_events
from live.test_restored import play
from statepool.live.backup import restore

DEPLOY = Path(__file__).parents[2] / "deploy"
PLACES = {"/var/lib/statepool": "lib", "/var/backups/statepool": "backups"}


def commands(unit, store, folder):
    """The lines of a unit as systemd would run them, in other folders and with events that are old at once."""
    text = (DEPLOY / unit).read_text()
    for place, here in PLACES.items():
        text = text.replace(place, str(folder / here))
    text = text.replace("/opt/statepool/bin/statepool", f"{sys.executable} -m statepool").replace("%%", "%")
    text = text.replace("--older-than 90d", "--older-than 0s --least 1")
    text = text.replace("--owner=statepool --group=statepool ", "")  # a user that is not on this machine
    lines = re.findall(r"^ExecStart(?:Pre)?=\+?(.*)$", text, re.M)
    return [line.replace("${STATEPOOL_STORE}", store).replace("$$", "$") for line in lines]


def test_the_nightly_backup_holds_what_was_sealed(sqlite, tmp_path):
    (tmp_path / "lib").mkdir()
    for night in range(2):  # after the first, events are in segments alone
        with sqlite.make() as pool:
            play(pool, 10, seed=night)
        for command in commands("statepool-backup.service", sqlite.url, tmp_path):
            environment = os.environ | {"STATEPOOL_STORE": sqlite.url}
            subprocess.run(["/bin/sh", "-c", command], env=environment, check=True, capture_output=True)
    assert sqlite.events() == [], "all was sealed"
    *_, last = sorted((tmp_path / "backups").glob("*.db"))
    copies = tmp_path / "backups" / "segments"
    shutil.rmtree(tmp_path / "lib")  # the disk is lost
    [held] = restore(last, f"sqlite:///{tmp_path}/restored.db", verify=True, place=str(copies))
    assert (held.decisions, held.faults) == (20, ())
    assert held.in_segments > 0
    assert len(raw_events(f"sqlite:///{tmp_path}/restored.db", sqlite.name)) == held.head.seq - held.in_segments
    assert all(each.suffix == ".segment" for each in copies.iterdir())


@pytest.mark.parametrize("unit", ["statepool.service", "statepool-backup.service"])
def test_no_unit_keeps_notes_beside_the_store(unit):
    """Whoever can change the store could change them."""
    assert not [line for line in commands(unit, "STORE", Path("/")) if "--anchor" in line]


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
