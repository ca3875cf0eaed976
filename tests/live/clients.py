"""Client processes that work until they are killed, and their own record of what was acknowledged."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from zlib import crc32

import statepool as sp
from live.places import ACTIONS, STATES, P
from statepool.live.errors import StoreUnavailable

OFFER = {"b": [0.2, 0.5, 0.3], "poster": [0.5, 0.25, 0.25]}


def state_of(ticket):
    return STATES[crc32(ticket.encode()) % 3]


def loss_of(ticket):
    return crc32(ticket.encode()) % 1000 / 1000


def open_pool(url, name, **given):
    catalogue = {"P": P, "actions": ACTIONS, "states": STATES, "learner": sp.StateEXP3(rate=0.1), "update_every": 20}
    return sp.Pool.open(url, name, **catalogue | given)


def repeated(call):
    """Call until the database answers."""
    while True:
        try:
            return call()
        except StoreUnavailable:
            time.sleep(0.05)


def say(pool, ticket, acknowledge, twice, rng):
    """One decision and its reports, in a random order, each perhaps twice."""
    candidates = OFFER if crc32(ticket.encode()) % 4 == 0 else None

    def decide():
        made = repeated(lambda: pool.decide(ticket, candidates=candidates))
        acknowledge("decision", ticket, [made.action, made.probability])

    def observe():
        repeated(lambda: pool.observe(ticket, state_of(ticket)))
        acknowledge("state", ticket, state_of(ticket))

    def resolve():
        repeated(lambda: pool.resolve(ticket, loss_of(ticket)))
        acknowledge("loss", ticket, loss_of(ticket))

    decide()
    calls = [observe, resolve] + ([decide, observe, resolve] if twice else [])
    rng.shuffle(calls)
    for call in calls:
        call()


def work(url, name, log, prefix, options):
    """Until the process is killed."""
    pool, rng, number = open_pool(url, name, update=True), random.Random(prefix), 0
    with open(log, "a", buffering=1) as file:

        def acknowledge(*what):
            file.write(json.dumps(what) + "\n")

        while True:
            say(pool, f"{prefix}-{number}", acknowledge, options.get("twice", False), rng)
            if options.get("changes") and number % 25 == 24:
                repeated(lambda: pool.add_action("z", [0, 0, 1]))
                repeated(lambda: pool.retire_action("z"))
            number += 1


class Clients:
    """Several such processes on one pool.

    Parameters
    ----------
    folder : Path
        For their records.
    url, name : str
        The pool.
    count : int
        How many processes.
    """

    def __init__(self, folder: Path, url: str, name: str, count: int = 4, **options) -> None:
        self.folder, self.url, self.name, self.options = folder, url, name, options
        self.pool = open_pool(url, name)
        self._started, self._running = 0, {}
        for place in range(count):
            self.start(place)

    def start(self, place):
        self._started += 1
        log = self.folder / f"client-{self._started}.log"
        arguments = [self.url, self.name, str(log), f"{self.name}-{self._started}", json.dumps(self.options)]
        self._running[place] = subprocess.Popen(
            [sys.executable, "-m", "live.clients", *arguments], cwd=Path(__file__).parents[1]
        )

    def kill(self, place):
        self._running[place].kill()
        self._running[place].wait()

    def pid(self, place):
        return self._running[place].pid

    def acknowledged(self):
        """The records, but for a last line that was cut off."""
        lines = [line for log in self.folder.glob("client-*.log") for line in log.read_text().splitlines(True)]
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def until(self, count, seconds=120):
        """Wait for so many further acknowledgements."""
        goal, deadline = len(self.acknowledged()) + count, time.monotonic() + seconds
        while len(self.acknowledged()) < goal:
            assert time.monotonic() < deadline, "the clients are stuck"
            time.sleep(0.05)

    def check(self):
        """Stop all; everything that was acknowledged is there once, as it was, and replay agrees; how many."""
        for place in self._running:
            self.kill(place)
        rows = {row["ticket"]: row for row in repeated(lambda: list(self.pool.rows()))}
        said = self.acknowledged()
        for kind, ticket, value in said:
            row = rows[ticket]
            found = [row["action"], row["probability"]] if kind == "decision" else row[kind]
            assert found == value, f"{kind} of {ticket} was {value}, and is {found}"
        repeated(self.pool.learn)
        assert self.pool.status().counts["late"] == 0, "all that is due was learnt"
        found = self.pool.replay()
        assert found.fault is None, found
        self.pool.close()
        return len(said)


if __name__ == "__main__":
    work(*sys.argv[1:5], json.loads(sys.argv[5]))
