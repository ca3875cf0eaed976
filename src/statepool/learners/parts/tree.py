"""Exponential weights kept in a sum tree: one action's total changes in O(log K), and so does a draw.

Each node holds the sum of up to 16 children, always summed afresh, never adjusted, so rounding does not build
up. Leaves are exp(-rate (L - reference)); when the whole tree has become small the reference moves up to the
smallest total, which takes O(K) but only after every action has been charged.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.compiling import compiled, compiled_apart
from statepool.kernels import BLOCK, LARGEST_CHARGE, LOWEST_EXPONENT, exp, exponentials, lowest

_SMALLEST_SUM, _LARGEST_SUM = 1e-30, 1e30


class Tree(NamedTuple):
    """One row a copy. Level l is `nodes[:, starts[l] : starts[l] + counts[l]]`; the last level is the sum of all."""

    totals: Floats
    nodes: Floats
    references: Floats
    starts: Ints
    counts: Ints
    rate: float
    mixing: float


def start_tree(n_actions: int, rate: float, mixing: float = 0.0, copies: int = 1) -> Tree:
    """Totals of zero: uniform play."""
    counts = [n_actions]
    while counts[-1] > 1 or len(counts) == 1:
        counts.append(-(-counts[-1] // BLOCK))
    padded = [-(-count // BLOCK) * BLOCK for count in counts]
    starts = np.concatenate([[0], np.cumsum(padded)])
    tree = Tree(
        np.zeros((copies, n_actions)), np.zeros((copies, int(starts[-1]))), np.zeros(copies),
        starts[:-1].astype(np.int64), np.array(counts, dtype=np.int64), float(rate), float(mixing),
    )  # fmt: skip
    for copy in range(copies):
        rebuild(tree, copy)
    return tree


@compiled
def rebuild(tree: Any, copy: int) -> None:
    """Recompute every node from the totals."""
    nodes = tree.nodes[copy]
    tree.references[copy] = lowest(tree.totals[copy])
    exponentials(tree.totals[copy], tree.references[copy], tree.rate, nodes[: tree.counts[0]])
    for level in range(1, tree.counts.size):
        for i in range(tree.counts[level]):
            nodes[tree.starts[level] + i] = _sum_of_children(tree, nodes, level, i)


@compiled
def _sum_of_children(tree: Any, nodes: Any, level: int, i: int) -> float:
    first = tree.starts[level - 1] + BLOCK * i
    total = 0.0
    for child in range(first, first + BLOCK):  # padding holds zeros
        total += nodes[child]
    return total


@compiled
def tree_sum(tree: Any, copy: int) -> float:
    """The sum of all weights."""
    return tree.nodes[copy, tree.starts[-1]]


@compiled
def tree_charge(tree: Any, copy: int, action: int, amount: float) -> None:
    """Add to one action's total and bring the nodes above it up to date."""
    if amount > 0.0:
        _add(tree, copy, action, min(amount, LARGEST_CHARGE))


@compiled
def tree_reward(tree: Any, copy: int, action: int, amount: float) -> None:
    """Take from one action's total."""
    if amount > 0.0:
        _add(tree, copy, action, -min(amount, LARGEST_CHARGE))


@compiled_apart
def _add(tree: Any, copy: int, action: int, amount: float) -> None:
    nodes = tree.nodes[copy]
    tree.totals[copy, action] += amount
    exponent = tree.rate * (tree.references[copy] - tree.totals[copy, action])
    nodes[action] = exp(min(max(exponent, LOWEST_EXPONENT), -LOWEST_EXPONENT))
    i = action
    for level in range(1, tree.counts.size):
        i //= BLOCK
        nodes[tree.starts[level] + i] = _sum_of_children(tree, nodes, level, i)
    if not _SMALLEST_SUM <= tree_sum(tree, copy) <= _LARGEST_SUM:
        rebuild(tree, copy)


@compiled
def tree_probability(tree: Any, copy: int, action: int) -> float:
    """x(action)."""
    own = tree.nodes[copy, action] / tree_sum(tree, copy)
    return (1.0 - tree.mixing) * own + tree.mixing / tree.counts[0]


@compiled
def tree_draw(tree: Any, copy: int, u: float) -> int:
    """The first action whose cumulative probability reaches u."""
    nodes = tree.nodes[copy]
    share = tree.mixing * tree_sum(tree, copy) / tree.counts[0]
    target = u * tree_sum(tree, copy)
    reached = 0.0
    i = 0
    leaves = BLOCK ** (tree.counts.size - 1)
    for level in range(tree.counts.size - 2, -1, -1):
        leaves //= BLOCK
        last = min(BLOCK * i + BLOCK, tree.counts[level]) - 1
        i *= BLOCK
        while i < last:
            below = min(leaves, tree.counts[0] - i * leaves)
            mass = (1.0 - tree.mixing) * nodes[tree.starts[level] + i] + share * below
            if reached + mass >= target:
                break
            reached += mass
            i += 1
    return i


@compiled
def tree_distribution(tree: Any, copy: int, out: Any) -> None:
    """x, written into `out`."""
    for a in range(out.size):
        out[a] = tree_probability(tree, copy, a)
