"""A real PgBouncer before a server of the tests: few sessions, handed from one client to the next."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from live.postgres import Server

SETTINGS = """
[databases]
postgres = host={server.folder} dbname=postgres user=postgres
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = {mode}
default_pool_size = 3
server_login_retry = 0
query_wait_timeout = 2
logfile = {folder}/log
"""


def program() -> str | None:
    """Where it is; Debian keeps it where only root looks."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class PgBouncer:
    def __init__(self, server: Server, mode: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pgb-"))
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(server=server, folder=self.folder, mode=mode))
        rights: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to run as root
            nobody = pwd.getpwnam("nobody")
            for path in (self.folder, settings):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            rights = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._process = subprocess.Popen([str(program()), "-q", str(settings)], stderr=subprocess.DEVNULL, **rights)
        self._wait()

    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}&port=6432"

    def _wait(self) -> None:
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
