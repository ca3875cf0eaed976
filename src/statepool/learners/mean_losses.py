"""Greedy play, UCB and Thompson sampling on mean losses: of states (pooled), or of actions alone. Losses are in [0, 1].

    sums(u) += X,  squares(u) += X²,  counts(u) += 1        each fading by the round played; u a state, or an action
    greedy      argmin_a v(a)                               exploring with probability `exploration`
    Thompson    the same by draws of the means from their posterior, several for each decision
    UCB         argmin_a mean - sqrt(log t/n · min(1/4, variance + sqrt(2 log t/n)))

with v(a) = sum_s P(s|a) (sum(s) + 1)/(count(s) + 2) if pooled, and (sum(a) + 1)/(count(a) + 2) by action. By action,
with contexts, each pair of a context and an action is counted by itself. Of equals the first is played.

With a window, losses are measured from the default and counts are exposed counts (`exposure`), so reports are learnt as
they come. Draws follow from a key and the round alone; given the draws, the probability of an action is known.

Source: the rules everybody tries first, not the paper's; UCB1-Tuned is of Auer, Cesa-Bianchi and Fischer 2002.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, check_count, check_number
from statepool.compiling import compiled_inside, compiled_part
from statepool.kernels import TIE, combine, log, lowest_index
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.draws import beta, source_of
from statepool.learners.exposure import (
    MARK,
    READING,
    Clock,
    coefficient,
    note_report,
    raised,
    read_exposure,
    set_time,
    start_clock,
    weigh_decision,
)  # fmt: skip

NO_KEY: NDArray[np.uint64] = np.zeros(1, np.uint64)
"""Of learners that draw nothing."""


class MeanLosses(NamedTuple):
    """One number for each unit: a state, or a pair of a context and an action."""

    clock: Clock
    counts: Floats
    """[k, unit]: decisions; with a window also those that fade with each τ."""
    sums: Floats
    squares: Floats
    """Both of losses less the default."""
    default: float
    """0 without a window."""
    n_actions: int
    pooled: bool


class Means(Learner):
    """What these learners have in common."""

    knows_contexts: ClassVar[bool] = True
    runs_live: ClassVar[bool] = True
    exposure: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("guesses", "values")
    pooled: ClassVar[bool] = False

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0

    def _start(self, problem: Problem, forgetting: float = 1.0) -> tuple[MeanLosses, Floats, Floats]:
        """Nothing seen, unless something is known beforehand; and room for guesses of units and values of actions."""
        K, S = problem.n_actions, problem.n_states
        n_units = S if self.pooled else problem.n_contexts * K
        clock = start_clock(problem, (forgetting,), S if self.pooled else 0)
        default = 0.0 if problem.window is None else problem.default
        sums, squares = np.zeros((2, n_units))
        means = MeanLosses(clock, np.zeros((clock.curve.shape[1], n_units)), sums, squares, default, K, self.pooled)
        if problem.cells is not None and not self.pooled:
            known, counts = problem.cells
            usual = 0.0 if problem.prior is None else problem.prior[0]
            mean = np.clip((problem.P * np.where(counts > 0, known, usual)).sum(axis=-1).ravel(), 0.0, 1.0)
            count = np.tile(counts.sum(axis=1), problem.n_contexts)
            means.counts[0] += count
            sums += count * (mean - default)
            squares += count * ((mean - default) ** 2 + mean * (1 - mean))  # as of outcomes of 0 and 1
        return means, np.empty(S if self.pooled else 0), np.empty(K)


@compiled_inside
def _unit(means: Any, context: int, action: int, state: int) -> int:
    """Whose mean a decision tells about; -1 for an action that is not in the catalogue."""
    if means.pooled:
        return state
    return context * means.n_actions + action if action >= 0 else -1


@compiled_inside
def _count(means: Any, unit: int, sign: float) -> None:
    """Count the decision at hand."""
    fading = means.clock.fading
    for k in range(means.counts.shape[0]):
        means.counts[k, unit] += sign * fading[MARK, 0] * (fading[MARK, k] if k > 0 else 1.0)


@compiled_inside
def count_of(means: Any, unit: int) -> float:
    """How many outcomes are known of a unit; with a window its exposed count."""
    total = 0.0
    for k in range(means.counts.shape[0]):
        total += coefficient(means.clock, unit, k) * means.counts[k, unit]
    return max(total * means.clock.fading[READING, 0], 0.0)


@compiled_inside
def loss_of(means: Any, unit: int, count: float) -> float:
    """The sum of its losses; with a window, of what is expected of them."""
    total = count * means.default + means.sums[unit] * means.clock.fading[READING, 0]
    return min(max(total, 0.0), count) if means.default != 0.0 else total


@compiled_inside
def _variance(means: Any, unit: int, count: float, loss: float) -> float:
    """The variance of one loss, which for losses of 0 and 1 is m (1 - m) of their mean m; two rounds are of that."""
    mean = loss / count
    largest = mean * (1.0 - mean)
    shift = mean - means.default
    spread = max(means.squares[unit] * means.clock.fading[READING, 0] - count * shift * shift, 0.0)
    return min((spread + 2.0 * largest) / (count + 2.0), largest)


@compiled_part
def _draw_mean(means: Any, unit: int, source: Any) -> float:
    """A draw from the posterior: Beta, with as many outcomes of 0 and 1 as the variance of the losses is worth.

    For losses of 0 and 1 that is Beta(1 + sum, 1 + count - sum). Revenue varies less than its bounds allow: n losses of
    variance v and mean m tell as much as n m (1 - m)/v of 0 and 1.
    """
    count = count_of(means, unit)
    loss = loss_of(means, unit, count)
    if 0.0 < loss < count:
        mean = loss / count
        worth = mean * (1.0 - mean) / _variance(means, unit, count, loss)
        count, loss = count * worth, loss * worth
    return beta(source, 1.0 + loss, 1.0 + max(count - loss, 0.0))


@compiled_part
def _best(memory: Any, rows: Any, key: Any, t: int, sample: int, n: int) -> int:
    """The position of the best of n actions: by the means, or by a draw of them (`sample` from 0 on)."""
    means, values = memory.means, memory.values[:n]
    guesses = memory.guesses if means.pooled else values
    for i in range(guesses.size):
        unit = i if means.pooled else _unit(means, rows.context, rows.actions[i], 0)
        guesses[i] = 0.5
        if unit >= 0 and sample >= 0:
            guesses[i] = _draw_mean(means, unit, source_of(key, t, sample * guesses.size + i))
        elif unit >= 0:
            count = count_of(means, unit)
            guesses[i] = (loss_of(means, unit, count) + 1.0) / (count + 2.0)
    if means.pooled:
        combine(rows.columns, guesses, values)
    return lowest_index(values, TIE)


class MeansMemory(NamedTuple):
    means: MeanLosses
    guesses: Floats
    values: Floats
    key: NDArray[np.uint64]
    samples: int
    """How many draws a decision chooses among; 0 to play by the means."""
    exploration: float


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    read_exposure(memory.means.clock)
    out[:] = memory.exploration / out.size
    n = max(memory.samples, 1)
    for i in range(n):
        sample = i if memory.samples > 0 else -1
        out[_best(memory, rows, memory.key[0], t, sample, out.size)] += (1.0 - memory.exploration) / n


class UCBMemory(NamedTuple):
    means: MeanLosses
    guesses: Floats
    values: Floats
    played: Floats
    """How often each unit was played. Among actions without outcomes the one least played comes first."""


def ucb_policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    means, values, total = memory.means, memory.values[: out.size], 0.0
    read_exposure(means.clock)
    for a in range(out.size):
        unit = _unit(means, rows.context, rows.actions[a], 0)
        total += count_of(means, unit) if unit >= 0 else 0.0
    for a in range(out.size):
        unit = _unit(means, rows.context, rows.actions[a], 0)
        count = count_of(means, unit) if unit >= 0 else 0.0
        if unit < 0:
            values[a] = 1.0
        elif count < 0.5:
            values[a] = memory.played[unit] - 1e9
        else:
            loss, term = loss_of(means, unit, count), log(max(total, 2.0)) / count
            spread = _variance(means, unit, count, loss)
            values[a] = loss / count - np.sqrt(term * min(0.25, spread + np.sqrt(2.0 * term)))
    out[:] = 0.0
    out[lowest_index(values, TIE)] = 1.0


def see(memory: Any, played: Any, saved: Any) -> None:
    _see(memory.means, played)


@compiled_part
def _see(means: Any, played: Any) -> None:
    """With a window a decision counts from now on."""
    unit = _unit(means, played.context, played.action, played.state)
    if unit >= 0 and means.clock.window > 0.0:
        weigh_decision(means.clock, played.t, played.time)
        _count(means, unit, 1.0)


def ucb_see(memory: Any, played: Any, saved: Any) -> None:
    _see(memory.means, played)
    if played.action >= 0:
        memory.played[_unit(memory.means, played.context, played.action, 0)] += 1.0


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    _learn(memory.means, played, loss, sign)


@compiled_part
def _learn(means: Any, played: Any, loss: float, sign: float) -> None:
    unit = _unit(means, played.context, played.action, played.state)
    if unit >= 0:
        weigh_decision(means.clock, played.t, played.time)
        if means.clock.window == 0.0:
            _count(means, unit, sign)
        weight, news = sign * means.clock.fading[MARK, 0], loss - means.default
        means.sums[unit] += weight * news
        means.squares[unit] += weight * news * news
        note_report(means.clock, played.time, played.wait, played.state, sign)


def advance(memory: Any, t: int, now: float) -> None:
    _advance(memory.means, t, now)


@compiled_part
def _advance(means: Any, t: int, now: float) -> None:
    """Where the base of a weight is raised, sums follow: that of the memory (0) is in all of them, τ_k in counts k."""
    if set_time(means.clock, t, now):
        for i in range(means.clock.fading.shape[1]):
            factor = raised(means.clock, i)
            for unit in range(means.sums.size if factor != 1.0 else 0):
                if i == 0:
                    means.sums[unit] *= factor
                    means.squares[unit] *= factor
                for k in range(means.counts.shape[0]):
                    if i in (0, k):
                        means.counts[k, unit] *= factor


add_rule(MeansMemory, policy, learn=learn, see=see, advance=advance)
add_rule(UCBMemory, ucb_policy, learn=learn, see=ucb_see, advance=advance)


@dataclass(frozen=True)
class PooledGreedy(Means):
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
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.exploration, "exploration", 0, 1)

    def start(self, problem: Problem) -> MeansMemory:
        return MeansMemory(*self._start(problem, self.forgetting), NO_KEY.copy(), 0, float(self.exploration))


@dataclass(frozen=True)
class PooledThompson(Means):
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
    pooled: ClassVar[bool] = True
    policy_varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)
        check_count(self.samples, "samples")

    def start(self, problem: Problem) -> MeansMemory:
        means = self._start(problem, self.forgetting)
        return MeansMemory(*means, problem.stream.key(), self.samples, float(self.mixing))


@dataclass(frozen=True)
class ActionGreedy(Means):
    """ε-greedy by action: play the action with the least mean loss, and explore now and then.

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

    def start(self, problem: Problem) -> MeansMemory:
        return MeansMemory(*self._start(problem), NO_KEY.copy(), 0, float(self.exploration))


@dataclass(frozen=True)
class ActionUCB(Means):
    """UCB1-Tuned by action: play the action whose mean loss less a confidence bound is least.

    An action without outcomes comes first.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.ActionUCB()
    ActionUCB()
    """

    def start(self, problem: Problem) -> UCBMemory:
        return UCBMemory(*self._start(problem), np.zeros(problem.n_contexts * problem.n_actions))


@dataclass(frozen=True)
class ActionThompson(Means):
    """Thompson sampling by action: draw the mean loss of each action from its posterior and play the least.

    The posterior is Beta(1 + sum, 1 + count - sum) for losses of 0 and 1. Other losses, such as revenue, count as many
    times as their variance says.

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

    def start(self, problem: Problem) -> MeansMemory:
        return MeansMemory(*self._start(problem), problem.stream.key(), self.samples, 0.0)
