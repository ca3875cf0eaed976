"""State-EXP3 on requests, given how often each context comes: Theorem D's learner, as plainly as it can be written.

The marginal probability of every state is computed from the policies of all contexts in every round: far too slow to
use, and the reference for learners that estimate it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.learners import Learner, add_rule
from statepool.learners.contract import make_tables, rows_at


@dataclass(frozen=True)
class SharesKnownExp3(Learner):
    rate: float = 0.05
    knows_contexts: ClassVar[bool] = True

    def start(self, problem):
        shares, available = np.full(problem.n_contexts, 1 / problem.n_contexts), None
        if problem.instance is not None:
            shares, available = problem.instance.shares.copy(), problem.instance.available
        x = np.zeros(problem.n_actions)
        return SharesKnownMemory(make_tables(problem.P, available), shares, np.zeros(problem.n_states), x, self.rate)


class SharesKnownMemory(NamedTuple):
    tables: Any
    shares: Any
    G: Any
    x: Any
    rate: float


def policy(memory, rows, t, out):
    totals = (rows.columns.T * memory.G).sum(axis=1)
    weights = np.exp(-memory.rate * (totals - totals.min()))
    out[:] = weights / weights.sum()


def remember(memory, rows, policy, choice, state, saved):
    q = 0.0
    for context in range(memory.shares.size):
        offered = rows_at(memory.tables, context)
        totals = (offered.columns.T * memory.G).sum(axis=1)
        weights = np.exp(-memory.rate * (totals - totals.min()))
        q += memory.shares[context] * (weights * offered.columns[state]).sum() / weights.sum()
    saved[0] = q


def learn(memory, played, loss, saved, sign):
    memory.G[played.state] += sign * loss / saved[0]


add_rule(SharesKnownMemory, policy, remember, learn)
