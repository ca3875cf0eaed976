"""`statepool backup`: a SQLite database in one file, which is a database itself."""

import json
from pathlib import Path

from statepool.commands.store import answering, opened


def run(url: str, file: Path, verify: bool, as_json: bool) -> bool:
    """Copy a database and print what the copy holds; whether no fault was found in it."""
    from statepool.live.database import Database
    from statepool.live.maintenance import backup
    from statepool.live.pool import Pool

    pools = []
    with opened(url):  # a database that is not there is refused, not made
        pass
    with opened(url, read_only=False) as database:
        backup(database, file)
    with answering(), Database(f"sqlite:///{file}", read_only=True) as database:
        for name in database.pool_names():
            with Pool.open(database, name) as pool:
                fault = pool.replay().fault if verify else None
                pools.append({"pool": name, "decisions": pool.status().decisions, "fault": fault})
    sound = not any(each["fault"] for each in pools)
    if as_json:
        print(json.dumps({"file": str(file), "pools": pools, "verified": verify, "agrees": sound if verify else None}))
        return sound
    print(f"{file} holds {len(pools)} pool{'' if len(pools) == 1 else 's'}")
    for each in pools:
        said = f", FAULT: {each['fault']}" if each["fault"] else ", replayed without a fault" if verify else ""
        print(f"{each['pool']}: {each['decisions']} decisions{said}")
    return sound
