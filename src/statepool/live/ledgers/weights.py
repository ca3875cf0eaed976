"""Ledgers of the learners that are exponential weights on L = P G: State-EXP3 and naive sharing."""

import numpy as np

from statepool.checks import Floats
from statepool.kernels import combine, lowest
from statepool.learners.learner import Learner
from statepool.learners.state_exp3 import StateEXP3
from statepool.live.exact import ExactSums
from statepool.live.ledgers.ledger import Ledger, Record, charge_of, read


class WeightsLedger(Ledger):
    """G, one number a state."""

    def __init__(self, learner: Learner, n_states: int) -> None:
        super().__init__(learner, n_states)
        self.sums["charges"] = ExactSums(n_states)

    def prepare(self, plays: int) -> None:
        weights = self.memory.weights
        totals = weights.totals[0]
        combine(self.memory.columns, self._charges(plays), totals)
        totals += self.handicaps
        weights.references[0] = lowest(totals)
        weights.changed[0] = True

    def _charges(self, plays: int) -> Floats:
        return self.sums["charges"].read(plays)


class StateLedger(WeightsLedger):
    """Charges loss / q; with groups, q is of the group."""

    learner: StateEXP3

    def record(self, q: Floats) -> Record:
        return super().record(np.bincount(self.memory.groups, q)[self.memory.groups])

    def _charges(self, plays: int) -> Floats:
        return np.asarray(np.bincount(self.memory.groups, super()._charges(plays)), np.float64)

    def _learn(self, record: Record, play: int, state: int, loss: float, sign: int) -> None:
        q = read(record, "q")[state]
        if loss > 0 and q > 0:
            self.sums["charges"].add(state, play, charge_of(loss, q), sign)


class NaiveLedger(WeightsLedger):
    """Charges loss / the state's share under uniform play."""

    def record(self, q: Floats) -> Record:
        return super().record(q) | {"shares": self.memory.shares.tobytes()}

    def _learn(self, record: Record, play: int, state: int, loss: float, sign: int) -> None:
        share = read(record, "shares")[state]
        if share > 0:
            self.sums["charges"].add(state, play, charge_of(loss, share), sign)
