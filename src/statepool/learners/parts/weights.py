"""Exponential weights over the actions, the part that most learners share.

    x(a) ∝ exp(-rate · L(a)),   mixed with uniform play:  (1 - mixing) x + mixing/K

Totals stay in the log domain and the weights are recomputed only when a total has changed. They are taken
relative to a reference that follows the smallest total from a distance, and clamped at exp(-700), so no action
loses its support and one that has fallen far behind can come back.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled, compiled_apart
from statepool.kernels import (
    AT_ONCE,
    BLOCK,
    LARGEST_CHARGE,
    add_combined,
    add_scaled,
    block_sums,
    dot,
    dots,
    draw_blocked,
    lowest,
    weigh,
    weigh_rows,
)
from statepool.learners.maps import bar_weights

_SMALLEST_SUM = 1e-30


class Weights(NamedTuple):
    """One row a copy."""

    totals: Floats
    weights: Floats
    blocks: Floats
    sums: Floats
    references: Floats
    """One a copy; where requests bring rows of their own, there is one copy, and one for each map."""
    changed: Any
    rate: float
    mixing: float


def start_weights(n_actions: int, rate: float, mixing: float = 0.0, copies: int = 1, n_maps: int = 1) -> Weights:
    """Totals of zero: uniform play."""
    n_blocks = -(-n_actions // BLOCK)
    return Weights(
        np.zeros((copies, n_actions)),
        np.empty((copies, n_actions)),
        np.empty((copies, n_blocks)),
        np.empty(copies),
        np.zeros(max(copies, n_maps)),
        np.ones(copies, dtype=np.bool_),
        float(rate),
        float(mixing),
    )


@compiled
def refresh(weights: Any, copy: int) -> None:
    """Bring the weights of a copy up to date with its totals."""
    if weights.changed[copy]:
        weights.changed[copy] = False
        _reweigh(weights, copy, weights.totals[copy], weights.rate)


@compiled
def refresh_for(weights: Any, copy: int, maps: Any) -> None:
    """The same where a request may bar actions."""
    if weights.changed[copy]:
        refresh(weights, copy)
        bar_weights(maps, weights)


@compiled
def reweigh(weights: Any, copy: int, totals: Any) -> None:
    """Set the weights of a copy from the given totals, which may also have fallen."""
    weights.references[copy] = lowest(totals)
    _reweigh(weights, copy, totals, weights.rate)


@compiled_apart
def reweigh_at(weights: Any, copy: int, rate: float) -> None:
    """Set the weights of a copy from its totals at a rate that may change from round to round."""
    weights.changed[copy] = False
    _reweigh(weights, copy, weights.totals[copy], rate)


@compiled
def _reweigh(weights: Any, copy: int, totals: Any, rate: float) -> None:
    row, blocks = weights.weights[copy], weights.blocks[copy]
    total = weigh(totals, weights.references[copy], rate, row, blocks)
    # Totals only grow, so the sum shrinks until the reference has to be moved up to the smallest of them.
    if total < _SMALLEST_SUM:
        total = _weigh_from_the_lowest(weights, copy, totals, rate)
    _set_sum(weights, copy, total)


@compiled_apart
def _weigh_from_the_lowest(weights: Any, copy: int, totals: Any, rate: float) -> float:
    weights.references[copy] = lowest(totals)
    return weigh(totals, weights.references[copy], rate, weights.weights[copy], weights.blocks[copy])


@compiled
def _set_sum(weights: Any, copy: int, total: float) -> None:
    if weights.mixing > 0.0:
        row = weights.weights[copy]
        share = weights.mixing * total / row.size
        for a in range(row.size):
            row[a] = (1.0 - weights.mixing) * row[a] + share
        total = block_sums(row, weights.blocks[copy])
    weights.sums[copy] = total


@compiled_apart
def reweigh_rows(weights: Any, maps: Any, charges: Any, handicaps: Any, reaches: Any) -> None:
    """The weights of the only copy from charges that have grown since this map was last asked for, through its rows.

    So has each of its totals: the map's reference is still below all of them. The same sweep leaves the probability of
    each state under the play in `reaches`. The totals themselves are not kept.
    """
    row, blocks, number, rate = weights.weights[0], weights.blocks[0], maps.now[0], weights.rate
    columns = maps.columns[number]
    base = handicaps
    if charges.size > AT_ONCE:
        base = weights.totals[0]
        _add_up(columns[AT_ONCE:], charges[AT_ONCE:], handicaps, base)
    total = weigh_rows(columns, charges[:AT_ONCE], base, weights.references[number], rate, row, blocks, reaches)
    weights.changed[0] = False
    weights.sums[0] = total
    if total < _SMALLEST_SUM or weights.mixing > 0.0 or maps.barred.size > 0:
        if total < _SMALLEST_SUM:
            totals = weights.totals[0]
            _add_up(columns, charges, handicaps, totals)
            weights.references[number] = lowest(totals)
            total = weigh(totals, weights.references[number], rate, row, blocks)
        _set_sum(weights, 0, total)
        bar_weights(maps, weights)
        dots(row, columns, reaches[: charges.size])
    elif charges.size > AT_ONCE:
        dots(row, columns[AT_ONCE:], reaches[AT_ONCE:])
    share = 1.0 / weights.sums[0]
    for s in range(charges.size):
        reaches[s] *= share


@compiled_apart
def _add_up(columns: Any, charges: Any, handicaps: Any, totals: Any) -> None:
    """totals = handicaps + P charges"""
    for a in range(totals.size):
        totals[a] = handicaps[a]
    add_combined(columns, charges, totals)


@compiled
def draw(weights: Any, copy: int, u: float) -> int:
    """The first action whose cumulative probability reaches u."""
    return draw_blocked(weights.weights[copy], weights.blocks[copy], u * weights.sums[copy])


@compiled
def reach(weights: Any, copy: int, column: Any) -> float:
    """The probability of a state under the play: <x, column>."""
    return dot(weights.weights[copy], column) / weights.sums[copy]


@compiled
def reach_all(weights: Any, columns: Any, out: Any) -> None:
    """The probability of each state under the play of the only copy."""
    dots(weights.weights[0], columns, out)
    share = 1.0 / weights.sums[0]
    for s in range(out.size):
        out[s] *= share


@compiled
def probability(weights: Any, copy: int, action: int) -> float:
    """x(action)."""
    return weights.weights[copy, action] / weights.sums[copy]


@compiled
def charge(weights: Any, copy: int, column: Any, amount: float) -> None:
    """totals += amount · column; a charge of 0 changes nothing and costs nothing."""
    if amount > 0.0:
        add_scaled(weights.totals[copy], column, min(amount, LARGEST_CHARGE))
        weights.changed[copy] = True


@compiled
def charge_action(weights: Any, copy: int, action: int, amount: float) -> None:
    """The same for one action alone."""
    if amount > 0.0:
        weights.totals[copy, action] += min(amount, LARGEST_CHARGE)
        weights.changed[copy] = True


@compiled
def set_totals(weights: Any, columns: Any, charges: Any, handicaps: Any) -> None:
    """The totals of the only copy, anew: P `charges`, and what each action is charged besides."""
    totals = weights.totals[0]
    _add_up(columns, charges, handicaps, totals)
    weights.references[0] = lowest(totals)
    weights.changed[0] = True


@compiled
def distribution(weights: Any, copy: int, out: Any) -> None:
    """x, written into `out`."""
    for a in range(out.size):
        out[a] = weights.weights[copy, a] / weights.sums[copy]
