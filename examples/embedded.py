"""A pool inside a script: no server, one file. Run it again and it goes on where it stopped."""

import random
import sys

from statepool import Pool

ACTIONS = ["plain", "discount", "free shipping"]
STATES = ["left", "cart", "bought at once"]
P = [[0.80, 0.15, 0.05], [0.60, 0.30, 0.10], [0.70, 0.20, 0.10]]  # how often each action leads to each state
PAYS = {"left": 0.01, "cart": 0.30, "bought at once": 1.0}  # what the script does not know

with Pool.open(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///embedded.db", "home", P, ACTIONS, STATES) as pool:
    for _ in range(200):
        decision = pool.decide()
        state = random.choices(STATES, P[ACTIONS.index(decision.action)])[0]
        pool.observe(decision.ticket, state)  # seconds later
        pool.resolve(decision.ticket, loss=float(random.random() > PAYS[state]))  # days later, in any order
    status = pool.status()
    print(f"{status.decisions} decisions, mean loss {status.losses['learner'].mean:.3f}, {status.pending} in flight")
