"""`statepool export`: a pool's decisions to a CSV, Parquet or JSON lines file."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from statepool.commands.store import opened


def run(url: str, name: str, file: Path, after: int | None, as_json: bool) -> None:
    """Write the rows, and print how many there were and the cursor to continue from."""
    from statepool.live.maintenance import check_export, export
    from statepool.live.pool import Pool

    check_export(file)
    cursor = after or 0

    def watched(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        nonlocal cursor
        for row in rows:
            cursor = max(cursor, row["cursor"])
            yield row

    with opened(url) as database, Pool.open(database, name) as pool:
        count = export(watched(pool.rows(after)), file)
    if as_json:
        print(json.dumps({"pool": name, "file": str(file), "rows": count, "cursor": cursor}))
    else:
        print(f"{count} row{'' if count == 1 else 's'} exported; continue with --after {cursor}")
