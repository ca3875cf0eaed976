"""`statepool serve` as a process of its own."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import httpx

PATIENCE = 120.0  # the first decision of a new version of the package waits for its compiler
MAIN = (sys.executable, "-W", "error", "-c", "from statepool.cli import main; main()")


class Served:
    """Its address is on the first line it says, or after what it says about compiling."""

    def __init__(self, *arguments):
        command = [*MAIN, "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})
        first = self.process.stderr.readline()
        if first.startswith("The first run"):
            first = self.process.stderr.readline()
        self.said = [first]
        assert "http://" in first, first + self.process.stderr.read()
        self.address = first.split("http://")[1].split("/")[0]
        self.url = f"http://{self.address}"
        self._reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self._reader.start()

    def get(self, address):
        return httpx.get(self.url + address, timeout=PATIENCE)

    def post(self, address, json=None):
        return httpx.post(self.url + address, json=json, timeout=PATIENCE)

    def put(self, address, json=None):
        return httpx.put(self.url + address, json=json, timeout=PATIENCE)

    def end(self, by):
        self.process.send_signal(by)
        code = self.process.wait(60)
        self._reader.join()
        self.process.stderr.close()
        return code


@contextmanager
def serving(*arguments):
    served = Served(*arguments)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.end(15)  # workers that are left alone would hold the pipe open
