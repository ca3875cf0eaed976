"""Clients that are killed, or whose store is, and their own record of what they were told."""

import http.client
import json
import multiprocessing
import os
import signal
import threading
import time
from collections import defaultdict
from contextlib import suppress
from zlib import crc32

import msgspec
import numpy as np

import statepool as sp
from live.places import ACTIONS, STATES, P, check_chain, raw_moment
from statepool.live.errors import StoreUnavailable

CATALOGUE = {"P": P.tolist(), "actions": ACTIONS, "states": STATES, "seed": 5}
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["live.killed"])


def state_of(ticket):
    return STATES[crc32(ticket.encode()) % 3]


def loss_of(ticket):
    return crc32(ticket.encode()) % 1000 / 1000


OFFER = {"b": [0.2, 0.5, 0.3], "c": [0.5, 0.25, 0.25]}


def offer_of(ticket):
    """Every fourth request brings candidates and their rows; the others ask plainly."""
    return OFFER if crc32(ticket.encode()) % 4 == 0 else None


class Embedded:
    """A client with the library."""

    def __init__(self, url, name):
        self.pool = sp.Pool.open(url, name, **CATALOGUE, learner=sp.StateEXP3(rate=0.1), refresh=20)

    def decide(self, ticket):
        made = self.pool.decide(ticket, candidates=offer_of(ticket))
        return [made.action, made.probability]

    def observe(self, ticket):
        self.pool.observe(ticket, state_of(ticket))
        return state_of(ticket)

    def resolve(self, ticket):
        self.pool.resolve(ticket, loss=loss_of(ticket))
        return loss_of(ticket)

    def close(self):
        self.pool.close()


class OverHTTP:
    """A client of the service."""

    def __init__(self, address, name):
        self._http = http.client.HTTPConnection(address, timeout=30)
        self._base = f"/v1/pools/{name}/decisions"

    def _ask(self, method, where, body):
        self._http.request(method, self._base + where, json.dumps(body), {"Content-Type": "application/json"})
        answer = self._http.getresponse()
        text = answer.read()
        if answer.status == 503:
            raise ConnectionError(text)
        assert answer.status in (200, 201, 204), text
        return json.loads(text) if text else None

    def decide(self, ticket):
        offer = offer_of(ticket)
        made = self._ask("POST", "", {"ticket": ticket} | ({} if offer is None else {"candidates": offer}))
        return [made["action"], made["probability"]]

    def observe(self, ticket):
        self._ask("PUT", f"/{ticket}/state", {"state": state_of(ticket)})
        return state_of(ticket)

    def resolve(self, ticket):
        self._ask("PUT", f"/{ticket}/outcome", {"loss": loss_of(ticket)})
        return loss_of(ticket)

    def close(self):
        self._http.close()


STEPS = {"decision": "decide", "state": "observe", "outcome": "resolve"}
GONE = (StoreUnavailable, OSError, http.client.HTTPException)


def say_all(client, ticket, told):
    for kind, call in STEPS.items():
        told((kind, ticket, getattr(client, call)(ticket)))


def work(client, prefix, told, again=(), stop=lambda: False):
    """First what may not have been heard, once more; then new tickets until the end."""
    for ticket in again:
        say_all(client, ticket, told)
    number = 0
    while not stop():
        say_all(client, f"{prefix}-{number}", told)
        number += 1


class Record:
    """What clients were told: the first answer stays the answer."""

    def __init__(self):
        self.told = {}
        self._heard = defaultdict(set)

    def add(self, answer):
        kind, ticket, content = answer
        assert self.told.setdefault((kind, ticket), content) == content, f"{ticket} got another {kind}"
        self._heard[ticket].add(kind)

    def doubtful(self, limit=20):
        """Tickets not through yet."""
        return [ticket for ticket, kinds in self._heard.items() if len(kinds) < 3][-limit:]

    def check(self, url, name):
        """All that was told is in the table, once, as it was told; and the table is whole."""
        events, in_lanes = raw_moment(url, name)
        check_chain(events)
        found = {}
        for _, kind, ticket, *_, body, _ in events:
            if ticket is not None and kind != "rows":
                assert (kind, ticket) not in found, f"{kind} of {ticket} is there twice"
                found[kind, ticket] = content_of(kind, msgspec.msgpack.decode(body))
        for ticket, body in in_lanes:
            assert ("decision", ticket) not in found, f"{ticket} is decided twice"
            found["decision", ticket] = content_of("decision", msgspec.msgpack.decode(body))
        missing = [key for key, content in self.told.items() if found.get(key) != content]
        assert not missing, (
            f"{len(missing)} of {len(self.told)} acknowledged are not there as told, such as {missing[0]}"
        )


def content_of(kind, fields):
    if kind == "decision":
        return [ACTIONS[fields[5]], fields[6]]
    return STATES[fields[6]] if kind == "state" else fields[7]


def embedded_client(url, name, prefix, again, pipe):
    """A process: several threads, each telling what it was told as soon as it was."""
    client, lock = Embedded(url, name), threading.Lock()

    def told(answer):
        with lock:
            os.write(pipe.fileno(), json.dumps(answer).encode() + b"\n")

    threads = [
        threading.Thread(target=work, args=(client, f"{prefix}-{n}", told, again if n == 0 else ())) for n in range(4)
    ]
    for thread in threads:
        thread.start()


def kill_embedded(url, name, record, prefix, seconds):
    """Start a client, kill it at work, and add what it said to the record."""
    reading, writing = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=embedded_client, args=(url, name, prefix, record.doubtful(), writing))
    process.start()
    writing.close()
    said = bytearray()
    reader = threading.Thread(target=listen, args=(reading.fileno(), said))
    reader.start()
    wait_for(f'"{prefix}-'.encode(), said)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    reader.join()
    for line in bytes(said).split(b"\n")[:-1]:  # the last one may be torn
        record.add(json.loads(line))


def listen(file, said):
    while data := os.read(file, 1 << 16):
        said += data


def wait_for(word, said, patience=60):
    """Until it is at work on tickets of its own: before, it only repeats and compiles."""
    deadline = time.monotonic() + patience
    while word not in said:
        assert time.monotonic() < deadline, "the client did nothing"
        time.sleep(0.005)


def leave(client):
    """Give back what a client holds; what it talked to may be away."""
    with suppress(*GONE):
        if client is not None:
            client.close()


class Clients:
    """Threads at work through an outage of what they talk to; they come back, and say again what was in doubt."""

    def __init__(self, make_client, record, count=4):
        self._make, self._record, self._lock = make_client, record, threading.Lock()
        self._ended = threading.Event()
        self.errors = []
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(count)]

    def _told(self, answer):
        with self._lock:
            self._record.add(answer)

    def _run(self, who):
        client, number = None, 0
        while not self._ended.is_set():
            try:
                client = client or self._make()
                while not self._ended.is_set():
                    say_all(client, f"{who}-{number}", self._told)
                    number += 1
            except GONE:
                client = leave(client)
                time.sleep(0.02)
            except BaseException as error:
                self.errors.append(error)
                break
        leave(client)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors, self.errors

    def wait_for_more(self, count, patience=60):
        """Until the record has grown."""
        goal, deadline = len(self._record.told) + count, time.monotonic() + patience
        while len(self._record.told) < goal and not self.errors:
            assert time.monotonic() < deadline, "no progress"
            time.sleep(0.005)
        assert not self.errors, self.errors


def kill_with_children(pid):
    """All at once: no child may tidy up."""
    family = [pid, *children_of(pid)]
    for each in family:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def children_of(pid):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{entry}/stat") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry))
    return found


def moments(count, longest, seed):
    return np.random.default_rng(seed).uniform(0, longest, count).tolist()
