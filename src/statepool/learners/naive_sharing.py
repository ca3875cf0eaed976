"""Naive sharing: pooled like State-EXP3, but divided by how likely the state is under uniform play.

    L(a) += P(s|a) · X / mean_b P(s|b)

Biased as soon as play is not uniform: kept to show what the right denominator is worth.
Source: paper's baseline study. Differs from the source: nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import LARGEST_CHARGE
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.weights import Weights, charge, distribution, draw, refresh, set_totals, start_weights
from statepool.learners.sums import Newcomers, Sum, Sums, lay_out, start_clock, start_newcomers


@dataclass(frozen=True)
class NaiveSharing(Learner):
    rate: float | None = None
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)

    def sums(self) -> tuple[Sum, ...]:
        return (Sum("charges", told_by="outcome"),)

    def start(self, problem: Problem) -> "NaiveMemory":
        rate = problem.rate(self.rate, width=problem.n_states)
        weights = start_weights(problem.n_actions, rate, self.mixing)
        sums, of = lay_out(self.sums(), problem.n_states, problem.n_actions)
        return NaiveMemory(
            sums, start_clock(), of["charges"][0], weights, problem.columns, problem.columns.mean(axis=1),
            problem.newcomers or start_newcomers(problem.n_actions),
        )  # fmt: skip


class NaiveMemory(NamedTuple):
    sums: Sums
    clock: Any
    charges: Floats
    weights: Weights
    columns: Floats
    shares: Floats
    newcomers: Newcomers


def prepare(memory: Any, t: int) -> None:
    refresh(memory.weights, 0)


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
    charge(memory.weights, 0, memory.columns[state], memory.sums.outcome.lesson[0])


def rebuild(memory: Any) -> None:
    set_totals(memory.weights, memory.columns, memory.charges, memory.newcomers.handicap)


add_additive_rule(
    NaiveMemory, prepare=prepare, rest=rest, pick=pick, carry=carry, lesson=lesson, absorb=absorb,
    rebuild=rebuild,
)  # fmt: skip
