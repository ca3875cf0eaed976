"""The tickets of a pool as another process reads them, without the package: what is there, whoever acknowledged it."""

import json
import subprocess
import sys

READ = """
import json, sys
url, name = sys.argv[1:]
pool = "(SELECT id FROM {0}pools WHERE name = '" + name + "')"
sql = "SELECT kind, ticket FROM {0}events WHERE pool = " + pool + " ORDER BY seq"
if url.startswith("sqlite"):
    import apsw
    rows = list(apsw.Connection(url.removeprefix("sqlite:///"), apsw.SQLITE_OPEN_READWRITE).execute(sql.format("")))
else:
    import psycopg
    rows = psycopg.connect(url).execute(sql.format("statepool.")).fetchall()
print(json.dumps(rows))
"""


def events_there(url, name):
    """(kind, ticket) of every event, in order."""
    done = subprocess.run([sys.executable, "-c", READ, url, name], capture_output=True, text=True, check=True)
    return [tuple(row) for row in json.loads(done.stdout)]


def decided_there(url, name):
    return [ticket for kind, ticket in events_there(url, name) if kind == "decision"]
