"""Mean losses of states, shared by the rules that play on them: what they are told, and what travels (nothing).

losses(s) += X, counts(s) += 1,   both fading by the round played
"""

from math import log
from typing import Any

from statepool.compiling import compiled
from statepool.learners.sums import Sum


def mean_sums(forgetting: float) -> tuple[Sum, ...]:
    """Losses and counts that keep `forgetting` of themselves each round."""
    logs = (log(forgetting),)
    return Sum("losses", told_by="outcome", logs=logs), Sum("counts", told_by="outcome", logs=logs)


def carry_nothing(memory: Any, state: int, q: float, ticket: Any) -> None:
    pass


@compiled
def loss_and_count(out: Any, loss: float, t: int, ticket: Any) -> None:
    """The lesson of an outcome."""
    out[0], out[1] = loss, 1.0
