"""Pooled Thompson sampling: draw the mean of each state from its posterior and play the action best by the draw.

    g_j(s) ~ Beta(1 + losses(s), 1 + counts(s) - losses(s))    j = 1 … samples; sums as in `pooled_means`
    x(a) = (1 - mixing) · share of the j whose best action is a + mixing/K

One draw of several, at random, is Thompson sampling whatever their number; with several, the probability of an action
given the draws is known, and that is what a decision records. The draws follow from a key and the round alone.

Source: the rule that a practitioner would try first. Differs from the textbook: it learns through states, and it
forgets by the round played.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, Ints, check_count, check_number
from statepool.compiling import compiled
from statepool.kernels import TIE, combine, lowest_index
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.maps import Maps, bar_values, draw_evenly, spread_evenly
from statepool.learners.parts.chance import beta, source_of
from statepool.learners.parts.pooled_means import carry_nothing, loss_and_count, mean_sums
from statepool.learners.sums import Sum, Sums, lay_out, start_clock


@dataclass(frozen=True)
class PooledThompson(Learner):
    """Draw the mean of each state from its posterior and play the action best by the draw.

    `forgetting` is what a round keeps of the past; `mixing` the share of uniform play; `samples` how many draws a
    decision chooses among, so that its probability is known.

    >>> import statepool as sp
    >>> sp.PooledThompson(forgetting=0.999).forgetting
    0.999
    """

    forgetting: float = 1.0
    mixing: float = 0.0
    samples: int = 16
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.forgetting, "forgetting", 0, 1, open_low=True)
        check_number(self.mixing, "mixing", 0, 1)
        check_count(self.samples, "samples")

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        return mean_sums(self.forgetting)

    def start(self, problem: Problem) -> "ThompsonMemory":
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        key = problem.stream.side_generator().integers(1 << 63, size=1).astype(np.uint64)
        return ThompsonMemory(
            sums, start_clock(), of["losses"][0], of["counts"][0], problem.maps, np.empty(problem.n_states),
            np.empty(problem.n_actions), np.zeros(1, np.int64), self.samples, key, float(self.mixing),
        )  # fmt: skip


class ThompsonMemory(NamedTuple):
    sums: Sums
    clock: Any
    losses: Floats
    counts: Floats
    maps: Maps
    guesses: Floats
    values: Floats
    round: Ints
    samples: int
    key: NDArray[np.uint64]
    mixing: float


@compiled
def _winner(memory: Any, t: int, sample: int) -> int:
    n_states = memory.guesses.size
    for s in range(n_states):
        lost = memory.losses[s]
        source = source_of(memory.key[0], t, sample * n_states + s)
        memory.guesses[s] = beta(source, 1.0 + lost, 1.0 + max(memory.counts[s] - lost, 0.0))
    combine(memory.maps.columns[memory.maps.now[0]], memory.guesses, memory.values)
    bar_values(memory.maps, memory.values)
    return lowest_index(memory.values, TIE)


def prepare(memory: Any, t: int) -> None:
    memory.round[0] = t


def rest(memory: Any, out: Any) -> None:
    spread_evenly(memory.maps, memory.mixing, out)
    for sample in range(memory.samples):
        out[_winner(memory, memory.round[0], sample)] += (1.0 - memory.mixing) / memory.samples


def pick(memory: Any, u: float) -> int:
    """The winner of one draw: the others are not needed for it."""
    if u < memory.mixing:
        return draw_evenly(memory.maps, u / memory.mixing, memory.values)
    place = (u - memory.mixing) / (1.0 - memory.mixing)
    return _winner(memory, memory.round[0], min(int(place * memory.samples), memory.samples - 1))


add_additive_rule(ThompsonMemory, prepare=prepare, rest=rest, pick=pick, carry=carry_nothing, lesson=loss_and_count)
