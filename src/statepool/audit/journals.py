"""A live pool's own journal as a log: one row a decision. A default loss is no outcome: that ticket never came back."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_journal(connection: Any, files: list[Path]) -> None:
    """The only pool of a SQLite file, as the table `source`."""
    path = files[0]
    try:
        from statepool.live.export import export
        from statepool.live.pool import Pool
        from statepool.live.stores import open_store
    except ImportError as error:
        raise ValueError(f"{path}: {error.name} is not installed, expected `pip install statepool[live]`") from None
    store = open_store(f"sqlite:///{path}", create=False, to_read=True)
    try:
        names = store.pools()
        if len(names) != 1:
            raise ValueError(
                f"{path}: holds {len(names)} pools, expected one; `statepool replay sqlite:///{path} POOL "
                "--export rows.parquet` writes one of several"
            )
        with tempfile.TemporaryDirectory() as folder:
            flat = Path(folder) / "rows.csv"
            export(_outcomes_that_came(Pool(store, names[0])), flat)
            connection.execute("CREATE TEMP TABLE source AS SELECT * FROM read_csv(?, header=true)", [str(flat)])
    finally:
        store.close()


def _outcomes_that_came(pool: Any) -> Iterator[dict[str, Any]]:
    for row in pool.rows():
        yield row | {"loss": None, "reward": None, "resolved_at": None} if row["expired"] else row
