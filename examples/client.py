"""The client on any pool of a service: `client.py URL POOL [KEY]`, with `--context` where the pool has contexts.

Retries are safe: repeating a call is harmless.
"""

import argparse
import sys

from statepool.client import Client, ClientError

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("pool")
parser.add_argument("key", nargs="?")
parser.add_argument("--context", help="who is asking")
given = parser.parse_args()
try:
    with Client(given.url, given.key) as client:
        pool = client.pool(given.pool)
        status = pool.status()
        decision = pool.decide(context=given.context)
        state = status["states"][0]
        pool.observe(decision.ticket, state)  # seconds later
        pool.resolve(decision.ticket, loss=status["settings"]["loss_bounds"][1])  # days later: the worst there is
        print(f"{decision.action} with probability {decision.probability:.3f}, then {state}, ticket {decision.ticket}")
except (ClientError, ValueError) as error:
    sys.exit(f"client: {error}")
