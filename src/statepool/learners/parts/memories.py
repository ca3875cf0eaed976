"""State means under memories of several lengths, weighted by how well each foretold the outcomes.

    h_i(s) = (sum_i(s) + b_i) / (count_i(s) + 2 b_i)      memory i forgets by FORGETTING[i] a round
                                                          b_i: what it keeps of an outcome as old as the mean delay
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

TENTH, FIRST = 10.0, 10_000.0
"""Evidence of round r counts ((FIRST + r)/(FIRST + t))^TENTH in round t: it looks back a thousand rounds and a tenth of
all. No past, however long, settles the matter for ever, and what never changes is known ever better."""


LOWEST_PRIOR = -14.0
"""With e^-14 an outcome fresher than the mean delay cannot make a guess so sure that its logarithm is lost."""


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
    """log FORGETTING."""
    mean: Floats
    visits: Floats


def start_memories(n_states: int, forgetting: tuple[float, ...] = FORGETTING) -> Memories:
    """Nothing seen."""
    table = np.zeros((len(forgetting), n_states))
    logs = np.array([math_log(f) for f in forgetting])
    return Memories(
        table, table.copy(), table.copy(), table.copy(), np.zeros(len(forgetting)), np.zeros(len(forgetting)), logs,
        np.zeros(n_states), np.zeros(n_states),
    )  # fmt: skip


@compiled
def fade(memories: Any, t: int) -> None:
    """Round t begins."""
    n_memories, n_states = memories.sums.shape
    kept_evidence = faded_evidence(t - 1, t)
    for i in range(n_memories):
        memories.evidence[i] *= kept_evidence
        kept = exp(memories.logs[i])
        for s in range(n_states):
            memories.sums[i, s] *= kept
            memories.counts[i, s] *= kept
            memories.played[i, s] *= kept


@compiled
def mix(memories: Any, delay: float) -> None:
    """`mean` and `visits`, over the memories by their shares."""
    n_memories, n_states = memories.sums.shape
    memories.mean[:] = 0.0
    memories.visits[:] = 0.0
    for i in range(n_memories):
        share = memories.shares[i]
        prior = exp(max(memories.logs[i] * delay, LOWEST_PRIOR))
        for s in range(n_states):
            guess = (memories.sums[i, s] + prior) / (memories.counts[i, s] + 2.0 * prior)
            memories.guesses[i, s] = guess
            memories.mean[s] += share * guess
            memories.visits[s] += share * memories.played[i, s]


@compiled
def share_out(memories: Any) -> None:
    """The shares of the memories, by the evidence up to the last round."""
    n_memories = memories.evidence.size
    top = memories.evidence[0]
    for i in range(n_memories):
        top = max(top, memories.evidence[i])
    total = 0.0
    for i in range(n_memories):
        memories.shares[i] = exp(max(memories.evidence[i] - top, LOWEST_EXPONENT))
        total += memories.shares[i]
    for i in range(n_memories):
        memories.shares[i] /= total


@compiled
def write_guesses(memories: Any, state: int, ticket: Any) -> None:
    """What each memory foretells of the state just seen, into the first places of the ticket."""
    for i in range(memories.evidence.size):
        ticket[i] = memories.guesses[i, state]
        memories.played[i, state] += 1.0


@compiled
def remember(memories: Any, t: int, now: int, state: int, loss: float, ticket: Any) -> None:
    """The outcome of round t."""
    weight = faded_evidence(t, now)
    for i in range(memories.evidence.size):
        kept = faded(memories.logs[i], now - t)
        memories.sums[i, state] += kept * loss
        memories.counts[i, state] += kept
        memories.evidence[i] += weight * evidence_of(ticket[i], loss)


@compiled
def evidence_of(guess: float, loss: float) -> float:
    """How well a guess foretold a loss."""
    return loss * log(guess) + (1.0 - loss) * log(1.0 - guess)


@compiled
def faded(rate: float, age: int) -> float:
    """What is left after `age` rounds of exp(rate) each."""
    return exp(max(rate * age, LOWEST_EXPONENT))


@compiled
def faded_evidence(t: int, now: int) -> float:
    """What round t's evidence still counts in round `now`."""
    return exp(TENTH * (log(FIRST + t) - log(FIRST + now)))
