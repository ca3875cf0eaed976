"""One process decides, two compact and are killed again and again, two forget, one forgets what is not there: judged by
what each had been told."""

import os
import signal
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from live.killed import FORKS, Embedded, loss_of, moments
from statepool.live import Conflict, Pool, UnknownTicket
from statepool.live.compaction import compact
from statepool.live.errors import StoreUnavailable
from statepool.live.forgetting import forget
from statepool.live.replay import replay
from statepool.live.stores import open_store

pytestmark = pytest.mark.soak
KILLS = 30


def note(file, line):
    with open(file, "a") as record:
        record.write(line + "\n")


def noted(file):
    return Path(file).read_text().split("\n")[:-1] if Path(file).exists() else []


def play(url, folder):
    client = Embedded(url, "home")
    for number in range(10**9):
        name = f"person-{number:06}-x"
        client.decide(name)
        client.observe(name)
        client.resolve(name)
        note(f"{folder}/told", name)


def keep_compacting(url, folder):
    with closing(open_store(url)) as store:
        while True:
            try:
                compact(store, "home", 0.0, f"{folder}/segments", 50)
            except (ValueError, StoreUnavailable) as error:
                if not any(words in str(error) for words in ("by another process", "try again")):  # who was faster
                    raise
            time.sleep(0.05)


def keep_forgetting(url, folder, seed):
    """Each forgets names of its own, some at a time."""
    draws = np.random.default_rng(seed)
    with closing(open_store(url)) as store:
        pool = Pool(store, "home")
        while True:
            left = [name for name in noted(f"{folder}/told") if int(name[7:13]) % 10 == seed]
            left = sorted(set(left) - set(noted(f"{folder}/forgotten-{seed}")))
            if left:
                chosen = [str(name) for name in draws.choice(left, min(3, len(left)), replace=False)]
                note(f"{folder}/asked-{seed}", "\n".join(chosen))
                with suppress(Conflict):  # the others were faster every time
                    forget(pool, chosen)
                    note(f"{folder}/forgotten-{seed}", "\n".join(chosen))


def keep_asking_for_nobody(url):
    with closing(open_store(url)) as store:
        pool = Pool(store, "home")
        while True:
            with suppress(UnknownTicket):
                forget(pool, ["nobody"])


def start(work, *given):
    process = FORKS.Process(target=work, args=given, daemon=True)
    process.start()
    return process


def test_what_is_forgotten_beside_compactions_that_are_killed_is_gone(url, tmp_path):
    Embedded(url, "home").close()
    player = start(play, url, tmp_path)
    forgetting = [start(keep_forgetting, url, tmp_path, seed) for seed in (3, 7)]
    forgetting.append(start(keep_asking_for_nobody, url))
    compacting = [start(keep_compacting, url, tmp_path) for _ in range(2)]
    for number, seconds in enumerate(moments(KILLS, longest=1.5, seed=8)):
        time.sleep(seconds)
        assert all(process.is_alive() for process in [player, *forgetting, *compacting])
        os.kill(compacting[number % 2].pid, signal.SIGKILL)
        compacting[number % 2].join()
        compacting[number % 2] = start(keep_compacting, url, tmp_path)
    for process in [player, *forgetting, *compacting]:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    told, asked, gone = check(url, tmp_path)
    print(f"{KILLS} kills, {told} tickets told, {asked} asked to be forgotten, {gone} of them told so")


def noted_by_both(folder, kind):
    return [name for seed in (3, 7) for name in noted(f"{folder}/{kind}-{seed}")]


def check(url, folder):
    told = noted(f"{folder}/told")
    gone, asked = (noted_by_both(folder, kind) for kind in ("forgotten", "asked"))
    with closing(open_store(url)) as store:
        pool = Pool(store, "home")
        pool.decide("the last")
        forget(pool, ["the last"])
        assert replay(store, "home", redraw=True)[0].faults == []
        for name in gone:
            with pytest.raises(UnknownTicket):
                pool.find(name)
        for name in sorted(set(told) - set(asked)):
            assert pool.find(name)["loss"] == loss_of(name)
        with store.view("home") as view:
            sealed = {f"{each.digest}.segment" for each in view.sealed()}
            loose = {f"{each.digest}.segment" for each in view.loose()}
    files = {file.name: file.read_bytes() for file in (folder / "segments").glob("*.segment")}
    assert files.keys() == sealed, loose
    for header in files.values():
        assert not any(name.encode() in header for name in gone)
    assert len(gone) > 20
    return len(told), len(asked), len(gone)
