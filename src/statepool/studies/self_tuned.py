"""Studies C and D (ours): SelfTuned and eleven simple rules, and direct effects of actions on outcomes."""

from collections.abc import Sequence

import numpy as np

from statepool import delays
from statepool.comparison import standard_error
from statepool.rates import default_rate
from statepool.report import palette
from statepool.report.sheet import Sheet, Value
from statepool.studies import bounds, funnel
from statepool.studies.estimated_maps import KINDS
from statepool.studies.study import Arms, Cell, Figure, Results, Sweep, Table, add_study

GREEDY: Arms = {
    f"greedy {forgetting:g}{' +1%' if exploration else ''}": (
        "pooled-greedy", {"forgetting": forgetting, "exploration": exploration},
    )
    for forgetting in (1.0, 0.999, 0.99) for exploration in (0.0, 0.01)
}  # fmt: skip
THOMPSON: Arms = {
    "Thompson 1": ("pooled-thompson", {}),
    "Thompson 0.999": ("pooled-thompson", {"forgetting": 0.999}),
}
RULES: Arms = {
    "state": ("state-exp3", {}), "action": ("action-exp3", {}), "best-state": ("best-state", {}), **GREEDY, **THOMPSON,
}  # fmt: skip
ARMS: Arms = {**RULES, "self-tuned": ("self-tuned", {})}
UNKNOWN: Arms = {"self-tuned": ("self-tuned", {}), "self-tuned, map unknown": ("self-tuned", {"learn_map": True}),
                 "plug-in": ("plug-in", {})}  # fmt: skip
EIGHT = {label: cell for label, cell in funnel.SETTINGS.items() if label != "hard d=50"}
BEST_MULTIPLIER = 32
"""Study 16: the multiplier of State-EXP3's rate that is best in hindsight, at every delay."""
HALF_PERIODS = (25, 50, 75, 100, 150, 200, 400, 800, 2_000)
LARGE_GAP = 100


def _kinds(family: str, horizon: int, *kinds: str) -> list[Cell]:
    return [Cell(f"{family}, {kind}", family, {"kind": kind, "horizon": horizon}, 50, ARMS) for kind in kinds]


def _funnel_cell(delay: int) -> Cell:
    rate = BEST_MULTIPLIER * default_rate(200, 6, 20_000, delay)
    return Cell(f"d={delay}", "funnel", {}, delay, {**ARMS, "state, hindsight": ("state-exp3", {"rate": rate})})


CLOSED = (
    Sweep("settings", [Cell(label, *cell, ARMS) for label, cell in EIGHT.items()], 20, 90_000),
    Sweep("hostile", _kinds("hostile", 8_000, *KINDS), 20, 10_000),
    Sweep("delays", [Cell(f"{name}, {kind} delays", *funnel.FAMILIES[name], 50, ARMS, {"kind": kind})
                     for name in ("dirichlet", "spread", "switching") for kind in delays.KINDS], 20, 90_000),
    Sweep("locked", _kinds("locked", 10_000, "private-states", "decoys", "narrow-gate"), 20, 90_000),
    Sweep("shifting", _kinds("shifting", 10_000, "early-late", "random-walk", "seasons"), 20, 90_000),
)  # fmt: skip
"""Where State-EXP3 is far from the best rule."""
HELD = (
    Sweep("hard", [Cell("hard d=50", *funnel.SETTINGS["hard d=50"], ARMS)], 20, 90_000),
    Sweep("cells", bounds.hard_cells(bounds.GRID, {**ARMS, "state": bounds.HARD_ARMS["state"]}), 20, 13, instance=7,
          scale=1000),
    Sweep("resonance", [Cell(f"resonance {half}", "resonance", {"half_period": half, "horizon": 8_000}, 50, ARMS)
                        for half in HALF_PERIODS], 20, 90_000),
)  # fmt: skip
"""Where little or nothing can be gained."""
FUNNEL = Sweep("funnel", [_funnel_cell(d) for d in funnel.DELAYS], 8, 80_000)
UNKNOWN_MAP = Sweep("unknown", [Cell(label, *cell, UNKNOWN) for label, cell in EIGHT.items()], 20, 90_000)


def _best(results: Results, sweep: str, cell: str, arms: Arms) -> float:
    return min(results.mean(sweep, cell, arm) for arm in arms)


def _row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    row = results.means(sweep, cell, ("state", "self-tuned"))
    return row | {
        "greedy": Value(_best(results, sweep, cell, GREEDY)),
        "Thompson": Value(_best(results, sweep, cell, THOMPSON)),
    }


def _closed_row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    row = _row(results, sweep, cell) | {"worst seed": Value(float(results.of(sweep, cell, "self-tuned").max()))}
    gap = row["state"].number - _best(results, sweep, cell, RULES)
    row["gap"] = Value(gap)
    if gap > 0:
        row["closed %"] = Value(100 * (row["state"].number - row["self-tuned"].number) / gap, None, 0)
    return row


def _held_row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    row = _row(results, sweep, cell)
    difference = results.of(sweep, cell, "self-tuned") - results.of(sweep, cell, "state")
    row["ratio"] = Value(row["self-tuned"].number / row["state"].number, None, 2)
    row["in se"] = Value(float(difference.mean()) / standard_error(difference))
    return row


def _tables(results: Results) -> list[Table]:
    closed = {cell: _closed_row(results, sweep.name, cell) for sweep in CLOSED for cell in sweep.labels}
    shares = [row["closed %"].number for row in closed.values() if row["gap"].number > LARGE_GAP]
    summary = {"closed %": {"mean": Value(float(np.mean(shares)), None, 0), "smallest": Value(min(shares), None, 0)}}
    held = {cell: _held_row(results, sweep.name, cell) for sweep in HELD for cell in sweep.labels}
    funnel = {cell: _row(results, "funnel", cell) for cell in FUNNEL.labels}
    for cell, row in funnel.items():
        row["state, hindsight"] = results.value("funnel", cell, "state, hindsight")
    unknown = results.rows("unknown", UNKNOWN_MAP.labels, UNKNOWN)
    for row in unknown.values():
        row["unknown / known"] = Value(row["self-tuned, map unknown"].number / row["self-tuned"].number, None, 2)
    note = (
        "closed: the share of the gap between State-EXP3 and the best of eleven rules, chosen in hindsight; greedy, "
        "Thompson: the best of six and of two, also chosen in hindsight"
    )
    return [
        Table("How much of the gap is closed", summary, "over settings whose gap exceeds 100", ours=True),
        Table("SelfTuned against the best rule of each setting", closed, note, ours=True),
        Table("The funnel of study 14", funnel, "hindsight: the best multiplier of study 16", ours=True),
        Table("With the map unknown", unknown, ours=True),
        Table("Where nothing can be gained", held,
              "ratio: of SelfTuned to State-EXP3; in se: their paired difference, in standard errors", ours=True),
    ]  # fmt: skip


add_study(
    "self-tuned",
    [*CLOSED, *HELD, FUNNEL, UNKNOWN_MAP],
    _tables,
    beyond=True,
)


DIRECT_ARMS: Arms = {
    "state": ("state-exp3", {}), "self-tuned": ("self-tuned", {}), "action": ("action-exp3", {}),
    "action Thompson": ("action-thompson", {}),
}  # fmt: skip
DIRECT_LOOKS = {
    "action": palette.ACTION, "state": palette.STATE, "self-tuned": palette.SELF_TUNED,
    "action Thompson": palette.THOMPSON,
}  # fmt: skip
BASES, SIZES = ("spread", "dirichlet", "funnel"), (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
DUELS = tuple((first, second) for first in ("action", "action Thompson") for second in ("self-tuned", "state"))


def _direct_place(base: str, size: float) -> str:
    return f"{base}, size {size:g}"


def _direct_cell(base: str, size: float) -> Cell:
    family, settings = funnel.FAMILIES[base]
    return Cell(_direct_place(base, size), "direct", {"family": family, **settings, "size": size}, 50, DIRECT_ARMS)


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
    regrets = {arm: [results.mean("sizes", _direct_place(base, size), arm) for size in SIZES] for arm in DIRECT_ARMS}
    places = {f"{first} below {second}": crossing(SIZES, regrets[first], regrets[second]) for first, second in DUELS}
    return {duel: Value(size, None, 3) for duel, size in places.items() if size is not None}


def _direct_tables(results: Results) -> list[Table]:
    sizes = results.rows("sizes", [_direct_place(base, size) for base in BASES for size in SIZES], DIRECT_ARMS)
    note = "the standard deviation of effects from which on the first has less regret, interpolated; none: not up to .2"
    crossings = {base: _crossings(results, base) for base in BASES}
    return [
        Table("Crossing points in the size, T=10000, d=50", crossings, note, ours=True),
        Table("Regret by the size of direct effects, T=10000, d=50", sizes, ours=True),
    ]


def _draw_direct_effects(sheet: Sheet, results: Results) -> None:
    for ax, base in zip(sheet.panels(3, 2.3), BASES, strict=True):
        rows = results.rows("sizes", [_direct_place(base, size) for size in SIZES], DIRECT_ARMS)
        sheet.lines(ax, SIZES, rows, DIRECT_LOOKS, legend=base == "spread", title=base.capitalize(), ylim=(0, None))
        ax.set_xticks((0, 0.05, 0.1, 0.15, 0.2), ("0", ".05", ".1", ".15", ".2"))
        ax.set(xlabel="size of direct effects", ylabel="regret" if base == "spread" else "")


add_study(
    "direct-effects",
    [Sweep("sizes", [_direct_cell(base, size) for base in BASES for size in SIZES], 20, 90_000)],
    _direct_tables,
    [Figure("direct-effects", _draw_direct_effects)],
    beyond=True,
)  # fmt: skip
