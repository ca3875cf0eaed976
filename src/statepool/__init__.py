"""Learn from late outcomes by pooling each one through the state that was seen at once."""

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
