"""Direct effects of actions on outcomes: what is left of an outcome when the state has told what it can.

    e(a, s) ~ normal(0, size²),  size one of SIZES; Bayes' rule over the sizes, half of the belief on none at first

    left(a, s)   += X - h(S) - w ê(a, s)      h, w, ê as of the round played
    load(a, s)   += 1 - w                     w: the share of a in what h(s) rests on; h is no witness about itself
    noise(a, s)   = sum of h (1 - h)  +  (sum of the standard error of h)²     errors of h are one error, not many
    ê             = size² load left / (noise + size² load²)                    its variance: size² noise / (same)
    h            -= the mean of the ê of the outcomes that it rests on         so h is about the state, whoever played

A cell whose outcomes look like noise keeps ê at about nothing; with its own outcomes it grows away from the pooled
value. The belief in each size is no sum of lessons, but a function of the sums of the cells: it is kept beside them.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LOWEST_EXPONENT, add_scaled, exp, log
from statepool.learners.parts.memories import LOGS, N_MEMORIES
from statepool.learners.sums import Sum, Views

SIZES = (0.02, 0.05, 0.12, 0.3)
"""Standard deviations of effects that are told apart, by factors of two and a half; smaller ones are nothing."""

LEAST_VARIANCE = 0.01
"""Of one outcome: a state that has shown no loss yet is not certain to show none."""

FIRST_NOISE = 0.2
"""About one outcome's variance: a cell without outcomes has noise too."""

SUMS = (
    Sum("tried", told_by="state", over="cells"),
    Sum("left", told_by="outcome", over="cells"),
    Sum("load", told_by="outcome", over="cells"),
    Sum("variance", told_by="outcome", over="cells"),
    Sum("blur", told_by="outcome", over="cells"),
    Sum("arrived", told_by="outcome", over="cells"),
    Sum("removed", told_by="outcome", logs=LOGS),
)
"""`tried` counts as `arrived` does, with the rounds whose outcome has not come. `removed`: one row a memory, what was
taken off the outcomes in its losses."""

N_LESSON = 5 + N_MEMORIES

FORETOLD, BLUR = range(2)
"""What travels of a state: h, and its standard error;"""
EFFECT, OWN = range(2)
"""and of a cell: ê, and w."""


class Effects(NamedTuple):
    """The sums, one row a state and one column an action, and what is kept beside them."""

    tried: Floats
    left: Floats
    load: Floats
    variance: Floats
    blur: Floats
    arrived: Floats
    removed: Floats
    squares: Floats
    """Of SIZES."""
    beliefs: Floats
    """Of no effect, and of each size: the logarithm, up to a constant."""
    shares: Floats
    weights: Floats
    """What each cell adds to the belief in each size: [size, state, action]."""
    values: Floats
    """sum_s P(s|a) ê(a, s) if effects have a size, and its variance: [size, action]."""
    doubts: Floats


def start_effects(views: Views, n_actions: int, n_states: int) -> Effects:
    """Nothing seen."""
    of, n_sizes = views.of, len(SIZES)
    return Effects(
        of["tried"], of["left"], of["load"], of["variance"], of["blur"], of["arrived"], of["removed"],
        np.array(SIZES) ** 2, np.log(np.array([0.5] + n_sizes * [0.5 / n_sizes])), np.zeros(n_sizes + 1),
        np.zeros((n_sizes, n_states, n_actions)), np.zeros((n_sizes, n_actions)), np.zeros((n_sizes, n_actions)),
    )  # fmt: skip


@compiled
def clear_means(effects: Any, memories: Any) -> None:
    """After `mix`: what is known to be the actions' own is taken off the state means."""
    n_memories, n_states = effects.removed.shape
    for i in range(n_memories):
        for s in range(n_states):
            memories.mean[s] -= memories.shares[i] * effects.removed[i, s] / (memories.counts[i, s] + 1.0)
    for s in range(n_states):
        memories.mean[s] = min(max(memories.mean[s], 0.0), 1.0)


@compiled
def share_beliefs(effects: Any) -> None:
    """The shares of the sizes, by the beliefs."""
    top = effects.beliefs[0]
    for i in range(effects.beliefs.size):
        top = max(top, effects.beliefs[i])
    total = 0.0
    for i in range(effects.beliefs.size):
        effects.shares[i] = exp(max(effects.beliefs[i] - top, LOWEST_EXPONENT))
        total += effects.shares[i]
    for i in range(effects.beliefs.size):
        effects.shares[i] /= total


@compiled
def add_effects(effects: Any, values: Any, doubts: Any) -> None:
    """values += what the actions' own effects are worth, by the shares; `doubts`: its variance."""
    doubts[:] = 0.0
    for i in range(effects.squares.size):
        add_scaled(values, effects.values[i], effects.shares[i + 1])
        add_scaled(doubts, effects.doubts[i], effects.shares[i + 1])


@compiled
def noise_of(effects: Any, state: int, action: int) -> float:
    """The variance of what is left in a cell, had its action no effect."""
    blur = effects.blur[state, action]
    return effects.variance[state, action] + blur * blur + FIRST_NOISE


@compiled
def guess_effect(effects: Any, state: int, action: int) -> float:
    """ê of a cell, mixed over the sizes."""
    load, left, noise = effects.load[state, action], effects.left[state, action], noise_of(effects, state, action)
    guess = 0.0
    for i in range(effects.squares.size):
        square = effects.squares[i]
        guess += effects.shares[i + 1] * square * load * left / (noise + square * load * load)
    return guess


@compiled
def read_action(effects: Any, columns: Any, action: int) -> None:
    """What an action's cells say of its value, for each size."""
    n_sizes = effects.squares.size
    for i in range(n_sizes):
        effects.values[i, action] = effects.doubts[i, action] = 0.0
    for s in range(columns.shape[0]):
        share, load, noise = columns[s, action], effects.load[s, action], noise_of(effects, s, action)
        pull, square_load, doubt = share * load * effects.left[s, action], load * load, share * share * noise
        # As if the outcomes on their way had come, and been like those that have.
        expected = effects.tried[s, action] * (effects.arrived[s, action] + 1.0)
        for i in range(n_sizes):
            square = effects.squares[i]
            effects.values[i, action] += square * pull / (noise + square * square_load)
            effects.doubts[i, action] += square * doubt / (noise + square * expected)


@compiled
def weigh_cell(effects: Any, state: int, action: int) -> None:
    """A cell's evidence for each size: log N(left; 0, noise + size² load²) - log N(left; 0, noise)."""
    left, load, noise = effects.left[state, action], effects.load[state, action], noise_of(effects, state, action)
    for i in range(effects.squares.size):
        wide = noise + effects.squares[i] * load * load
        weight = 0.5 * (left * left * (1.0 / noise - 1.0 / wide) - log(wide / noise))
        effects.beliefs[i + 1] += weight - effects.weights[i, state, action]
        effects.weights[i, state, action] = weight


@compiled
def read_effects(effects: Any, columns: Any) -> None:
    """All that is kept beside the sums, from the sums."""
    n_sizes, n_states, n_actions = effects.weights.shape
    for i in range(n_sizes):
        effects.beliefs[i + 1] = effects.beliefs[0] - log(float(n_sizes))
        for s in range(n_states):
            for a in range(n_actions):
                effects.weights[i, s, a] = 0.0
    for a in range(n_actions):
        for s in range(n_states):
            weigh_cell(effects, s, a)
        read_action(effects, columns, a)


@compiled
def carry_state(memories: Any, state: int, ticket: Any) -> None:
    """What an outcome in a state will be held against."""
    known, h = 0.0, memories.mean[state]
    for i in range(memories.evidence.size):
        known += memories.shares[i] * memories.counts[i, state]
    ticket[FORETOLD], ticket[BLUR] = h, np.sqrt(max(h * (1.0 - h), LEAST_VARIANCE) / (known + 1.0))


@compiled
def carry_cell(effects: Any, memories: Any, action: int, state: int, ticket: Any) -> None:
    """What the outcome of an action in a state will be held against besides."""
    ticket[EFFECT] = guess_effect(effects, state, action)
    ticket[OWN] = effects.arrived[state, action] / (memories.counts[0, state] + 1.0)  # memory 0 forgets nothing


@compiled
def teach_effects(out: Any, loss: float, of_state: Any, of_cell: Any) -> None:
    """Their part of a lesson."""
    h, effect, own = of_state[FORETOLD], of_cell[EFFECT], of_cell[OWN]
    out[0] = loss - h - own * effect
    out[1] = 1.0 - own
    out[2] = max(h * (1.0 - h), LEAST_VARIANCE)
    out[3] = of_state[BLUR]
    out[4] = 1.0
    for i in range(N_MEMORIES):
        out[5 + i] = effect
