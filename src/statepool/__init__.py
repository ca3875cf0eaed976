"""Bandits for delayed outcomes: a library, a command and a service.

    import statepool as sp

    shop = sp.families.funnel(seed=0, n_actions=200, horizon=20_000)    # or sp.Instance(P, theta): your own
    run = sp.simulate(shop, sp.SelfTuned(), delay=50, seed=80_000)
    print(run)

`simulate` and `compare` run learners on instances; `audit_log` reads a log and says whether to pool; `Pool` decides
live. Names are imported when they are first used, so `import statepool` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statepool import delays, dimension, families, grouping, guarantees, learners
    from statepool.audit import Audit, audit_log
    from statepool.comparison import Comparison, compare
    from statepool.delays import Conversions
    from statepool.engine import Run, simulate
    from statepool.learners import (
        ActionEXP3,
        ActionGreedy,
        ActionThompson,
        ActionUCB,
        HintedStateEXP3,
        PerContext,
        PooledGreedy,
        PooledThompson,
        SelfTuned,
        StateEXP3,
        Uniform,
    )
    from statepool.live import Pool
    from statepool.model import Instance

__version__ = "0.3.0"

_MODULES = (
    "audit", "client", "delays", "dimension", "families", "grouping", "guarantees", "learners", "live", "testing",
)  # fmt: skip
_HOMES = {
    "Audit": "audit", "Comparison": "comparison", "Conversions": "delays", "Instance": "model", "Pool": "live",
    "Run": "engine", "audit_log": "audit", "compare": "comparison", "simulate": "engine",
}  # fmt: skip
"""Where a name comes from; all others are learners."""

__all__ = [
    "ActionEXP3",
    "ActionGreedy",
    "ActionThompson",
    "ActionUCB",
    "Audit",
    "Comparison",
    "Conversions",
    "HintedStateEXP3",
    "Instance",
    "PerContext",
    "Pool",
    "PooledGreedy",
    "PooledThompson",
    "Run",
    "SelfTuned",
    "StateEXP3",
    "Uniform",
    "audit",
    "audit_log",
    "client",
    "compare",
    "delays",
    "dimension",
    "families",
    "grouping",
    "guarantees",
    "learners",
    "live",
    "simulate",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = name if name in _MODULES else _HOMES.get(name, "learners")
    try:
        module = import_module(f"{__name__}.{home}")
    except ImportError as error:
        from statepool.extras import explained

        raise explained(name, error) from None
    found = module if name in _MODULES else getattr(module, name)
    globals()[name] = found  # the next look finds it without asking here
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
