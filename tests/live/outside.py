"""The tickets of a pool as another process reads them, without the package: what is there, whoever acknowledged it."""

import json
import subprocess
import sys

READ = """
import json, sys
from base64 import urlsafe_b64encode
from msgspec.msgpack import decode

KINDS = ["decision", "state", "outcome", "expiry", "correction", "refresh", "rows", "catalogue", "erasure"]

def ticket_of(body):
    event = decode(body)
    if event[0] == "Erased":
        return ticket_of(event[2])
    ticket, number, (lane, place) = event[2], event[3], (event[8:10] + [b"", 0][len(event[8:10]):])
    if isinstance(ticket, str):
        return ticket
    number = place + 2**47 if lane else number
    return urlsafe_b64encode(number.to_bytes(6, "big") + lane + ticket).decode().rstrip("=")

url, name = sys.argv[1:]
pool = "(SELECT id FROM {0}pools WHERE name = '" + name + "')"
lanes = "SELECT ticket FROM {0}lanes WHERE ticket IS NOT NULL AND pool = " + pool + " ORDER BY at, place"
events = "SELECT kind, play, ticket, body FROM {0}events WHERE pool = " + pool + " ORDER BY seq"
if url.startswith("sqlite"):
    import apsw
    database = apsw.Connection(url.removeprefix("sqlite:///"), apsw.SQLITE_OPEN_READWRITE)
    with database:
        rows, in_lanes = (list(database.execute(sql.format(""))) for sql in (events, lanes))
else:
    import psycopg
    with psycopg.connect(url) as database:
        database.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        rows, in_lanes = (database.execute(sql.format("statepool.")).fetchall() for sql in (events, lanes))
made = {number: ticket_of(body) for kind, number, _, body in rows if KINDS[kind] == "decision"}
told = [(KINDS[kind], made.get(number) if number is not None else ticket) for kind, number, ticket, _ in rows]
print(json.dumps(told + [("decision", ticket) for ticket, in in_lanes]))
"""


def events_there(url, name):
    """(kind, ticket) of every event, in order, and of the decisions in lanes after them."""
    done = subprocess.run([sys.executable, "-c", READ, url, name], capture_output=True, text=True, check=True)
    return [tuple(row) for row in json.loads(done.stdout)]


def decided_there(url, name):
    return [ticket for kind, ticket in events_there(url, name) if kind == "decision"]
