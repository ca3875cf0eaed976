"""The steps of deploy/Containerfile, run one by one in an empty Debian root; then the service answers and is backed up.

Needs root and debootstrap (or a root that was made before, in STATEPOOL_DEBIAN_ROOT).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PACKAGES = "python3,python3-venv,ca-certificates"

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="needs debootstrap"),
]


def steps():
    """(instruction, rest) of each line."""
    lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]


def pip_settings():
    """Where this machine's pip looks, for the pip inside."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    found = re.findall(r"^(?:global|:env:|user)\.([\w-]+)='(.*)'$", told, re.M)
    inside = {"PIP_CERT": "/tmp/certificates.crt"}
    return inside | {
        f"PIP_{name.upper().replace('-', '_')}": value for name, value in found if name.endswith(("url", "host"))
    }


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    made = Path(os.environ.get("STATEPOOL_DEBIAN_ROOT", "")) if "STATEPOOL_DEBIAN_ROOT" in os.environ else None
    folder = made or tmp_path_factory.mktemp("debian") / "root"
    if made is None:
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", folder], check=True)
    shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
    shutil.copy(CERTIFICATES, folder / "tmp" / "certificates.crt")  # whom this machine trusts, pip inside trusts
    for name, kind in (("proc", "proc"), ("dev", "devtmpfs")):
        subprocess.run(["mount", "-t", kind, kind, folder / name], check=True)
    yield folder
    for name in ("proc", "dev"):
        subprocess.run(["umount", "-l", folder / name], check=False)


def inside(folder, command, user="root", **environment):
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/var/lib/statepool", **pip_settings(), **environment}
    return subprocess.Popen(
        ["chroot", f"--userspec={user}", str(folder), "/bin/sh", "-c", command],
        env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def run(folder, command, **options):
    process = inside(folder, command, **options)
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, f"{command}\n{said}"
    return said


def test_the_containers_steps_in_an_empty_root(debian, tmp_path):
    wheel = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(wheel, check=True, capture_output=True)
    [built] = tmp_path.glob("statepool-*.whl")
    user, environment = "root", {}
    for instruction, rest in steps():
        if instruction == "RUN":
            run(debian, rest, user=user, **environment)
        elif instruction == "COPY":
            shutil.copy(built, debian / "tmp" / built.name)
        elif instruction == "USER":
            user = rest
        elif instruction == "ENV":
            environment |= dict([rest.split("=", 1)])
        elif instruction == "CMD":
            start = json.loads(rest)[-1]
        else:
            assert instruction in ("FROM", "WORKDIR", "VOLUME", "EXPOSE")
    store = environment["STATEPOOL_STORE"]
    cli = "cd /var/lib/statepool && exec /opt/statepool/bin/statepool"
    key = run(debian, f"{cli} keys add boss --role admin --store {store}", user=user).strip()
    service = inside(debian, start.replace("--host 0.0.0.0", "--host 127.0.0.1 --port 18765"), user=user, **environment)
    try:
        with httpx.Client(base_url="http://127.0.0.1:18765", headers={"authorization": f"Bearer {key}"}) as client:
            wait_for(client)
            pool = {"actions": ["a", "b"], "states": ["x", "y"], "P": [[0.5, 0.5], [0.2, 0.8]]}
            assert client.put("/v1/pools/home", json=pool, timeout=300).status_code == 201
            made = client.post("/v1/pools/home/decisions", timeout=300).json()
            address = f"/v1/pools/home/decisions/{made['ticket']}"
            assert client.put(f"{address}/state", json={"state": "x"}).status_code == 200
            assert client.put(f"{address}/outcome", json={"loss": 0.5}).status_code == 200
            said = run(debian, f"{cli} backup {store} /var/lib/statepool/b.db --verify", user=user)
            assert "every journal was replayed, and agrees" in said
    finally:
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=60)
    assert service.returncode == 0


def wait_for(client):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            client.get("/healthz")
            return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("the service did not start")
