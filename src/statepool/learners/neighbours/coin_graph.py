"""CoinGraph: a stochastic feedback graph in place of pooling, to show what pooling is worth.

    L(a) += coin(a) · X / q(s)        coin(a) = 1 with probability P(s|a), drawn for each action by itself

An action is "seen" when its own coin falls. The mean over the coins is State-EXP3's estimate, the second moment under
the policy is the number of states instead of the dimension v: pooling is Rao–Blackwell for this graph. With a
deterministic map the coins are certain and both are EXP3.G on cliques (Alon et al. 2015).

Source: ours, after the stochastic feedback graphs of Esposito et al. 2022 and Alon et al. 2015 (with known edges).
The coins come from a second stream, so the first stays paired with the other arms.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.kernels import LARGEST_ESTIMATE, softmin
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule


class CoinMemory(NamedTuple):
    totals: Floats
    """L: the cumulative loss estimates, by action."""
    columns: Floats
    generator: np.random.Generator
    rate: float


@parts.settled
class CoinGraph(Learner):
    """A stochastic feedback graph whose mean is pooling: coins decide which actions learn from an outcome.

    >>> import statepool as sp
    >>> sp.learners.CoinGraph(rate=0.1)
    CoinGraph(rate=0.1)
    """

    rate: float | None = None

    def start(self, problem: Problem) -> CoinMemory:
        rate = problem.rate(self.rate, width=problem.n_states)
        return CoinMemory(np.zeros(problem.n_actions), problem.columns, problem.stream.side_generator(), rate)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    softmin(memory.totals, memory.rate, out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if loss > 0.0:
        for a in range(memory.totals.size):
            if memory.generator.random() < memory.columns[played.state, a]:
                memory.totals[a] += min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(CoinMemory, policy, parts.remember_state, learn)
