"""State-EXP3 on requests, told how often each context comes: Theorem D's learner, as plainly as it can be written.

The marginal q of every state is computed from the plays of all contexts in every round: far too dear to use, and the
yardstick for learners that estimate it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.compiling import compiled
from statepool.learners.learner import Learner
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class ToldExp3(Learner):
    rate: float = 0.05
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def start(self, problem):
        shares = np.bincount(problem.contexts, minlength=problem.n_contexts) / problem.contexts.size
        return ToldMemory(
            problem.contexts, problem.P, problem.available, shares, np.zeros(problem.n_states),
            np.zeros(problem.n_actions), self.rate,
        )  # fmt: skip


class ToldMemory(NamedTuple):
    contexts: Any
    P: Any
    available: Any
    shares: Any
    G: Any
    x: Any
    rate: float


@compiled
def answer(memory, context, out):
    lowest = np.inf
    for a in range(out.size):
        out[a] = 0.0
        for s in range(memory.G.size):
            out[a] += memory.P[context, a, s] * memory.G[s]
        if memory.available[context, a]:
            lowest = min(lowest, out[a])
    total = 0.0
    for a in range(out.size):
        out[a] = np.exp(-memory.rate * (out[a] - lowest)) if memory.available[context, a] else 0.0
        total += out[a]
    for a in range(out.size):
        out[a] /= total


def act(memory, t, u):
    answer(memory, memory.contexts[t], memory.x)
    reached, last = 0.0, 0
    for a in range(memory.x.size):
        if memory.x[a] > 0.0:
            reached += memory.x[a]
            last = a
            if reached >= u:
                return a
    return last


def observe(memory, t, action, state, ticket):
    q = 0.0
    for context in range(memory.shares.size):
        answer(memory, context, memory.x)
        for a in range(memory.x.size):
            q += memory.shares[context] * memory.x[a] * memory.P[context, a, state]
    ticket[0] = q


def update(memory, t, action, state, loss, ticket):
    memory.G[state] += loss / ticket[0]


def play(memory, t, out):
    answer(memory, memory.contexts[t], out)


def play_for(memory, t, context, out):
    answer(memory, context, out)


add_rule(ToldMemory, act, observe, update, play, play_for)
