"""Families of instances: functions of a seed. Adding one is a function with `@family`, and its name here.

A seed is a whole number or a NumPy generator. The draws are made in the order written, so a seed names one instance.
"""

from collections.abc import Callable
from typing import cast

from statepool import extras
from statepool.checks import shown, unknown_name
from statepool.families.beyond import (
    crowds,
    direct,
    locked,
    moving_map,
    resonance,
    routes,
    segments,
    shifting,
    shop,
    shop_with_prices,
)
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
from statepool.families.shapes import REGISTRY
from statepool.model import Instance


def find(name: str) -> Callable[..., Instance]:
    """The family of a name: one of these, or one that an installed package adds.

    Parameters
    ----------
    name : str

    Returns
    -------
    callable
        A function of a seed and of the family's settings that returns an `Instance`.

    Examples
    --------
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
    "spread", "switching",
]  # fmt: skip
