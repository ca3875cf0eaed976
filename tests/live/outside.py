"""The tickets of a pool as another process reads them, without the package: what is there, whoever acknowledged it."""

import json
import subprocess
import sys

READ = """
import json, sys
url, name = sys.argv[1:]
pool = "(SELECT id FROM {0}pools WHERE name = '" + name + "')"
in_lanes = "SELECT 'decision', ticket, 1, at, place FROM {0}lanes WHERE ticket IS NOT NULL AND pool = " + pool
sql = "SELECT kind, ticket, 0, 0, seq FROM {0}events WHERE pool = " + pool + " UNION ALL " + in_lanes
if url.startswith("sqlite"):
    import apsw
    rows = list(apsw.Connection(url.removeprefix("sqlite:///"), apsw.SQLITE_OPEN_READWRITE).execute(sql.format("")))
else:
    import psycopg
    rows = psycopg.connect(url).execute(sql.format("statepool.")).fetchall()
print(json.dumps([row[:2] for row in sorted(rows, key=lambda row: row[2:])]))
"""


def events_there(url, name):
    """(kind, ticket) of every event, in order, and of the decisions in lanes after them."""
    done = subprocess.run([sys.executable, "-c", READ, url, name], capture_output=True, text=True, check=True)
    return [tuple(row) for row in json.loads(done.stdout)]


def decided_there(url, name):
    return [ticket for kind, ticket in events_there(url, name) if kind == "decision"]
