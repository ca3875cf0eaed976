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

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats
from statepool.compiling import compiled_inside, compiled_part
from statepool.kernels import TIE, combine, log, lowest_index
from statepool.learners import exposure
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.draws import beta, source_of
from statepool.learners.parts import settled

MEAN, UCB = 0, -1
"""In place of a number of draws: play by the means, or by confidence bounds."""


class MeanLosses(NamedTuple):
    """One number for each unit: a state, or a pair of a context and an action."""

    clock: exposure.Clock
    counts: Floats
    """[k, unit]: decisions; with a window also those that fade with each τ."""
    sums: Floats
    squares: Floats
    """Both of losses less the default."""
    default: float
    """0 without a window."""
    n_actions: int
    pooled: bool
    guesses: Floats
    """Room for the means of states, as they are or as drawn."""
    values: Floats
    """Room for the mean losses of the actions on offer."""
    played: Floats
    """How often each unit was played. Among actions without outcomes UCB plays the least played one."""
    key: NDArray[np.uint64]
    """Of the draws."""
    samples: int
    """How many draws a decision chooses among, or MEAN, or UCB."""
    exploration: float


class Means(Learner):
    """What these learners have in common."""

    knows_contexts: ClassVar[bool] = True
    runs_live: ClassVar[bool] = True
    exposure: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("guesses", "values")
    pooled: ClassVar[bool] = False
    forgetting: float = 1.0
    exploration: float = 0.0
    mixing: float = 0.0
    """The same by the name that learners have for it whose policy is random anyway."""
    samples: int = MEAN

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0

    def start(self, problem: Problem) -> MeanLosses:
        """Nothing seen, unless something is known beforehand."""
        K, S = problem.n_actions, problem.n_states
        n_units = S if self.pooled else problem.n_contexts * K
        clock = exposure.start_clock(problem, (self.forgetting,), S if self.pooled else 0)
        default = 0.0 if problem.window is None else problem.default
        sums, squares = np.zeros((2, n_units))
        counts = np.zeros((clock.curve.shape[1], n_units))
        if problem.cells is not None and not self.pooled:
            known, given = problem.cells
            usual = 0.0 if problem.prior is None else problem.prior[0]
            mean = np.clip((problem.P * np.where(given > 0, known, usual)).sum(axis=-1).ravel(), 0.0, 1.0)
            count = np.tile(given.sum(axis=1), problem.n_contexts)
            counts[0] += count
            sums += count * (mean - default)
            squares += count * ((mean - default) ** 2 + mean * (1 - mean))  # as of outcomes of 0 and 1
        return MeanLosses(
            clock, counts, sums, squares, default, K, self.pooled, np.empty(S if self.pooled else 0), np.empty(K),
            np.zeros(n_units), problem.stream.key(), self.samples, float(max(self.exploration, self.mixing)),
        )  # fmt: skip

    def grow(self, memory: MeanLosses, before: Problem, after: Problem) -> MeanLosses:
        """Counts stay with their pair of a context and an action."""
        grown: MeanLosses = super().grow(memory, before, after)
        if self.pooled:
            return grown
        firsts = after.n_actions * np.arange(before.n_contexts)
        kept = (firsts[:, None] + np.arange(before.n_actions)).ravel()
        fresh = self.start(after)
        for name in ("counts", "sums", "squares", "played"):
            counted = getattr(grown, name)
            counted[...] = getattr(fresh, name)
            counted[..., kept] = getattr(memory, name)
        return grown


@compiled_inside
def _unit(means: Any, context: int, action: int, state: int) -> int:
    """Whose mean a decision informs; -1 for an action that is not in the catalogue."""
    if means.pooled:
        return state
    return context * means.n_actions + action if action >= 0 else -1


@compiled_inside
def _count(means: Any, unit: int, sign: float) -> None:
    """Count the decision at hand."""
    fading = means.clock.fading
    for k in range(means.counts.shape[0]):
        means.counts[k, unit] += sign * fading[exposure.MARK, 0] * (fading[exposure.MARK, k] if k > 0 else 1.0)


@compiled_inside
def count_of(means: Any, unit: int) -> float:
    """How many outcomes are known of a unit; with a window its exposed count."""
    total = 0.0
    for k in range(means.counts.shape[0]):
        total += exposure.coefficient(means.clock, unit, k) * means.counts[k, unit]
    return max(total * means.clock.fading[exposure.READING, 0], 0.0)


@compiled_inside
def loss_of(means: Any, unit: int, count: float) -> float:
    """The sum of its losses; with a window, of what is expected of them."""
    total = count * means.default + means.sums[unit] * means.clock.fading[exposure.READING, 0]
    return min(max(total, 0.0), count) if means.default != 0.0 else total


@compiled_inside
def _variance(means: Any, unit: int, count: float, loss: float) -> float:
    """The variance of one loss, which for losses of 0 and 1 is m (1 - m) of their mean m; two rounds are of that."""
    mean = loss / count
    largest = mean * (1.0 - mean)
    shift = mean - means.default
    spread = max(means.squares[unit] * means.clock.fading[exposure.READING, 0] - count * shift * shift, 0.0)
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
def _best(memory: Any, rows: Any, t: int, sample: int, n: int) -> int:
    """The position of the best of n actions: by the means, or by a draw of them."""
    values = memory.values[:n]
    guesses = memory.guesses if memory.pooled else values
    for i in range(guesses.size):
        unit = i if memory.pooled else _unit(memory, rows.context, rows.actions[i], 0)
        guesses[i] = 0.5
        if unit >= 0 and memory.samples > 0:
            guesses[i] = _draw_mean(memory, unit, source_of(memory.key[0], t, sample * guesses.size + i))
        elif unit >= 0:
            count = count_of(memory, unit)
            guesses[i] = (loss_of(memory, unit, count) + 1.0) / (count + 2.0)
    if memory.pooled:
        combine(rows.columns, guesses, values)
    return lowest_index(values, TIE)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    exposure.read_exposure(memory.clock)
    out[:] = memory.exploration / out.size
    n = max(memory.samples, 1)
    for i in range(n):
        best = _most_hopeful(memory, rows, out.size) if memory.samples == UCB else _best(memory, rows, t, i, out.size)
        out[best] += (1.0 - memory.exploration) / n


@compiled_part
def _most_hopeful(memory: Any, rows: Any, n: int) -> int:
    """The position of the action of least lower confidence bound."""
    values, total = memory.values[:n], 0.0
    for a in range(n):
        unit = _unit(memory, rows.context, rows.actions[a], 0)
        total += count_of(memory, unit) if unit >= 0 else 0.0
    for a in range(n):
        unit = _unit(memory, rows.context, rows.actions[a], 0)
        count = count_of(memory, unit) if unit >= 0 else 0.0
        if unit < 0:
            values[a] = 1.0
        elif count < 0.5:
            values[a] = memory.played[unit] - 1e9
        else:
            loss, term = loss_of(memory, unit, count), log(max(total, 2.0)) / count
            spread = _variance(memory, unit, count, loss)
            values[a] = loss / count - np.sqrt(term * min(0.25, spread + np.sqrt(2.0 * term)))
    return lowest_index(values, TIE)


def see(memory: Any, played: Any, saved: Any) -> None:
    unit = _unit(memory, played.context, played.action, played.state)
    if unit >= 0:
        memory.played[unit] += 1.0
        if memory.clock.window > 0.0:  # a decision counts from now on
            exposure.weigh_decision(memory.clock, played.t, played.time)
            _count(memory, unit, 1.0)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    unit = _unit(memory, played.context, played.action, played.state)
    if unit >= 0:
        exposure.weigh_decision(memory.clock, played.t, played.time)
        if memory.clock.window == 0.0:
            _count(memory, unit, sign)
        weight, news = sign * memory.clock.fading[exposure.MARK, 0], loss - memory.default
        memory.sums[unit] += weight * news
        memory.squares[unit] += weight * news * news
        exposure.note_report(memory.clock, played.time, played.wait, played.state, sign)


def advance(memory: Any, t: int, now: float) -> None:
    # Where the base of a weight is raised, sums follow: that of the memory (0) is in all of them, τ_k in counts k.
    if exposure.set_time(memory.clock, t, now):
        for i in range(memory.clock.fading.shape[1]):
            factor = exposure.raised(memory.clock, i)
            for unit in range(memory.sums.size if factor != 1.0 else 0):
                if i == 0:
                    memory.sums[unit] *= factor
                    memory.squares[unit] *= factor
                for k in range(memory.counts.shape[0]):
                    if i in (0, k):
                        memory.counts[k, unit] *= factor


add_rule(MeanLosses, policy, learn=learn, see=see, advance=advance)


@settled
class PooledGreedy(Means):
    """Play the action that looks best by the mean loss of each state.

    >>> import statepool as sp
    >>> sp.PooledGreedy(exploration=0.05)
    PooledGreedy(forgetting=1.0, exploration=0.05)
    """

    forgetting: float = 1.0
    exploration: float = 0.0
    pooled: ClassVar[bool] = True


@settled
class PooledThompson(Means):
    """Draw the mean of each state from its posterior and play the action best by the draw.

    >>> import statepool as sp
    >>> sp.PooledThompson(forgetting=0.999).forgetting
    0.999
    """

    forgetting: float = 1.0
    mixing: float = 0.0
    samples: int = 16
    pooled: ClassVar[bool] = True
    policy_varies: ClassVar[bool] = True


@settled
class ActionGreedy(Means):
    """ε-greedy by action: play the action with the least mean loss, and explore now and then.

    >>> import statepool as sp
    >>> sp.ActionGreedy(exploration=0.1)
    ActionGreedy(exploration=0.1)
    """

    exploration: float = 0.05


@settled
class ActionUCB(Means):
    """UCB1-Tuned by action: play the action whose mean loss less a confidence bound is least.

    An action without outcomes comes first.

    >>> import statepool as sp
    >>> sp.ActionUCB()
    ActionUCB()
    """

    samples = UCB


@settled
class ActionThompson(Means):
    """Thompson sampling by action: draw the mean loss of each action from its posterior and play the least.

    The posterior is Beta(1 + sum, 1 + count - sum) for losses of 0 and 1. Other losses, such as revenue, count as many
    times as their variance says.

    >>> import statepool as sp
    >>> sp.ActionThompson()
    ActionThompson(samples=16)
    """

    samples: int = 16
    policy_varies: ClassVar[bool] = True
