"""Rows of a map that is learnt where requests have contexts: each leans on its action's, and that on the overall row.

    row(c, a) = (n(c, a) + κ row(a)) / (n(c, a) + κ)          row(a) = (n(a) + λ row) / (n(a) + λ)

n counts the states that followed. The strengths κ and λ are read off the counts as the audit does (`audit.map`): rows
that are alike give a large one, so that what was hardly played leans on its prior. They are read again when an eighth
more has been seen. All of it is a function of the counts: no order of rounds matters.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled, compiled_apart

OF_ACTION, OF_ROW = range(2)
"""Places of the strengths λ and κ."""

LEAST_SHARE, MOST_SHARE = 1e-4, 0.5
"""Of the variance, what lies between rows: 1 / (strength + 1)."""

FIRST_LOOK = 16.0
"""Rounds before the strengths are read for the first time; until then a prior counts as one round."""


class ContextRows(NamedTuple):
    """Empty where there are no contexts, or where the map is known."""

    pairs: Floats
    """[context, state, action]: how often the state followed."""
    visits: Floats
    """[context, action]"""
    strengths: Floats
    held: Floats
    """A strength that is set and not read; 0 where it is read. Only comparisons set one."""
    look: Floats
    """How many rounds there have to be before the strengths are read again."""
    overall: Floats
    of_actions: Floats
    """[state, action]: the rows that a context's lean on, where it was looked at last."""
    worth: Floats
    """Of each action in the context of the request: how many rounds its row is worth."""


def start_rows(n_contexts: int, n_states: int, n_actions: int) -> ContextRows:
    """Nothing seen."""
    some = n_contexts > 0
    return ContextRows(
        np.zeros((n_contexts, n_states, n_actions)), np.zeros((n_contexts, n_actions)), np.ones(2), np.zeros(2),
        np.full(1, FIRST_LOOK), np.zeros(n_states * some), np.zeros((n_states, n_actions * some)),
        np.zeros(n_actions * some),
    )  # fmt: skip


@compiled
def see_pair(rows: Any, context: int, action: int, state: int) -> None:
    """The state followed the action in this context."""
    rows.pairs[context, state, action] += 1.0
    rows.visits[context, action] += 1.0


@compiled_apart
def read_context(rows: Any, pairs: Any, visits: Any, context: int, columns: Any) -> None:
    """The rows of a context, into `columns`; `pairs` and `visits` are those of each action over all contexts."""
    _read_overall(rows, pairs)
    _read_strengths(rows, pairs, visits)
    of_row, of_action = rows.strengths[OF_ROW], rows.strengths[OF_ACTION]
    for s in range(columns.shape[0]):
        for a in range(columns.shape[1]):
            prior = (pairs[s, a] + of_action * rows.overall[s]) / (visits[a] + of_action)
            columns[s, a] = (rows.pairs[context, s, a] + of_row * prior) / (rows.visits[context, a] + of_row)
    for a in range(columns.shape[1]):
        own = rows.visits[context, a]
        elsewhere = visits[a] - own
        # A prior seen m times stands for no more than m rounds, and for less where it leans on the overall row itself.
        told = of_row * elsewhere / (of_row + elsewhere) * elsewhere / (of_action + elsewhere)
        rows.worth[a] = own + told


@compiled
def _read_overall(rows: Any, pairs: Any) -> None:
    n_states = pairs.shape[0]
    total = 0.0
    for s in range(n_states):
        rows.overall[s] = 1.0 / n_states
        for a in range(pairs.shape[1]):
            rows.overall[s] += pairs[s, a]
        total += rows.overall[s]
    for s in range(n_states):
        rows.overall[s] /= total


@compiled
def _read_strengths(rows: Any, pairs: Any, visits: Any) -> None:
    total = 0.0
    for a in range(visits.size):
        total += visits[a]
    if total < rows.look[0]:
        return
    rows.look[0] = total + max(total / 8.0, FIRST_LOOK)
    for s in range(pairs.shape[0]):
        for a in range(visits.size):
            rows.of_actions[s, a] = rows.overall[s]
    rows.strengths[OF_ACTION] = rows.held[OF_ACTION]
    if rows.held[OF_ACTION] == 0.0:
        spread, growth = _spread(pairs, visits, rows.of_actions, total)
        rows.strengths[OF_ACTION] = _strength(spread, growth)
    of_action = rows.strengths[OF_ACTION]
    for s in range(pairs.shape[0]):
        for a in range(visits.size):
            rows.of_actions[s, a] = (pairs[s, a] + of_action * rows.overall[s]) / (visits[a] + of_action)
    rows.strengths[OF_ROW] = rows.held[OF_ROW]
    if rows.held[OF_ROW] == 0.0:
        spread = growth = 0.0
        for context in range(rows.visits.shape[0]):
            more = _spread(rows.pairs[context], rows.visits[context], rows.of_actions, total)
            spread += more[0]
            growth += more[1]
        rows.strengths[OF_ROW] = _strength(spread, growth)


@compiled
def _spread(pairs: Any, visits: Any, priors: Any, total: float) -> tuple[float, float]:
    """Pearson's statistic of rows less what it would be if they were their priors, and how it grows with what differs.

    A prior was made from the same rows: each takes out as much as it put in, its part of all.
    """
    spread = growth = 0.0
    freedom = pairs.shape[0] - 1.0
    for a in range(visits.size):
        n = visits[a]
        if n > 0.0:
            spread -= (1.0 - n / total) * freedom
            growth += (1.0 - n / total) * (n - 1.0) * freedom
            for s in range(pairs.shape[0]):
                expected = n * priors[s, a]
                spread += (pairs[s, a] - expected) ** 2 / expected
    return spread, growth


@compiled
def _strength(spread: float, growth: float) -> float:
    share = spread / growth if growth > 0.0 else LEAST_SHARE
    return 1.0 / min(max(share, LEAST_SHARE), MOST_SHARE) - 1.0
