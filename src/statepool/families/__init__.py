"""Families of instances, one a file: functions of a seed. Adding one is a file and a line here.

A seed is a whole number or a NumPy generator; the draws are made in the order written, so a seed names one instance.
"""

from collections.abc import Callable
from typing import cast

from statepool import plugins
from statepool.checks import shown, unknown_name
from statepool.families.band import band
from statepool.families.clustered import clustered
from statepool.families.crowds import crowds
from statepool.families.direct import direct
from statepool.families.funnel import funnel
from statepool.families.hard import hard
from statepool.families.hostile import hostile
from statepool.families.locked import locked
from statepool.families.matched import matched
from statepool.families.moving_map import moving_map
from statepool.families.overlap import overlap
from statepool.families.resonance import resonance
from statepool.families.routes import routes
from statepool.families.scarce import scarce
from statepool.families.segments import segments
from statepool.families.shifting import shifting
from statepool.families.shop import shop, shop_with_prices
from statepool.families.sparse_crowds import sparse_crowds
from statepool.families.spread import spread
from statepool.families.switching import switching
from statepool.model import Instance

REGISTRY: dict[str, Callable[..., Instance]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        band, clustered, crowds, direct, funnel, hard, hostile, locked, matched, moving_map, overlap, resonance, routes,
        scarce, segments, shifting, shop, shop_with_prices, sparse_crowds, spread, switching,
    )
}  # fmt: skip


def find(name: str) -> Callable[..., Instance]:
    """The family of a name: one of these, or one that an installed package adds.

    >>> import statepool as sp
    >>> sp.families.find("funnel") is sp.families.funnel
    True
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    found = plugins.load("family", name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(unknown_name("family", name, [*REGISTRY, *plugins.installed("family")]))
    if not callable(found):
        raise ValueError(f"family: {name!r} is {shown(found)}, expected a function of a seed")
    return cast(Callable[..., Instance], found)


__all__ = [
    "REGISTRY",
    "band",
    "clustered",
    "crowds",
    "direct",
    "find",
    "funnel",
    "hard",
    "hostile",
    "locked",
    "matched",
    "moving_map",
    "overlap",
    "resonance",
    "routes",
    "scarce",
    "segments",
    "shifting",
    "shop",
    "shop_with_prices",
    "sparse_crowds",
    "spread",
    "switching",
]
