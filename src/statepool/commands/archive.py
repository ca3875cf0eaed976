"""`statepool archive`: old settled decisions leave the database for a Parquet file."""

import json
from pathlib import Path

from statepool.commands.store import opened, seconds_of


def run(url: str, name: str, file: Path, older_than: str, as_json: bool) -> None:
    """Archive, and print how many decisions were moved."""
    from statepool.live.pool import Pool

    age = seconds_of(older_than, "older-than")
    with opened(url, read_only=False) as database, Pool.open(database, name) as pool:
        count = pool.archive(pool.now() - age, file)
    if as_json:
        print(json.dumps({"pool": name, "file": str(file), "archived": count}))
    elif count:
        print(f"{name}: {count} decisions moved to {file}")
    else:
        print(f"{name}: no settled decision is older than {older_than}, nothing was written")
