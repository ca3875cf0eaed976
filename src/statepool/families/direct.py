"""Direct: any family, and actions that also move the loss themselves, by `size`, past what the state tells.

    theta_t(s) + effect(a, s),   effect: normal with standard deviation `size`, clipped so that means stay in [0, 1]

The state no longer tells all: the paper's assumption, broken by a known amount. One seed gives the same base instance
and the same directions at every size.
"""

import inspect
from typing import Any

import numpy as np

from statepool.checks import check_name, check_number
from statepool.model import Instance
from statepool.stream import Seed


def direct(seed: Seed, family: str = "spread", size: float = 0.05, horizon: int = 10_000, **settings: Any) -> Instance:
    """`settings` are those of the base family.

    >>> import statepool as sp
    >>> sp.families.direct(seed=0, horizon=100)
    Instance(40 actions, 6 states, 100 rounds, with direct effects)
    """
    from statepool.families import REGISTRY  # which holds this function too

    bases = {name: make for name, make in REGISTRY.items() if name != "direct"}
    check_name("family", family, bases)
    check_number(size, "size", 0, 1)
    known = list(inspect.signature(bases[family]).parameters)[1:]
    for name in settings:
        check_name(f"setting of {family}", name, known)
    base = bases[family](seed, horizon=horizon, **settings)
    # A stream of its own: the base stays the family's instance of that seed.
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng((seed, 1))
    effects = size * rng.standard_normal(base.P.shape)
    return base.replaced(effects=np.clip(effects, -base.theta.min(axis=0), 1 - base.theta.max(axis=0)))
