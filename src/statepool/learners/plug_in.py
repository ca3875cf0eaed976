"""Plug-in: State-EXP3 with the map estimated from the pairs of earlier rounds.

    L(a) += P_hat(s|a) · X / q_hat(s)        P_hat and q_hat = x P_hat both as of the round played

Source: the paper's released study 2. Differs from the source: nothing. A ticket holds a number
an action, because the numerators of the round played are not recomputed.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from statepool.checks import check_number
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.map_counts import MapCounts, count_pair, estimate_column, start_counts
from statepool.learners.parts.weights import Weights, charge, distribution, draw, reach, refresh, start_weights
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class PlugIn(Learner):
    """`StateEXP3` with the map estimated from the pairs of earlier rounds; `smoothing` is added to counts.

    >>> import statepool as sp
    >>> sp.PlugIn(smoothing=0.1)
    PlugIn(smoothing=0.1, mixing=0.0, rate=None)
    """

    smoothing: float = 0.01
    mixing: float = 0.0
    rate: float | None = None

    def __post_init__(self) -> None:
        check_settings(self.rate, self.mixing)
        check_number(self.smoothing, "smoothing", 0, 1e9, open_low=True)

    def ticket_width(self, problem: Problem) -> int:
        return problem.n_actions

    def start(self, problem: Problem) -> "PlugInMemory":
        rate = problem.rate(self.rate, width=problem.n_states)
        counts = start_counts(problem.n_actions, problem.n_states, self.smoothing)
        return PlugInMemory(start_weights(problem.n_actions, rate, self.mixing), counts)


class PlugInMemory(NamedTuple):
    weights: Weights
    counts: MapCounts


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    estimate_column(memory.counts, state, ticket)
    ticket /= reach(memory.weights, 0, ticket)
    count_pair(memory.counts, action, state)


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    charge(memory.weights, 0, ticket, loss)


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(PlugInMemory, act, observe, update, play)
