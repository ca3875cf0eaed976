"""Pooled greedy and pooled Thompson sampling: learn the mean loss of each state, play the action best by it.

    greedy      argmin_a sum_s P(s|a) (sum(s) + 1)/(count(s) + 2)        exploring with probability `exploration`
    Thompson    g_j(s) ~ Beta(1 + sum(s), 1 + count(s) - sum(s))         j = 1 … samples
                x(a) = (1 - mixing) · share of the j whose best action is a + mixing/K

The first two rules that a practitioner would try; not the paper's. Of equals (up to rounding) the first is played. With
a window, counts are exposed counts (`exposure`). With several draws the probability of an action given the draws is
known, and a decision records it. The draws follow from a key and the round alone.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, check_count, check_number
from statepool.compiling import compiled
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.draws import source_of
from statepool.learners.mean_losses import (
    MeanLosses,
    advance_means,
    draw_mean,
    learn_mean,
    mean_loss,
    read_means,
    see_mean,
    start_means,
)  # fmt: skip


class Pooled(Learner):
    """What the two have in common."""

    knows_contexts: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("values",)
    exposure: ClassVar[bool] = True

    @property
    def runs_live(self) -> bool:
        return True

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0


@dataclass(frozen=True)
class PooledGreedy(Pooled):
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

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.exploration, "exploration", 0, 1)

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


def greedy_policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    read_means(memory.means)
    for s in range(memory.guesses.size):
        memory.guesses[s] = mean_loss(memory.means, s)
    values = memory.values[: out.size]
    combine(rows.columns, memory.guesses, values)
    out[:] = memory.exploration / out.size
    out[lowest_index(values, TIE)] += 1.0 - memory.exploration


@dataclass(frozen=True)
class PooledThompson(Pooled):
    """Draw the mean of each state from its posterior and play the action best by the draw.

    Parameters
    ----------
    forgetting : float
        The share of the past that each round keeps, in (0, 1].
    mixing : float
        The share of uniform play.
    samples : int
        How many draws a decision chooses among, so that its probability is known.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.PooledThompson(forgetting=0.999).forgetting
    0.999
    """

    forgetting: float = 1.0
    mixing: float = 0.0
    samples: int = 16
    policy_varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)
        check_count(self.samples, "samples")

    def start(self, problem: Problem) -> "PooledThompsonMemory":
        means = start_means(problem, problem.n_states, self.forgetting)
        return PooledThompsonMemory(
            means, np.empty(problem.n_states), np.empty(problem.n_actions), problem.stream.key(), self.samples,
            float(self.mixing),
        )  # fmt: skip


class PooledThompsonMemory(NamedTuple):
    means: MeanLosses
    guesses: Floats
    values: Floats
    key: NDArray[np.uint64]
    samples: int
    mixing: float


@compiled
def _winner(memory: Any, rows: Any, t: int, sample: int, values: Any) -> int:
    n_states = memory.guesses.size
    for s in range(n_states):
        memory.guesses[s] = draw_mean(memory.means, s, source_of(memory.key[0], t, sample * n_states + s))
    combine(rows.columns, memory.guesses, values)
    return lowest_index(values, TIE)


def thompson_policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    read_means(memory.means)
    out[:] = memory.mixing / out.size
    for sample in range(memory.samples):
        best = _winner(memory, rows, t, sample, memory.values[: out.size])
        out[best] += (1.0 - memory.mixing) / memory.samples


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    pass


def see(memory: Any, played: Any, saved: Any) -> None:
    see_mean(memory.means, played.state, played)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    learn_mean(memory.means, played.state, played, loss, sign)


def advance(memory: Any, t: int, now: float) -> None:
    advance_means(memory.means, t, now)


add_rule(PooledGreedyMemory, greedy_policy, remember, learn, see, advance)
add_rule(PooledThompsonMemory, thompson_policy, remember, learn, see, advance)
