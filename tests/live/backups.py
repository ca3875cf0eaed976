"""Backups taken at moments of a load, judged by what the clients had been told before each began."""

import time

from live.killed import Clients, Embedded, Record
from statepool.live.backup import backup, restore
from statepool.live.replay import replay
from statepool.live.stores import open_store


def take_under_load(url, name, folder, moments, targets):
    """At each moment: what was told so far, a backup, and its restoration into the next of `targets` (URLs)."""
    Embedded(url, name).close()
    record, taken = Record(), []
    with Clients(lambda: Embedded(url, name), record, count=3) as clients:
        clients.wait_for_more(3)
        for number, seconds in enumerate(moments):
            time.sleep(seconds)
            told, file = dict(record.told), folder / f"backup-{number}.db"
            [copied] = backup(url, file)
            taken.append((told, file, copied))
    for (told, file, copied), target in zip(taken, targets, strict=True):
        check_restored(name, told, file, copied, target)
    return taken


def check_restored(name, told, file, copied, target):
    [restored] = restore(file, target, verify=True)
    assert (restored.head, restored.faults) == (copied.head, ())
    kept = Record()
    kept.told = told
    kept.check(target, name)
    store = open_store(target)
    try:
        found, _ = replay(store, name, redraw=True, expect=copied.head.hash)
    finally:
        store.close()
    assert found.faults == []
    assert found.decisions == copied.decisions
