"""Families of instances: functions of a seed. Adding one is a function and a line here.

A seed is a whole number or a NumPy generator. The draws are made in the order written, so a seed names one instance.
"""

from collections.abc import Callable
from typing import cast

from statepool import extras
from statepool.checks import shown, unknown_name
from statepool.families.contexts import crowds, moving_map, routes, segments, sparse_crowds
from statepool.families.difficult import direct, locked, resonance, shifting
from statepool.families.paper import (
    band,
    clustered,
    funnel,
    hard,
    hostile,
    matched,
    overlap,
    scarce,
    spread,
    switching,
)
from statepool.families.shop import shop, shop_with_prices
from statepool.model import Instance

_FAMILIES = (
    band, clustered, crowds, direct, funnel, hard, hostile, locked, matched, moving_map, overlap, resonance, routes,
    scarce, segments, shifting, shop, shop_with_prices, sparse_crowds, spread, switching,
)  # fmt: skip
REGISTRY: dict[str, Callable[..., Instance]] = {make.__name__.replace("_", "-"): make for make in _FAMILIES}


def find(name: str) -> Callable[..., Instance]:
    """The family of a name: one of these, or one that an installed package adds.

    >>> import statepool as sp
    >>> sp.families.find("funnel") is sp.families.funnel
    True
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    found = extras.load("family", name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(unknown_name("family", name, [*REGISTRY, *extras.installed("family")]))
    if not callable(found):
        raise ValueError(f"family: {name!r} is {shown(found)}, expected a function of a seed")
    return cast(Callable[..., Instance], found)


__all__ = [
    "REGISTRY", "band", "clustered", "crowds", "direct", "find", "funnel", "hard", "hostile", "locked", "matched",
    "moving_map", "overlap", "resonance", "routes", "scarce", "segments", "shifting", "shop", "shop_with_prices",
    "sparse_crowds", "spread", "switching",
]  # fmt: skip
