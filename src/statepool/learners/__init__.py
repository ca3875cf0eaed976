"""The learners, one a file. Adding one is a file and a line here."""

from statepool import plugins
from statepool.checks import shown, unknown_name
from statepool.learners.action_exp3 import ActionEXP3
from statepool.learners.anytime import Anytime
from statepool.learners.apart import Apart
from statepool.learners.auer_exp3 import AuerEXP3
from statepool.learners.best_state import BestState
from statepool.learners.certified import Certified
from statepool.learners.coin_graph import CoinGraph
from statepool.learners.corrected_pool import CorrectedPool
from statepool.learners.counted_denominator import CountedDenominator
from statepool.learners.delay_adapted import DelayAdapted
from statepool.learners.evolving import Evolving
from statepool.learners.exp3_ix import EXP3IX
from statepool.learners.impatient_thompson import ImpatientThompson
from statepool.learners.learner import Learner, Problem
from statepool.learners.meta_bio import MetaBIO
from statepool.learners.naive_sharing import NaiveSharing
from statepool.learners.nsd_ucrl2 import NSDUCRL2
from statepool.learners.player import PlayedRound, Player
from statepool.learners.plug_in import PlugIn
from statepool.learners.pooled_greedy import PooledGreedy
from statepool.learners.pooled_thompson import PooledThompson
from statepool.learners.safe_pool import SafePool
from statepool.learners.self_tuned import SelfTuned
from statepool.learners.stale_vector import GreedyStale, OptimisticStale
from statepool.learners.state_exp3 import StateEXP3
from statepool.learners.surrogate_index import SurrogateIndex
from statepool.learners.uniform import Uniform
from statepool.learners.zimmert_seldin import ZimmertSeldin

REGISTRY: dict[str, type[Learner]] = {
    "action-exp3": ActionEXP3,
    "anytime": Anytime,
    "apart": Apart,
    "auer-exp3": AuerEXP3,
    "best-state": BestState,
    "certified": Certified,
    "coin-graph": CoinGraph,
    "corrected-pool": CorrectedPool,
    "counted-denominator": CountedDenominator,
    "delay-adapted": DelayAdapted,
    "evolving": Evolving,
    "exp3-ix": EXP3IX,
    "greedy-stale": GreedyStale,
    "impatient-thompson": ImpatientThompson,
    "meta-bio": MetaBIO,
    "naive-sharing": NaiveSharing,
    "nsd-ucrl2": NSDUCRL2,
    "optimistic-stale": OptimisticStale,
    "plug-in": PlugIn,
    "pooled-greedy": PooledGreedy,
    "pooled-thompson": PooledThompson,
    "safe-pool": SafePool,
    "self-tuned": SelfTuned,
    "state-exp3": StateEXP3,
    "surrogate-index": SurrogateIndex,
    "uniform": Uniform,
    "zimmert-seldin": ZimmertSeldin,
}

OF_ONES_OWN = "one of your own: sp.compare from Python, or an entry point, docs/how-to/write-a-learner.md"


def find(name: str) -> type[Learner]:
    """The learner of a name: one of these, or one that an installed package adds."""
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    found = plugins.load("learner", name) if isinstance(name, str) else None
    if found is None:
        told = unknown_name("learner", name, [*REGISTRY, *plugins.installed("learner")])
        raise ValueError(f"{told}; {OF_ONES_OWN}")
    if not isinstance(found, type) or not issubclass(found, Learner):
        raise ValueError(f"learner: {name!r} is {shown(found)}, expected a subclass of Learner")
    return found


def name_of(kind: type[Learner]) -> str | None:
    """The name that `find` finds a learner by; None if there is none."""
    own = [name for name, each in REGISTRY.items() if each is kind]
    place = f"{kind.__module__}:{kind.__qualname__}"
    others = [name for name, entry in plugins.installed("learner").items() if entry.value == place]
    return next(iter(own + [name for name in others if name not in REGISTRY]), None)


__all__ = [
    "EXP3IX",
    "NSDUCRL2",
    "REGISTRY",
    "ActionEXP3",
    "Anytime",
    "Apart",
    "AuerEXP3",
    "BestState",
    "Certified",
    "CoinGraph",
    "CorrectedPool",
    "CountedDenominator",
    "DelayAdapted",
    "Evolving",
    "GreedyStale",
    "ImpatientThompson",
    "Learner",
    "MetaBIO",
    "NaiveSharing",
    "OptimisticStale",
    "PlayedRound",
    "Player",
    "PlugIn",
    "PooledGreedy",
    "PooledThompson",
    "Problem",
    "SafePool",
    "SelfTuned",
    "StateEXP3",
    "SurrogateIndex",
    "Uniform",
    "ZimmertSeldin",
    "find",
    "name_of",
]
