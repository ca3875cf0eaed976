"""CoinGraph: a stochastic feedback graph in place of pooling, to show what pooling is worth.

    L(a) += coin(a) · X / q(s)        coin(a) = 1 with probability P(s|a), drawn for each action by itself

An action is "seen" when its own coin falls. The mean over the coins is State-EXP3's estimate, the second moment under
the play is the number of states instead of the dimension v: pooling is Rao–Blackwell for this graph. With a
deterministic map the coins are certain and both are EXP3.G on cliques (Alon et al. 2015).

Source: ours, after the stochastic feedback graphs of Esposito et al. 2022 and Alon et al. 2015 (with known edges).
The coins come from a second stream, so the first stays paired with the other arms.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.learners.learner import Learner, Problem, check_settings
from statepool.learners.parts.weights import (
    Weights,
    charge_action,
    distribution,
    draw,
    reach,
    refresh,
    start_weights,
)
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class CoinGraph(Learner):
    """A stochastic feedback graph whose mean is pooling: what is charged is decided by coins.

    >>> import statepool as sp
    >>> sp.CoinGraph(rate=0.1)
    CoinGraph(rate=0.1)
    """

    rate: float | None = None

    def __post_init__(self) -> None:
        check_settings(self.rate)

    def start(self, problem: Problem) -> "CoinMemory":
        weights = start_weights(problem.n_actions, problem.rate(self.rate, width=problem.n_states))
        return CoinMemory(weights, problem.columns, problem.stream.side_generator())


class CoinMemory(NamedTuple):
    weights: Weights
    columns: Floats
    generator: np.random.Generator


def act(memory: Any, t: int, u: float) -> int:
    refresh(memory.weights, 0)
    return draw(memory.weights, 0, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    ticket[0] = reach(memory.weights, 0, memory.columns[state])


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    if loss > 0.0:
        for a in range(memory.columns.shape[1]):
            if memory.generator.random() < memory.columns[state, a]:
                charge_action(memory.weights, 0, a, loss / ticket[0])


def play(memory: Any, t: int, out: Any) -> None:
    distribution(memory.weights, 0, out)


add_rule(CoinMemory, act, observe, update, play)
