"""`statepool backup` and `statepool restore`: a store in one file, and back."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from statepool.commands.store import answering, tidying_up

if TYPE_CHECKING:
    from statepool.live.backup import Held


def run_backup(url: str, file: Path, verify: bool, as_json: bool) -> bool:
    """Copy a store to a file and print what it holds; whether no fault was found in it."""
    with answering(), tidying_up():
        from statepool.live.backup import backup

        held = backup(url, file, verify)
    return _tell(f"{file} holds", held, "which are not in this file: copy them, too", verify, as_json)


def run_restore(file: Path, url: str, verify: bool, place: str | None, as_json: bool) -> bool:
    """Put a backup into an empty store and print what it holds; one with a fault was refused."""
    with answering(), tidying_up():
        from statepool.live.backup import restore

        held = restore(file, url, verify, place)
    return _tell("restored", held, "which must stay there", verify, as_json)


def _tell(did: str, held: "list[Held]", segments: str, verified: bool, as_json: bool) -> bool:
    sound = not any(pool.faults for pool in held)
    if as_json:
        # Nothing agrees where nothing was replayed.
        agrees = None if sound and not (verified and held) else sound
        pools = [pool.as_json() for pool in held]
        print(json.dumps({"pools": pools, "verified": verified, "agrees": agrees}, indent=1))
        return sound
    if not held:
        print(f"{did} no pool, only what else the store kept (keys, calls): is it the store that was meant?")
        return True
    print(f"{did} {len(held)} pool{'' if len(held) == 1 else 's'}")
    for pool in held:
        print(f"{pool.pool}: {pool.head.seq} events, {pool.decisions} decisions, the last event's hash is")
        print(f"  {pool.head.hash.hex()}")
        if pool.in_segments:
            where = " and ".join(pool.places)
            print(f"{pool.pool}: {pool.in_segments} of {pool.head.seq} events are in segments at {where}, {segments}")
        for fault in pool.faults:
            print(f"  FAULT: {fault}")
    if verified:
        print("every journal was replayed, and agrees" if sound else "a journal does NOT agree")
    return sound
