"""Ledgers of the learners that play on mean losses of states (pooled greedy, best-state), or on nothing (uniform)."""

import numpy as np

from statepool.checks import Floats
from statepool.learners.learner import Learner
from statepool.learners.pooled_greedy import greedy_action
from statepool.live.exact import ExactSums
from statepool.live.ledgers.ledger import Ledger, Record
from statepool.live.versions import Part, spread


class MeansLedger(Ledger):
    def __init__(self, learner: Learner, n_states: int) -> None:
        super().__init__(learner, n_states)
        self.sums["losses"] = ExactSums(n_states)
        self.sums["counts"] = ExactSums(n_states)

    def _learn(self, record: Record, play: int, state: int, loss: float, sign: int) -> None:
        self.sums["losses"].add(state, play, loss, sign)
        self.sums["counts"].add(state, play, 1.0, sign)


class GreedyLedger(MeansLedger):
    def prepare(self, plays: int) -> None:
        self.memory.means.sums[:] = self.sums["losses"].read(plays)
        self.memory.means.counts[:] = self.sums["counts"].read(plays)
        self.memory.best[0] = -1

    def parts(self, play: Floats) -> tuple[Part, ...]:
        """Exploring comes first."""
        greedy = Part(1.0, place=int(greedy_action(self.memory)))
        even = np.full(play.size, 1 / play.size)
        return (spread(even, self.memory.exploration), greedy) if self.memory.exploration else (greedy,)


class BestStateLedger(MeansLedger):
    def prepare(self, plays: int) -> None:
        losses, counts = self.sums["losses"].read(plays), self.sums["counts"].read(plays)
        # A state that no action leads to any more cannot be played for.
        unseen = np.where(self.P.max(axis=0) > 0, 0.5, 2.0)
        self.memory.means[:] = np.where((counts > 0) & (unseen < 1), losses / np.maximum(counts, 1), unseen)


class UniformLedger(Ledger):
    def prepare(self, plays: int) -> None:
        pass

    def _learn(self, record: Record, play: int, state: int, loss: float, sign: int) -> None:
        pass
