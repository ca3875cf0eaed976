"""Pooled greedy: play the action that looks best by the mean loss of each state.

    argmin_a sum_s P(s|a) (sum(s) + 1)/(count(s) + 2)        exploring uniformly with probability `exploration`

The first thing a practitioner would try; ours, not the paper's. Of equals (up to rounding) the first is played. With a
window, counts are exposed counts (`exposure`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats, check_number
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.mean_losses import (
    MeanLosses,
    advance_means,
    learn_mean,
    mean_loss,
    read_means,
    see_mean,
    start_means,
)


@dataclass(frozen=True)
class PooledGreedy(Learner):
    """Play the action that looks best by the mean loss of each state.

    Parameters
    ----------
    forgetting : float
        The share of the past that each round keeps, in (0, 1].
    exploration : float
        The share of uniform play.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.PooledGreedy(exploration=0.05)
    PooledGreedy(forgetting=1.0, exploration=0.05)
    """

    forgetting: float = 1.0
    exploration: float = 0.0
    knows_contexts: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("values",)
    exposure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.exploration, "exploration", 0, 1)

    @property
    def runs_live(self) -> bool:
        return True

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0

    def start(self, problem: Problem) -> "PooledGreedyMemory":
        means = start_means(problem, problem.n_states, self.forgetting)
        return PooledGreedyMemory(
            means, np.empty(problem.n_states), np.empty(problem.n_actions), float(self.exploration)
        )


class PooledGreedyMemory(NamedTuple):
    means: MeanLosses
    guesses: Floats
    values: Floats
    exploration: float


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    read_means(memory.means)
    for s in range(memory.guesses.size):
        memory.guesses[s] = mean_loss(memory.means, s)
    values = memory.values[: out.size]
    combine(rows.columns, memory.guesses, values)
    out[:] = memory.exploration / out.size
    out[lowest_index(values, TIE)] += 1.0 - memory.exploration


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    pass


def see(memory: Any, played: Any, saved: Any) -> None:
    see_mean(memory.means, played.state, played)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    learn_mean(memory.means, played.state, played, loss, sign)


def advance(memory: Any, t: int, now: float) -> None:
    advance_means(memory.means, t, now)


add_rule(PooledGreedyMemory, policy, remember, learn, see, advance)
