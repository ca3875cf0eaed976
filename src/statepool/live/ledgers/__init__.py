"""The learners that can run live, each with its ledger. Adding one is a file and a line here."""

from statepool.learners import BestState, NaiveSharing, PooledGreedy, SelfTuned, StateEXP3, Uniform
from statepool.learners.learner import Learner
from statepool.live.ledgers.ledger import Ledger, Record
from statepool.live.ledgers.means import BestStateLedger, GreedyLedger, UniformLedger
from statepool.live.ledgers.self_tuned import SelfTunedLedger
from statepool.live.ledgers.weights import NaiveLedger, StateLedger

LEDGERS: dict[type[Learner], type[Ledger]] = {
    BestState: BestStateLedger,
    NaiveSharing: NaiveLedger,
    PooledGreedy: GreedyLedger,
    SelfTuned: SelfTunedLedger,
    StateEXP3: StateLedger,
    Uniform: UniformLedger,
}


def open_ledger(learner: Learner, n_states: int) -> Ledger:
    """A fresh ledger; a learner that cannot run live is refused."""
    kind = type(learner)
    if kind not in LEDGERS:
        known = ", ".join(sorted(each.__name__ for each in LEDGERS))
        raise ValueError(
            f"learner: {kind.__name__} cannot run live, expected one that is all sums over states: {known}"
        )
    if getattr(learner, "rate", 0.0) is None:
        raise ValueError(f"learner: {kind.__name__} has no rate, expected one: a live pool has no horizon to set it by")
    if getattr(learner, "copies", 1) != 1:
        raise ValueError("learner: has copies, expected copies=1: live outcomes keep no order to interleave by")
    if getattr(learner, "caution", 0.0) != 0.0:
        raise ValueError("learner: has caution, expected caution=0: live charges are not biased low")
    if getattr(learner, "forgetting", 1.0) != 1.0:
        raise ValueError("learner: forgets by arrival, expected forgetting=1 (or SelfTuned, which forgets by play)")
    return LEDGERS[kind](learner, n_states)


__all__ = ["LEDGERS", "Ledger", "Record", "open_ledger"]
