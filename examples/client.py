"""The client on any pool of a service: `client.py URL POOL [KEY]`. Retries are safe: repeating a call is harmless."""

import sys

from statepool.client import Client, ClientError

url, name, *key = sys.argv[1:]
try:
    with Client(url, *key) as client:
        pool = client.pool(name)
        status = pool.status()
        decision = pool.decide()
        state = status["states"][0]
        pool.observe(decision.ticket, state)  # seconds later
        pool.resolve(decision.ticket, loss=status["settings"]["loss_bounds"][1])  # days later: the worst there is
        print(f"{decision.action} with probability {decision.probability:.3f}, then {state}, ticket {decision.ticket}")
except (ClientError, ValueError) as error:
    sys.exit(f"client: {error}")
