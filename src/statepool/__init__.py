"""Learn from late outcomes by pooling each one through the state that was seen at once."""

from importlib import import_module
from typing import Any

from statepool import delays, dimension, families, guarantees, learners
from statepool.engine import Comparison, Run, compare, simulate
from statepool.learners import (
    EXP3IX,
    ActionEXP3,
    BestState,
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
    "Audit",
    "BestState",
    "Comparison",
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
    "audit_log",
    "compare",
    "delays",
    "dimension",
    "families",
    "guarantees",
    "learners",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """The audit needs an extra and is imported when it is asked for."""
    if name in ("Audit", "audit_log"):
        return getattr(import_module("statepool.audit"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
