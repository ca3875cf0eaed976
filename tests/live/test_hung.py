"""A process that hangs with a pool's lock in its hands: that pool waits, for a while; nobody else does."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

from live.outside import decided_there
from live.places import PostgresPlace, SQLitePlace
from statepool.live.errors import StoreUnavailable
from statepool.live.requests import Decide
from statepool.live.stores import sqlite_file

HANG = """
import sys, time
from statepool.live.stores import open_store
with open_store(sys.argv[1]).batch(sys.argv[2]):
    print("holding", flush=True)
    time.sleep(600)
"""


@contextmanager
def stopped(url, name):
    """A process that is stopped inside a batch."""
    process = subprocess.Popen([sys.executable, "-c", HANG, url, name], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "holding\n"
        process.send_signal(signal.SIGSTOP)
        yield
    finally:
        process.kill()
        process.communicate()


class Calls:
    """Decisions of several threads at once: what each was told, and after how many seconds."""

    def __init__(self, pools):
        self.told, self.seconds = {}, {}
        self._began = time.monotonic()
        self._threads = [
            threading.Thread(target=self._decide, args=(pool, f"call {n}")) for n, pool in enumerate(pools)
        ]
        for thread in self._threads:
            thread.start()

    def _decide(self, pool, ticket):
        [self.told[ticket]] = pool.run([Decide(ticket)])
        self.seconds[ticket] = time.monotonic() - self._began

    def wait(self, seconds=60.0):
        """What was told by then."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return dict(self.told)


def test_a_pool_of_the_same_process_does_not_wait_for_another_ones_lock(database):
    place = PostgresPlace(database)
    hung, free = place.make(), place.make(name=f"{place.name}-free")
    free._journal.store = hung._journal.store  # one store for both, as in the service
    with stopped(place.url, place.name):
        waiting = Calls([hung] * 3)
        assert waiting.wait(0.5) == {}
        answers = Calls([free] * 3).wait(10)
        assert sorted(answer.ticket for answer in answers.values()) == ["call 0", "call 1", "call 2"]
        assert waiting.wait(0) == {}
        assert list(hung.rows()) == hung.pending() == []
    assert len(waiting.wait()) == 3
    assert sorted(decided_there(place.url, place.name)) == ["call 0", "call 1", "call 2"]
    place.close()


def test_a_file_whose_writer_hangs_is_refused_in_time_and_read_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "PATIENCE", 2.0)
    place, elsewhere = SQLitePlace(tmp_path / "pool.db"), SQLitePlace(tmp_path / "other.db")
    first, second, other = place.make(), place.make(name="second"), elsewhere.make()
    second._journal.store = first._journal.store
    first.decide("before")
    with stopped(place.url, place.name):
        calls = Calls([first, second] * 4)
        time.sleep(0.3)
        late = Calls([first, second])
        assert other.decide("elsewhere").ticket == "elsewhere"
        assert [row["ticket"] for row in first.rows()] == ["before"]
        assert second.n_pending == 0
        answers = [*calls.wait().values(), *late.wait().values()]
        assert {type(answer).__mro__[1] for answer in answers} == {StoreUnavailable}
        assert {str(answer) for answer in answers} == {"another writer kept the SQLite file locked for 2 seconds"}
        # Each waited its own time, and no other's before it.
        assert max(*calls.seconds.values(), *late.seconds.values()) < 4.0
    assert first.decide("after").ticket == "after"
    place.close()
    elsewhere.close()
