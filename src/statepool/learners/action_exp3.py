"""Action-level EXP3: exponential weights that charge a loss to the action played alone.

    L(A) += X / x(A)        x(A) as of the round played

Source: Auer et al. 2002, with delays as in paper, Appendix E. Differs from the source: the weights sit in a sum
tree, so a round costs O(log K).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.learners.learner import Learner, Problem, check_copies, check_settings, n_copies, n_rows
from statepool.learners.parts.tree import (
    Tree,
    start_tree,
    tree_charge,
    tree_distribution,
    tree_draw,
    tree_probability,
    tree_reward,
)
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class ActionEXP3(Learner):
    """Exponential weights that charge a loss to the action played alone: what one does without pooling.

    L(a) += X / x(a) for the action played; x(a) ∝ exp(-rate · L(a)).

    `rate` None follows the paper; `copies` interleaves that many learners ("d+1": one more than the delay); `mixing` is
    the share of uniform play.

    >>> import statepool as sp
    >>> sp.ActionEXP3(copies="d+1")
    ActionEXP3(rate=None, copies='d+1', mixing=0.0)
    """

    rate: float | None = None
    copies: int | str = 1
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)
        check_copies(self.copies)

    def start(self, problem: Problem) -> "ActionMemory":
        copies = n_copies(self.copies, problem.delay)
        rate = problem.rate(self.rate, width=problem.n_actions, copies=copies)
        rows = n_rows(copies, problem.horizon)
        return ActionMemory(start_tree(problem.n_actions, rate, self.mixing, rows), rows)


class ActionMemory(NamedTuple):
    tree: Tree
    copies: int
    caution: float = 0.0
    """Added to x(A) in the denominator: 0 here, half the rate for implicit exploration."""
    adapted: bool = False
    """Whether to divide by the larger of x(A) then and now (`DelayAdapted`)."""
    gains: bool = False
    """Whether 1 - X is added to what the action has won, instead of X to what it has lost (`AuerEXP3`)."""


def act(memory: Any, t: int, u: float) -> int:
    return tree_draw(memory.tree, t % memory.copies, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = tree_probability(memory.tree, t % memory.copies, action) + memory.caution


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    copy, chance = t % memory.copies, ticket[0]
    if memory.adapted:
        chance = max(chance, tree_probability(memory.tree, copy, action) + memory.caution)
    if memory.gains:
        tree_reward(memory.tree, copy, action, (1.0 - loss) / chance)
    else:
        tree_charge(memory.tree, copy, action, loss / chance)


def play(memory: Any, t: int, out: Any) -> None:
    tree_distribution(memory.tree, t % memory.copies, out)


add_rule(ActionMemory, act, observe, update, play)
