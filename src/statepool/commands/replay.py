"""`statepool replay`: compute every policy version of a pool again, and compare."""

import dataclasses
import json
from pathlib import Path

from statepool.commands.store import opened


def run(url: str, name: str, redraw: bool, file: Path | None, as_json: bool) -> bool:
    """Replay, export the rows if asked, and print what was found; whether everything agrees."""
    from statepool.live.maintenance import check_export, export
    from statepool.live.pool import Pool

    if file is not None:
        check_export(file)  # before the long part
    with opened(url) as database, Pool.open(database, name) as pool:
        found = pool.replay(redraw)
        exported = None if file is None else export(pool.rows(), file)
    if as_json:
        print(json.dumps(dataclasses.asdict(found) | {"agrees": found.ok, "exported": exported}))
        return found.ok
    print(f"{name}: {found.versions} versions, {found.decisions} decisions")
    if redraw:
        print(f"{found.redrawn} decisions drawn again")
    if not found.same_build:
        print("another build made some versions: numbers were compared to 1e-9, not to the bit")
    if exported is not None:
        print(f"{exported} rows exported")
    print("everything agrees" if found.ok else f"FAULT: {found.fault}")
    return found.ok
