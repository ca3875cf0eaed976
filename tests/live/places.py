"""The usual small pool, and where the tests keep it."""

from itertools import count

import numpy as np

import statepool as sp

P = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
ACTIONS, STATES = ["a", "b", "c"], ["bounce", "browse", "buy"]
NAMES = count()


class Place:
    """A database, opened as often as a test likes; each test has a pool of its own."""

    def __init__(self, url):
        self.url, self.name = url, f"pool-{next(NAMES)}"
        self.opened = []

    def open(self, **given):
        self.opened.append(sp.Pool.open(self.url, given.pop("name", self.name), **given))
        return self.opened[-1]

    def make(self, learner=None, **given):
        """The usual small one."""
        catalogue = {"P": P, "actions": ACTIONS, "states": STATES, "learner": learner or sp.StateEXP3(rate=0.3)}
        return self.open(**catalogue | given)

    def close(self):
        for pool in self.opened:
            pool.close()


class Clock:
    """A clock that a test sets."""

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


def play(pool, count, loss=lambda n: n % 2, state=lambda n: STATES[n % 3]):
    """Decisions with state and outcome; their tickets."""
    tickets = []
    for n in range(count):
        decision = pool.decide()
        pool.observe(decision.ticket, state(n))
        pool.resolve(decision.ticket, loss(n))
        tickets.append(decision.ticket)
    return tickets
