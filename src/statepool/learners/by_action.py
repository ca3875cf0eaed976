"""Learners by action: the rivals that everybody knows, which ignore the states. Losses are in [0, 1].

A unit is an action, or with contexts a pair of a context and an action, whose outcomes are counted apart. With a window
they learn reports as they come, by exposed counts (`exposure`), so they are compared on equal terms.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, check_count, check_number
from statepool.compiling import compiled_inside
from statepool.kernels import TIE, log, lowest_index
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.draws import source_of
from statepool.learners.mean_losses import (
    MeanLosses,
    advance_means,
    count_of,
    draw_mean,
    give_means,
    learn_mean,
    loss_of,
    mean_loss,
    read_means,
    see_mean,
    start_means,
    variance,
)  # fmt: skip


class ByAction(Learner):
    """What the three have in common."""

    knows_contexts: ClassVar[bool] = True
    exposure: ClassVar[bool] = True

    @property
    def runs_live(self) -> bool:
        return True

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0


class ActionMemory(NamedTuple):
    means: MeanLosses
    """Of each context and action."""
    values: Floats
    n_actions: int


def _start(problem: Problem) -> ActionMemory:
    K = problem.n_actions
    means = start_means(problem, problem.n_contexts * K)
    if problem.cells is not None:
        known, counts = problem.cells
        usual = 0.0 if problem.prior is None else problem.prior[0]
        by_action = (problem.P * np.where(counts > 0, known, usual)).sum(axis=-1)
        give_means(means, by_action.ravel(), np.tile(counts.sum(axis=1), problem.n_contexts))
    return ActionMemory(means, np.empty(K), K)


@compiled_inside
def _unit(memory: Any, context: int, action: int) -> int:
    return context * memory.n_actions + max(action, 0) if action >= 0 else -1


@dataclass(frozen=True)
class ActionGreedy(ByAction):
    """ε-greedy: play the action with the least mean loss (sum + 1)/(count + 2), and explore now and then.

    Parameters
    ----------
    exploration : float
        The share of uniform play.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.ActionGreedy(exploration=0.1)
    ActionGreedy(exploration=0.1)
    """

    exploration: float = 0.05

    def __post_init__(self) -> None:
        check_number(self.exploration, "exploration", 0, 1)

    def start(self, problem: Problem) -> "ActionGreedyMemory":
        return ActionGreedyMemory(_start(problem), float(self.exploration))


class ActionGreedyMemory(NamedTuple):
    common: ActionMemory
    exploration: float


def greedy_policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    means, values = memory.common.means, memory.common.values[: out.size]
    read_means(means)
    for a in range(out.size):
        unit = _unit(memory.common, rows.context, rows.actions[a])
        values[a] = mean_loss(means, unit) if unit >= 0 else 0.5
    out[:] = memory.exploration / out.size
    out[lowest_index(values, TIE)] += 1.0 - memory.exploration


@dataclass(frozen=True)
class ActionUCB(ByAction):
    """UCB1-Tuned: play the action whose mean loss less a confidence bound is least.

    mean - sqrt(log t/n · min(1/4, variance + sqrt(2 log t/n))), and an action without outcomes first. Source: Auer,
    Cesa-Bianchi and Fischer 2002, Section 4.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.ActionUCB()
    ActionUCB()
    """

    def start(self, problem: Problem) -> "ActionUCBMemory":
        K = problem.n_actions
        return ActionUCBMemory(_start(problem), np.zeros(problem.n_contexts * K))


class ActionUCBMemory(NamedTuple):
    common: ActionMemory
    played: Floats
    """How often each unit was played. Among actions without outcomes the one least played comes first."""


@compiled_inside
def _optimistic(means: Any, unit: int, total: float) -> float:
    count = count_of(means, unit)
    loss = loss_of(means, unit, count)
    term = log(max(total, 2.0)) / count
    spread = variance(means, unit, count, loss)
    return loss / count - np.sqrt(term * min(0.25, spread + np.sqrt(2.0 * term)))


def ucb_policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    means, values = memory.common.means, memory.common.values[: out.size]
    read_means(means)
    total = 0.0
    for a in range(out.size):
        unit = _unit(memory.common, rows.context, rows.actions[a])
        total += count_of(means, unit) if unit >= 0 else 0.0
    for a in range(out.size):
        unit = _unit(memory.common, rows.context, rows.actions[a])
        if unit < 0:
            values[a] = 1.0
        elif count_of(means, unit) < 0.5:
            values[a] = memory.played[unit] - 1e9
        else:
            values[a] = _optimistic(means, unit, total)
    out[:] = 0.0
    out[lowest_index(values, TIE)] = 1.0


def ucb_see(memory: Any, played: Any, saved: Any) -> None:
    see(memory, played, saved)
    if played.action >= 0:
        memory.played[_unit(memory.common, played.context, played.action)] += 1.0


@dataclass(frozen=True)
class ActionThompson(ByAction):
    """Thompson sampling: draw the mean loss of each action from its posterior and play the least.

    The posterior is Beta(1 + sum, 1 + count - sum) for losses of 0 and 1; other losses, such as revenue, count as many
    times as their variance says (`mean_losses.draw_mean`).

    Parameters
    ----------
    samples : int
        How many draws a decision chooses among, so that its probability is known.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.ActionThompson()
    ActionThompson(samples=16)
    """

    samples: int = 16
    policy_varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(self.samples, "samples")

    def start(self, problem: Problem) -> "ActionThompsonMemory":
        return ActionThompsonMemory(_start(problem), problem.stream.key(), self.samples)


class ActionThompsonMemory(NamedTuple):
    common: ActionMemory
    key: NDArray[np.uint64]
    samples: int


def thompson_policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    means, values = memory.common.means, memory.common.values[: out.size]
    read_means(means)
    out[:] = 0.0
    for sample in range(memory.samples):
        for a in range(out.size):
            source = source_of(memory.key[0], t, sample * out.size + a)
            unit = _unit(memory.common, rows.context, rows.actions[a])
            values[a] = draw_mean(means, unit, source) if unit >= 0 else 0.5
        out[lowest_index(values, TIE)] += 1.0 / memory.samples


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    pass


@compiled_inside
def see(memory: Any, played: Any, saved: Any) -> None:
    if played.action >= 0:
        see_mean(memory.common.means, _unit(memory.common, played.context, played.action), played)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if played.action >= 0:
        learn_mean(memory.common.means, _unit(memory.common, played.context, played.action), played, loss, sign)


def advance(memory: Any, t: int, now: float) -> None:
    advance_means(memory.common.means, t, now)


def _see(memory: Any, played: Any, saved: Any) -> None:
    see(memory, played, saved)


add_rule(ActionGreedyMemory, greedy_policy, remember, learn, _see, advance)
add_rule(ActionUCBMemory, ucb_policy, remember, learn, ucb_see, advance)
add_rule(ActionThompsonMemory, thompson_policy, remember, learn, _see, advance)
