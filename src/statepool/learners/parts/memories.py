"""State means under memories of several lengths, weighted by how well each foretold the outcomes.

    h_i(s) = (losses_i(s) + b_i) / (counts_i(s) + 2 b_i)  memory i forgets by FORGETTING[i] a round
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
from statepool.learners.sums import Sum, Views

FORGETTING = (1.0, 0.9999, 0.999, 0.99)
"""Memories of everything, and of ten thousand, a thousand and a hundred rounds."""

TENTH, FIRST = 10.0, 10_000.0
"""Evidence of round r counts ((FIRST + r)/(FIRST + t))^TENTH in round t: it looks back a thousand rounds and a tenth of
all. No past, however long, settles the matter for ever, and what never changes is known ever better."""

LOWEST_PRIOR = -14.0
"""With e^-14 an outcome fresher than the mean delay cannot make a guess so sure that its logarithm is lost."""

N_MEMORIES = len(FORGETTING)
LOGS = tuple(math_log(each) for each in FORGETTING)
SUMS = (
    Sum("played", told_by="state", logs=LOGS),
    Sum("losses", told_by="outcome", logs=LOGS),
    Sum("counts", told_by="outcome", logs=LOGS),
    Sum("evidence", told_by="outcome", over="one", logs=(0.0,) * N_MEMORIES),
    Sum("delays", told_by="age", over="one", logs=(0.0, 0.0)),
)
"""`played` counts as `counts` does, with the rounds whose outcome has not come: the state is seen at once. `evidence`
is kept in units of round 0. `delays`: the rounds that all outcomes took, and how many there were."""

N_LESSON = 3 * N_MEMORIES
"""How many numbers of a lesson are of these sums: they come first."""


class Memories(NamedTuple):
    """One row a memory, one column a state: the sums, and what is computed from them each round."""

    losses: Floats
    counts: Floats
    played: Floats
    evidence: Floats
    delays: Floats
    logs: Floats
    guesses: Floats
    shares: Floats
    mean: Floats
    visits: Floats


def start_memories(views: Views) -> Memories:
    """Nothing seen."""
    of = views.of
    n_memories, n_states = of["losses"].shape
    return Memories(
        of["losses"], of["counts"], of["played"], of["evidence"][:, 0], of["delays"][:, 0], np.array(LOGS),
        np.zeros((n_memories, n_states)), np.zeros(n_memories), np.zeros(n_states), np.zeros(n_states),
    )  # fmt: skip


@compiled
def mean_delay(memories: Any) -> float:
    """Of the outcomes that have come."""
    return memories.delays[0] / max(memories.delays[1], 1.0)


@compiled
def mix(memories: Any, t: int) -> None:
    """`mean` and `visits` of round t, over the memories by their shares."""
    n_memories, n_states = memories.losses.shape
    _share_out(memories, t)
    delay = mean_delay(memories)
    memories.mean[:] = 0.0
    memories.visits[:] = 0.0
    for i in range(n_memories):
        share = memories.shares[i]
        prior = exp(max(memories.logs[i] * delay, LOWEST_PRIOR))
        for s in range(n_states):
            guess = (memories.losses[i, s] + prior) / (memories.counts[i, s] + 2.0 * prior)
            memories.guesses[i, s] = guess
            memories.mean[s] += share * guess
            memories.visits[s] += share * memories.played[i, s]


@compiled
def _share_out(memories: Any, t: int) -> None:
    """The shares of the memories, by the evidence up to the last round."""
    n_memories, unit = memories.evidence.size, weight_of_round(t - 1)
    top = memories.evidence[0]
    for i in range(n_memories):
        top = max(top, memories.evidence[i])
    total = 0.0
    for i in range(n_memories):
        memories.shares[i] = exp(max((memories.evidence[i] - top) / unit, LOWEST_EXPONENT))
        total += memories.shares[i]
    for i in range(n_memories):
        memories.shares[i] /= total


@compiled
def weight_of_round(t: int) -> float:
    """What the evidence of round t counts, in units of round 0."""
    return exp(TENTH * log(1.0 + t / FIRST))


@compiled
def carry_guesses(memories: Any, state: int, ticket: Any) -> None:
    """What each memory foretells of a state, into the first places of the ticket."""
    for i in range(memories.evidence.size):
        ticket[i] = memories.guesses[i, state]


@compiled
def teach_memories(out: Any, loss: float, t: int, ticket: Any) -> None:
    """The first numbers of a lesson: losses, counts and evidence of each memory."""
    n_memories, weight = N_MEMORIES, weight_of_round(t)
    for i in range(n_memories):
        out[i] = loss
        out[n_memories + i] = 1.0
        out[2 * n_memories + i] = weight * evidence_of(ticket[i], loss)


@compiled
def evidence_of(guess: float, loss: float) -> float:
    """How well a guess foretold a loss."""
    return loss * log(guess) + (1.0 - loss) * log(1.0 - guess)
