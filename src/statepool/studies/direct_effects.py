"""Study D (ours): direct effects of actions on outcomes, and from which size on pooling loses."""

from collections.abc import Sequence

import numpy as np

from statepool.report.palette import ACTION, SELF_TUNED, STATE, THOMPSON
from statepool.report.sheet import Sheet, Value
from statepool.studies.baselines import FAMILIES
from statepool.studies.study import Arms, Cell, Figure, Results, Sweep, Table, add_study

ARMS: Arms = {
    "state": ("state-exp3", {}),
    "self-tuned": ("self-tuned", {}),
    "action": ("action-exp3", {}),
    "action Thompson": ("action-thompson", {}),
}
LOOKS = {"action": ACTION, "state": STATE, "self-tuned": SELF_TUNED, "action Thompson": THOMPSON}
BASES, SIZES = ("spread", "dirichlet", "funnel"), (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
DUELS = tuple((first, second) for first in ("action", "action Thompson") for second in ("self-tuned", "state"))


def _place(base: str, size: float) -> str:
    return f"{base}, size {size:g}"


def crossing(at: Sequence[float], challenger: Sequence[float], leader: Sequence[float]) -> float | None:
    """The place, interpolated, from which on the challenger has less regret; None if it has more at the last."""
    behind = np.subtract(challenger, leader)
    if behind[-1] >= 0:
        return None
    last = int(np.flatnonzero(behind >= 0).max(initial=-1))
    if last < 0:
        return float(at[0])
    part = behind[last] / (behind[last] - behind[last + 1])
    return float(at[last] + part * (at[last + 1] - at[last]))


def _crossings(results: Results, base: str) -> dict[str, Value]:
    regrets = {arm: [results.mean("sizes", _place(base, size), arm) for size in SIZES] for arm in ARMS}
    places = {f"{first} below {second}": crossing(SIZES, regrets[first], regrets[second]) for first, second in DUELS}
    return {duel: Value(size, None, 3) for duel, size in places.items() if size is not None}


def _tables(results: Results) -> list[Table]:
    sizes = results.rows("sizes", [_place(base, size) for base in BASES for size in SIZES], ARMS)
    note = "the standard deviation of effects from which on the first has less regret, interpolated; none: not up to .2"
    crossings = {base: _crossings(results, base) for base in BASES}
    return [
        Table("Crossing points in the size, T=10000, d=50", crossings, note, ours=True),
        Table("Regret by the size of direct effects, T=10000, d=50", sizes, ours=True),
    ]


def _draw_direct_effects(sheet: Sheet, results: Results) -> None:
    for ax, base in zip(sheet.panels(3, 2.3), BASES, strict=True):
        rows = results.rows("sizes", [_place(base, size) for size in SIZES], ARMS)
        sheet.lines(ax, SIZES, rows, LOOKS, legend=base == "spread", title=base.capitalize(), ylim=(0, None))
        ax.set_xticks((0, 0.05, 0.1, 0.15, 0.2), ("0", ".05", ".1", ".15", ".2"))
        ax.set(xlabel="size of direct effects", ylabel="regret" if sheet.narrow or base == "spread" else "")


add_study(
    "direct-effects",
    [Sweep(
        "sizes",
        [Cell(_place(base, size), "direct", {"family": FAMILIES[base][0], **FAMILIES[base][1], "size": size}, 50, ARMS)
         for base in BASES for size in SIZES],
        20, 90_000,
    )],
    _tables,
    [Figure("direct-effects", _draw_direct_effects)],
    beyond=True,
)  # fmt: skip
