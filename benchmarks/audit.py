"""Twenty million rows audited, against duckdb's own count of them by action and state; both in one run, in turns.

    python benchmarks/audit.py [--rows 20000000] [--turns 3]

The audit is `audit_log` whole: reading, testing, fitting, trying learners (compiled beforehand, imports not counted).
Memory is the peak of this process, duckdb's included.
"""

import argparse
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import duckdb

import statepool as sp

ROWS = """
    SELECT 'item-' || item AS action, 'depth ' || depth AS state, CAST(luck < 0.9 - 0.15 * depth AS INT) AS loss,
        i + wait AS decided_at, i + 500 * wait AS resolved_at
    FROM (
        SELECT i, CAST(floor(1000 * pow(random(), 1.5)) AS INT) AS item, random() AS luck, random() AS wait,
            CAST(floor(6 * random() * random()) AS INT) AS depth
        FROM range({n}) r(i)
    )
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.parquet", Path(folder) / "large.parquet"
        for path, n in ((small, 500_000), (large, given.rows)):
            duckdb.sql("SELECT setseed(0.5)")
            duckdb.sql(f"COPY ({ROWS.format(n=n)}) TO '{path}' (FORMAT parquet)")
        sp.audit_log(small)  # compiles
        count = f"SELECT action, state, count(*) FROM read_parquet('{large}') GROUP BY ALL"
        counting = auditing = float("inf")
        for _ in range(given.turns):
            counting = min(counting, _seconds(lambda: duckdb.sql(count).fetchall()))
            auditing = min(auditing, _seconds(lambda: sp.audit_log(large)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{given.rows} rows: duckdb counts in {counting:.2f} s, the audit takes {auditing:.2f} s")
    print(f"ratio {auditing / counting:.1f} (target: at most 10); peak memory {peak:.2f} GiB (target: at most 2)")


def _seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


if __name__ == "__main__":
    main()
