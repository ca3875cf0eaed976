"""The learners. Adding one is a file and a line here.

Three rooms: this folder has the learners to run and to compare with, `paper` the paper's other arms, `neighbours`
methods from the literature.
"""

import re

from statepool import extras
from statepool.checks import shown, unknown_name
from statepool.learners.action_exp3 import ActionEXP3 as ActionEXP3
from statepool.learners.contract import Learner as Learner
from statepool.learners.contract import Played as Played
from statepool.learners.contract import Problem as Problem
from statepool.learners.contract import Rows as Rows
from statepool.learners.contract import add_rule as add_rule
from statepool.learners.greedy_thompson_ucb import ActionGreedy as ActionGreedy
from statepool.learners.greedy_thompson_ucb import ActionThompson as ActionThompson
from statepool.learners.greedy_thompson_ucb import ActionUCB as ActionUCB
from statepool.learners.greedy_thompson_ucb import PooledGreedy as PooledGreedy
from statepool.learners.greedy_thompson_ucb import PooledThompson as PooledThompson
from statepool.learners.hinted_state_exp3 import HintedStateEXP3 as HintedStateEXP3
from statepool.learners.neighbours.anytime import Anytime as Anytime
from statepool.learners.neighbours.anytime import Certified as Certified
from statepool.learners.neighbours.estimates import AuerEXP3 as AuerEXP3
from statepool.learners.neighbours.estimates import CoinGraph as CoinGraph
from statepool.learners.neighbours.estimates import DelayAdapted as DelayAdapted
from statepool.learners.neighbours.estimates import Evolving as Evolving
from statepool.learners.neighbours.estimates import SurrogateIndex as SurrogateIndex
from statepool.learners.neighbours.impatient_thompson import ImpatientThompson as ImpatientThompson
from statepool.learners.neighbours.meta_bio import MetaBIO as MetaBIO
from statepool.learners.neighbours.nsd_ucrl2 import NSDUCRL2 as NSDUCRL2
from statepool.learners.paper.baselines import EXP3IX as EXP3IX
from statepool.learners.paper.baselines import BestState as BestState
from statepool.learners.paper.baselines import GreedyStale as GreedyStale
from statepool.learners.paper.baselines import NaiveSharing as NaiveSharing
from statepool.learners.paper.baselines import OptimisticStale as OptimisticStale
from statepool.learners.paper.estimated_maps import CountedDenominator as CountedDenominator
from statepool.learners.paper.estimated_maps import PlugIn as PlugIn
from statepool.learners.paper.estimated_maps import SafePool as SafePool
from statepool.learners.paper.zimmert_seldin import ZimmertSeldin as ZimmertSeldin
from statepool.learners.per_context import PerContext as PerContext
from statepool.learners.self_tuned import SelfTuned as SelfTuned
from statepool.learners.state_exp3 import StateEXP3 as StateEXP3
from statepool.learners.uniform import Uniform as Uniform

KINDS: tuple[type[Learner], ...] = (
    ActionEXP3, ActionGreedy, ActionThompson, ActionUCB, HintedStateEXP3, PerContext, PooledGreedy, PooledThompson,
    SelfTuned, StateEXP3, Uniform,
    # the paper's other arms
    BestState, CountedDenominator, EXP3IX, GreedyStale, NaiveSharing, OptimisticStale, PlugIn, SafePool, ZimmertSeldin,
    # methods from the literature
    Anytime, AuerEXP3, Certified, CoinGraph, DelayAdapted, Evolving, ImpatientThompson, MetaBIO, SurrogateIndex,
)  # fmt: skip
REGISTRY = {re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower(): kind for kind in KINDS}
"""Learners by name: `HintedStateEXP3` is "hinted-state-exp3"."""
REGISTRY["nsd-ucrl2"] = NSDUCRL2

DEFAULT = "self-tuned"


def find(name: str) -> type[Learner]:
    """The learner of a name: one of these, or one that an installed package adds.

    Parameters
    ----------
    name : str
        Such as "exp3-ix".

    Examples
    --------
    >>> import statepool as sp
    >>> sp.learners.find("zimmert-seldin").__name__
    'ZimmertSeldin'
    """
    if not isinstance(name, str):
        raise ValueError(f"learner: is {shown(name)}, expected the name of a learner, such as 'state-exp3'")
    if name in REGISTRY:
        return REGISTRY[name]
    found = extras.load("learner", name)
    if found is None:
        message = unknown_name("learner", name, [*REGISTRY, *extras.installed("learner")])
        raise ValueError(f"{message}; learners of your own: docs/how-to/write-a-learner.md")
    if not isinstance(found, type) or not issubclass(found, Learner):
        raise ValueError(f"learner: {name!r} is {shown(found)}, expected a subclass of Learner")
    return found


def make_learner(learner: Learner | str) -> Learner:
    """The learner itself, or the one of a name with its defaults."""
    if isinstance(learner, Learner):
        return learner
    if not isinstance(learner, str):
        raise ValueError(f"learner: is {shown(learner)}, expected a learner such as StateEXP3(), or a name")
    return find(learner)()


def name_of(kind: type[Learner]) -> str | None:
    """The name that `find` finds a learner by; None if there is none."""
    own = [name for name, each in REGISTRY.items() if each is kind]
    place = f"{kind.__module__}:{kind.__qualname__}"
    others = [name for name, entry in extras.installed("learner").items() if entry.value == place]
    return next(iter(own + [name for name in others if name not in REGISTRY]), None)


_ALSO = ("REGISTRY", "Learner", "Played", "Problem", "Rows", "add_rule", "find", "make_learner", "name_of")
__all__ = sorted([*_ALSO, *(kind.__name__ for kind in REGISTRY.values())], key=lambda name: (not name.isupper(), name))
