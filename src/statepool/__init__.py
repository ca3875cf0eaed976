"""Learn from late outcomes by pooling each one through the state that was seen at once."""

from typing import TYPE_CHECKING, Any

from statepool import delays, dimension, families, guarantees, learners
from statepool.engine import Comparison, Run, compare, simulate
from statepool.learners import (
    EXP3IX,
    ActionEXP3,
    BestState,
    CorrectedPool,
    CountedDenominator,
    GreedyStale,
    NaiveSharing,
    OptimisticStale,
    PlugIn,
    PooledGreedy,
    PooledThompson,
    SafePool,
    SelfTuned,
    StateEXP3,
    Uniform,
    ZimmertSeldin,
)
from statepool.model import Instance

if TYPE_CHECKING:
    from statepool.live import Pool

__version__ = "0.1.0"

__all__ = [
    "EXP3IX",
    "ActionEXP3",
    "BestState",
    "Comparison",
    "CorrectedPool",
    "CountedDenominator",
    "GreedyStale",
    "Instance",
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
    "Uniform",
    "ZimmertSeldin",
    "compare",
    "delays",
    "dimension",
    "families",
    "guarantees",
    "learners",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """`Pool` is found when asked for: simulations need nothing of what it imports."""
    if name != "Pool":
        raise AttributeError(f"module 'statepool' has no attribute {name!r}")
    try:
        from statepool.live import Pool
    except ImportError as error:
        raise ImportError(f"Pool: {error.name} is not installed, expected `pip install statepool[live]`") from None
    return Pool
