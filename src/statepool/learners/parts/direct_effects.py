"""Direct effects of actions on outcomes: what is left of an outcome when the state has told what it can.

    e(a, s) ~ normal(0, size²),  size one of SIZES; Bayes' rule over the sizes, half of the belief on none at first

    left(a, s)   += X - h(S) - w ê(a, s)      h, w, ê as of the round played
    load(a, s)   += 1 - w                     w: the share of a in what h(s) rests on; h is no witness about itself
    noise(a, s)   = sum of h (1 - h)  +  (sum of the standard error of h)²     errors of h are one error, not many
    ê             = size² load left / (noise + size² load²)                    its variance: size² noise / (same)
    h            -= the mean of the ê of the outcomes that it rests on         so h is about the state, whoever played

A cell whose outcomes look like noise keeps ê at about nothing; with its own outcomes it grows away from the pooled
value. Everything a round needs later is in its ticket and all sums commute, so order of arrival does not matter.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LOWEST_EXPONENT, exp, log
from statepool.learners.parts.memories import Memories, faded

SIZES = (0.02, 0.05, 0.12, 0.3)
"""Standard deviations of effects that are told apart, by factors of two and a half; smaller ones are nothing."""

LEAST_VARIANCE = 0.01
"""Of one outcome: a state that has shown no loss yet is not certain to show none."""

FIRST_NOISE = 0.2
"""About one outcome's variance: a cell without outcomes has noise too."""

FORETOLD, EFFECT, BLUR, OWN = range(4)
WIDTH = 4
"""Numbers in a ticket: h, ê, the standard error of h, and w."""


class Effects(NamedTuple):
    """One row a state, one column an action."""

    left: Floats
    load: Floats
    variance: Floats
    blur: Floats
    arrived: Floats
    played: Floats
    """As `arrived`, with the rounds whose outcome has not come."""
    guesses: Floats
    """ê, mixed over the sizes."""
    doubts: Floats
    """One an action: the variance of sum_s P(s|a) ê(a, s)."""
    removed: Floats
    """One row a memory, one column a state: what was taken off the outcomes in `sums`."""
    evidence: Floats
    shares: Floats
    squares: Floats
    """Of no effect, and of SIZES."""


def start_effects(n_actions: int, n_states: int, memories: Memories) -> Effects:
    """Nothing seen."""
    table = np.zeros((n_states, n_actions))
    n_sizes = len(SIZES)
    return Effects(
        left=table, load=table.copy(), variance=table.copy(), blur=table.copy(), arrived=table.copy(),
        played=table.copy(), guesses=table.copy(), doubts=np.zeros(n_actions), removed=np.zeros_like(memories.sums),
        evidence=np.log(np.array([0.5] + n_sizes * [0.5 / n_sizes])), shares=np.zeros(n_sizes + 1),
        squares=np.array((0.0, *SIZES)) ** 2,
    )  # fmt: skip


@compiled
def clear_means(effects: Any, memories: Any) -> None:
    """After `mix`: what is known to be the actions' own is taken off the state means."""
    n_memories, n_states = effects.removed.shape
    for i in range(n_memories):
        kept = exp(memories.logs[i])
        for s in range(n_states):
            effects.removed[i, s] *= kept
            memories.mean[s] -= memories.shares[i] * effects.removed[i, s] / (memories.counts[i, s] + 1.0)
    for s in range(n_states):
        memories.mean[s] = min(max(memories.mean[s], 0.0), 1.0)


@compiled
def correct(effects: Any, columns: Any, values: Any) -> None:
    """values += sum_s P(s|a) ê(a, s), and how sure that is into `doubts`."""
    _share(effects)
    effects.doubts[:] = 0.0
    for s in range(columns.shape[0]):
        guesses, column = effects.guesses[s], columns[s]
        guesses[:] = 0.0
        for i in range(1, effects.squares.size):
            if effects.shares[i] > 0.0:
                _guess(effects, s, effects.shares[i], effects.squares[i], column)
        for a in range(values.size):
            values[a] += column[a] * guesses[a]


@compiled
def _share(effects: Any) -> None:
    top = effects.evidence[0]
    for i in range(effects.evidence.size):
        top = max(top, effects.evidence[i])
    total = 0.0
    for i in range(effects.evidence.size):
        effects.shares[i] = exp(max(effects.evidence[i] - top, LOWEST_EXPONENT))
        total += effects.shares[i]
    for i in range(effects.evidence.size):
        effects.shares[i] /= total


@compiled
def _guess(effects: Any, state: int, share: float, square: float, column: Any) -> None:
    left, load, variance, blur = effects.left[state], effects.load[state], effects.variance[state], effects.blur[state]
    arrived, played = effects.arrived[state], effects.played[state]
    guesses, doubts = effects.guesses[state], effects.doubts
    for a in range(column.size):
        noise = variance[a] + blur[a] * blur[a] + FIRST_NOISE
        guesses[a] += share * square * load[a] * left[a] / (noise + square * load[a] * load[a])
        # As if the outcomes on their way had come, and been like those that have.
        expected = square * played[a] * (arrived[a] + 1.0)
        doubts[a] += column[a] * column[a] * share * square * noise / (noise + expected)


@compiled
def foretell(effects: Any, memories: Any, action: int, state: int, ticket: Any) -> None:
    """What the outcome will be held against."""
    known = 0.0
    for i in range(memories.evidence.size):
        known += memories.shares[i] * memories.counts[i, state]
    h = memories.mean[state]
    ticket[FORETOLD], ticket[EFFECT] = h, effects.guesses[state, action]
    ticket[BLUR] = np.sqrt(max(h * (1.0 - h), LEAST_VARIANCE) / (known + 1.0))
    ticket[OWN] = effects.arrived[state, action] / (memories.counts[0, state] + 1.0)  # memory 0 forgets nothing
    effects.played[state, action] += 1.0


@compiled
def learn_effect(effects: Any, memories: Any, age: int, action: int, state: int, loss: float, ticket: Any) -> None:
    """An outcome, `age` rounds after it was foretold."""
    h = ticket[FORETOLD]
    _weigh(effects, action, state, -1.0)
    effects.left[state, action] += loss - h - ticket[OWN] * ticket[EFFECT]
    effects.load[state, action] += 1.0 - ticket[OWN]
    effects.variance[state, action] += max(h * (1.0 - h), LEAST_VARIANCE)
    effects.blur[state, action] += ticket[BLUR]
    effects.arrived[state, action] += 1.0
    _weigh(effects, action, state, 1.0)
    for i in range(memories.evidence.size):
        effects.removed[i, state] += faded(memories.logs[i], age) * ticket[EFFECT]


@compiled
def _weigh(effects: Any, action: int, state: int, sign: float) -> None:
    """A cell's evidence for each size: log N(left; 0, noise + size² load²) - log N(left; 0, noise)."""
    left, load, blur = effects.left[state, action], effects.load[state, action], effects.blur[state, action]
    noise = effects.variance[state, action] + blur * blur + FIRST_NOISE
    for i in range(1, effects.squares.size):
        wide = noise + effects.squares[i] * load * load
        effects.evidence[i] += sign * 0.5 * (left * left * (1.0 / noise - 1.0 / wide) - log(wide / noise))
