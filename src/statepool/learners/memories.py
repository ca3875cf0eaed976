"""State means under memories of several lengths, weighted by how well each foretold the outcomes.

    h_i(s) = (sum_i(s) + 1) / (count_i(s) + 2)            memory i forgets by FORGETTING[i] a round
    evidence_i += X log h_i(S) + (1 - X) log(1 - h_i(S))  with h_i as of the round played
    h = sum_i share_i h_i,   share ∝ exp(evidence)        Bayes' rule over the memories

A prediction is judged on an outcome that is a delay away, so a memory that follows too late loses to one that
stays. Everything fades by the round played and not by arrival, and all sums commute: the order in which outcomes
arrive does not matter.
"""

from math import log as math_log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LOWEST_EXPONENT, exp, log

FORGETTING = (1.0, 0.9999, 0.999, 0.99)
"""Memories of everything, and of ten thousand, a thousand and a hundred rounds."""

FADING = 0.9999
"""Evidence is as old as the longest memory that ends, so that no past, however long, settles the matter for ever."""


class Memories(NamedTuple):
    """One row a memory, one column a state."""

    sums: Floats
    counts: Floats
    played: Floats
    """As `counts`, with the rounds whose outcome has not come: the state is seen at once."""
    guesses: Floats
    evidence: Floats
    shares: Floats
    logs: Floats
    """log FORGETTING, and log FADING last."""
    mean: Floats
    visits: Floats


def start_memories(n_states: int, forgetting: tuple[float, ...] = FORGETTING) -> Memories:
    """Nothing seen."""
    table = np.zeros((len(forgetting), n_states))
    logs = np.array([math_log(f) for f in (*forgetting, FADING)])
    return Memories(
        table, table.copy(), table.copy(), table.copy(), np.zeros(len(forgetting)), np.zeros(len(forgetting)), logs,
        np.zeros(n_states), np.zeros(n_states),
    )  # fmt: skip


@compiled
def recall(memories: Any, delay: float) -> None:
    """A round passes: everything fades, and `mean` and `visits` are today's, mixed over the memories."""
    n_memories, n_states = memories.sums.shape
    _share(memories)
    memories.mean[:] = 0.0
    memories.visits[:] = 0.0
    for i in range(n_memories):
        kept = exp(memories.logs[i])
        share = memories.shares[i]
        prior = exp(max(memories.logs[i] * delay, LOWEST_EXPONENT))
        for s in range(n_states):
            memories.sums[i, s] *= kept
            memories.counts[i, s] *= kept
            memories.played[i, s] *= kept
            guess = (memories.sums[i, s] + prior) / (memories.counts[i, s] + 2.0 * prior)
            memories.guesses[i, s] = guess
            memories.mean[s] += share * guess
            memories.visits[s] += share * memories.played[i, s]


@compiled
def _share(memories: Any) -> None:
    n_memories = memories.evidence.size
    kept = exp(memories.logs[n_memories])
    top = memories.evidence[0]
    for i in range(n_memories):
        top = max(top, memories.evidence[i])
    total = 0.0
    for i in range(n_memories):
        memories.shares[i] = exp(max(memories.evidence[i] - top, LOWEST_EXPONENT))
        total += memories.shares[i]
    for i in range(n_memories):
        memories.shares[i] /= total
        memories.evidence[i] *= kept


@compiled
def write_guesses(memories: Any, state: int, ticket: Any) -> None:
    """What each memory foretells of the state just seen, into the first places of the ticket."""
    for i in range(memories.evidence.size):
        ticket[i] = memories.guesses[i, state]
        memories.played[i, state] += 1.0


@compiled
def remember(memories: Any, state: int, loss: float, age: int, ticket: Any) -> None:
    """The outcome of a round played `age` rounds ago."""
    n_memories = memories.evidence.size
    weight = faded(memories.logs[n_memories], age)
    for i in range(n_memories):
        kept = faded(memories.logs[i], age)
        memories.sums[i, state] += kept * loss
        memories.counts[i, state] += kept
        memories.evidence[i] += weight * (loss * log(ticket[i]) + (1.0 - loss) * log(1.0 - ticket[i]))


@compiled
def faded(rate: float, age: int) -> float:
    """What is left after `age` rounds of exp(rate) each."""
    return exp(max(rate * age, LOWEST_EXPONENT))
