"""Follow the leader: play the action with the lowest total so far. A learner and a family, outside the package.

L(a) += X for the action played        then play argmin_a L(a)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from statepool import Instance
from statepool.learners import Learner, add_rule
from statepool.stream import generator_of


@dataclass(frozen=True)
class FollowTheLeader(Learner):
    """Settings would be fields here."""

    def start(self, problem):
        return LeaderMemory(np.zeros(problem.n_actions))


class LeaderMemory(NamedTuple):
    """What a run changes: numbers and arrays."""

    losses: np.ndarray


def policy(memory, rows, t, out):
    out[:] = 0.0
    out[memory.losses.argmin()] = 1.0


def remember(memory, rows, policy, choice, state, saved):
    pass  # nothing of this round is needed when its outcome comes


def learn(memory, played, loss, saved, sign):
    memory.losses[played.action] += sign * loss


add_rule(LeaderMemory, policy, remember, learn)


def two_shelves(seed, n_actions=12, horizon=5_000):
    """Half of the items lead further than the other half."""
    rng = generator_of(seed)
    rows = [[6.0, 3.0, 1.0] if a % 2 else [3.0, 3.0, 4.0] for a in range(n_actions)]
    P = np.array([rng.dirichlet(row) for row in rows])
    return Instance(P, np.tile([0.9, 0.6, 0.2], (horizon, 1)))
