"""Naive sharing: pooled like State-EXP3, but divided by how likely the state is under uniform play.

    L(a) += P(s|a) · X / mean_b P(s|b)

Biased as soon as play is not uniform: kept to show what the right denominator is worth.
Source: paper's baseline study. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_CHARGE, dot
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.maps import Maps, spread_evenly, varies
from statepool.learners.parts.weights import Weights, charge, distribution, draw, refresh_for, set_totals, start_weights
from statepool.learners.sums import Newcomers, Sum, Sums, lay_out, start_clock, start_newcomers


@dataclass(frozen=True)
class NaiveSharing(Learner):
    """Pooled with the wrong denominator, uniform play's, to show what the right one is worth.

    >>> import statepool as sp
    >>> sp.NaiveSharing(rate=0.1)
    NaiveSharing(rate=0.1, mixing=0.0)
    """

    rate: float | None = None
    mixing: float = 0.0
    carried_by_request: ClassVar[tuple[int, ...]] = (0,)
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        return (Sum("charges", told_by="outcome"),)

    def start(self, problem: Problem) -> "NaiveMemory":
        rate = problem.rate(self.rate, width=problem.n_states)
        weights = start_weights(problem.n_actions, rate, self.mixing)
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        return NaiveMemory(
            sums, start_clock(), of["charges"][0], weights, problem.maps, problem.maps.columns[0].mean(axis=1),
            np.empty(problem.n_actions), problem.newcomers or start_newcomers(problem.n_actions),
        )  # fmt: skip


class NaiveMemory(NamedTuple):
    sums: Sums
    clock: Any
    charges: Floats
    weights: Weights
    maps: Maps
    shares: Floats
    """The mean of P(s|a) over the actions that may be played, by state."""
    room: Floats
    newcomers: Newcomers


def prepare(memory: Any, t: int) -> None:
    refresh_for(memory.weights, 0, memory.maps)


def rest(memory: Any, out: Any) -> None:
    distribution(memory.weights, 0, out)


def pick(memory: Any, u: float) -> int:
    return draw(memory.weights, 0, u)


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    ticket[0] = memory.shares[state]


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    out[0] = min(loss / ticket[0], LARGEST_CHARGE) if loss > 0.0 else 0.0


def absorb(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    if not varies(memory.maps):
        charge(memory.weights, 0, memory.maps.columns[memory.maps.now[0]][state], memory.sums.outcome.lesson[0])


def read_rows(memory: Any) -> None:
    columns = memory.maps.columns[memory.maps.now[0]]
    spread_evenly(memory.maps, 1.0, memory.room)
    for s in range(memory.shares.size):
        memory.shares[s] = dot(memory.room, columns[s])
    set_totals(memory.weights, columns, memory.charges, memory.newcomers.handicap)


add_additive_rule(
    NaiveMemory, prepare=prepare, rest=rest, pick=pick, carry=carry, lesson=lesson, absorb=absorb,
    read_rows=read_rows, rebuild=read_rows,
)  # fmt: skip
