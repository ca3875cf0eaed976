"""Learn from late outcomes by pooling each one through the state that was seen at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from statepool import delays, dimension, families, guarantees, learners
from statepool.engine import Comparison, Run, compare, simulate
from statepool.learners import (
    EXP3IX,
    NSDUCRL2,
    ActionEXP3,
    Anytime,
    AuerEXP3,
    BestState,
    Certified,
    CoinGraph,
    CorrectedPool,
    CountedDenominator,
    DelayAdapted,
    Evolving,
    GreedyStale,
    ImpatientThompson,
    MetaBIO,
    NaiveSharing,
    OptimisticStale,
    PlugIn,
    PooledGreedy,
    PooledThompson,
    SafePool,
    SelfTuned,
    StateEXP3,
    SurrogateIndex,
    Uniform,
    ZimmertSeldin,
)
from statepool.model import Instance

if TYPE_CHECKING:
    from statepool.audit import Audit, audit_log
    from statepool.live import Pool

__version__ = "0.1.0"

__all__ = [
    "EXP3IX",
    "NSDUCRL2",
    "ActionEXP3",
    "Anytime",
    "Audit",
    "AuerEXP3",
    "BestState",
    "Certified",
    "CoinGraph",
    "Comparison",
    "CorrectedPool",
    "CountedDenominator",
    "DelayAdapted",
    "Evolving",
    "GreedyStale",
    "ImpatientThompson",
    "Instance",
    "MetaBIO",
    "NaiveSharing",
    "OptimisticStale",
    "PlugIn",
    "Pool",
    "PooledGreedy",
    "PooledThompson",
    "Run",
    "SafePool",
    "SelfTuned",
    "StateEXP3",
    "SurrogateIndex",
    "Uniform",
    "ZimmertSeldin",
    "audit_log",
    "compare",
    "delays",
    "dimension",
    "families",
    "guarantees",
    "learners",
    "simulate",
]

EXTRAS = {
    "Audit": ("statepool.audit", "audit"),
    "Pool": ("statepool.live", "live"),
    "audit_log": ("statepool.audit", "audit"),
}


def __getattr__(name: str) -> Any:
    """What needs an extra is imported when it is asked for."""
    if name not in EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = EXTRAS[name]
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise ImportError(f"{name}: {error.name} is not installed, expected `pip install statepool[{extra}]`") from None
